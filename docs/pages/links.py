"""Links in Markdown: the headings to which they can lead, and the addresses of other sites."""

import re
from pathlib import Path

__all__ = ["LINK", "find_addresses", "find_anchors", "leads_nowhere"]

LINK = re.compile(r"(\]\()(?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?(?=[)\s])")
"""A link within the repository: its beginning, its path, which is empty within a file, and its anchor."""

_ADDRESS = re.compile(r"https?://[^\s)>`\"]+")
_BLOCK = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_TARGET = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)


def find_anchors(text: str) -> set[str]:
    """The anchors of a Markdown file, as GitHub and MyST make them of its headings, and those that it sets."""
    text = _BLOCK.sub("", text)
    anchors = set(_TARGET.findall(text))
    for heading in _HEADING.findall(text):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        # The second heading of the same text gets a number.
        numbered = (f"{slug}-{number}" if number else slug for number in range(len(anchors) + 1))
        anchors.add(next(each for each in numbered if each not in anchors))
    return anchors


def leads_nowhere(path: Path, anchor: str | None) -> bool:
    """Whether a link to a file, or to a heading of it, is dead."""
    if not path.exists():
        return True
    return bool(anchor) and path.suffix == ".md" and anchor not in find_anchors(path.read_text("utf-8"))


def find_addresses(text: str) -> list[str]:
    """The addresses of other sites in a Markdown file, without those in blocks of code."""
    return [address.rstrip(".,;") for address in _ADDRESS.findall(_BLOCK.sub("", text))]
