"""The page of all rows with their results: ``python tests/conformance/conformance_page.py`` writes it."""

import re

from conformance_rows import ELSEWHERE, READ, ROOT, SEEDS, read_differences, read_rows

PAGE = ROOT / "docs" / "reference" / "conformance.md"
INTRODUCTION = """\
<!-- written by tests/conformance/conformance_page.py -->
# Conformance

trioboss is made after five documents: the manuals of pg-boss 12, 10 and 6, a design of strict FIFO, and a chapter about
the internals of queues. Each statement of theirs is a row here, by the line it is on. A row that *works* does what the
document says. A row that *differs* does something else, and the guide
[Coming from pg-boss](../guides/from-pg-boss.md) has the reason. The tests are in `tests/conformance`, where each has
the name of its row; rows that need a crash, a pooler or another version are tested elsewhere.

{total} rows: {works} work, {differ} differ.
"""


def anchor_of(heading: str) -> str:
    """The anchor of a heading, as the documentation makes it."""
    return re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-")


def render_page() -> str:
    """The page as it should be."""
    rows, differing = read_rows(), read_differences()
    text = INTRODUCTION.format(total=len(rows), works=len(rows) - len(differing), differ=len(differing))
    for seed, title in SEEDS.items():
        text += f"\n## {title}\n\n| line | statement | trioboss | result | tested |\n|---|---|---|---|---|\n"
        for row in rows:
            if row.seed == seed:
                cells = (
                    row.id.partition(":")[2],
                    row.statement,
                    row.here,
                    result(row.id, differing),
                    place(row.id),
                )
                text += "| " + " | ".join(escape(cell) for cell in cells) + " |\n"
    return text


def result(id: str, differing: dict[str, str]) -> str:
    """Works, or differs with a link to the reason."""
    if id not in differing:
        return "works"
    return f"differs: [{differing[id]}](../guides/from-pg-boss.md#{anchor_of(differing[id])})"


def place(id: str) -> str:
    """Where it is tested."""
    if id in ELSEWHERE:
        return ", ".join(f"`{test}`" for test in ELSEWHERE[id])
    return READ.get(id) or "yes"


def escape(text: str) -> str:
    """Text in a cell of a table."""
    return text if "](" in text or "::" in text else re.sub(r"([*_<>])", r"\\\1", text)


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render_page(), "utf-8")
