"""Pages as text, for tests without a browser."""

import re


def text_of(markup: str) -> str:
    """The text of a page, with one space between words."""
    whole = re.sub(r'<span class="wide">(.*?)</span>', r"\1", markup)  # the beginning of an id
    return " ".join(re.sub(r"<[^>]+>", " ", whole).split())


def table_of(page: str, part: str) -> list[str]:
    """The rows of the table in an element, each as the text of its cells; none, if there is no table."""
    inside = page[page.index(f'id="{part}">') :]
    table = re.match(r"((?!id=\"live-).)*?<table.*?</table>", inside[4:], re.DOTALL)
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table[0], re.DOTALL) if table else []
    return [text_of(row) for row in rows[1:]]
