"""The migrations as single statements, each found by the object that it makes."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from trioboss.sql.plans import migrations

__all__ = ["added_columns", "making_statement", "position", "split_statements"]

# A part of a script that has no end of a statement in it: a comment, a body in dollar quotes, a text.
_OPAQUE = re.compile(r"--[^\n]*\n?|(\$\w*\$).*?\1|'(?:[^']|'')*'|;", re.DOTALL)
_MAKES = re.compile(
    r"(?:CREATE (?:UNLOGGED |UNIQUE )?(TABLE|VIEW|SEQUENCE|INDEX|TRIGGER|FUNCTION|TYPE|DOMAIN)|INSERT INTO)"
    r"\s+(?:trioboss\.)?(\w+)"
)
_KINDS = {None: "row", "DOMAIN": "type"}
_ADDS = re.compile(r"ALTER TABLE trioboss\.(\w+) ADD COLUMN\b")


def split_statements(script: str) -> Iterator[str]:
    """The statements of a script, without the comments between them."""
    start = 0
    for match in _OPAQUE.finditer(script):
        text = script[start : match.start()].strip()
        if match[0] == ";":
            start = match.end()
            if text:
                yield text
        elif match[0].startswith("--") and not text:
            start = match.end()


@cache
def _texts() -> list[str]:
    """All statements, in order."""
    return [text for migration in migrations() for text in split_statements(migration.up)]


@cache
def _statements() -> Mapping[tuple[str, str], tuple[int, str]]:
    """The position and the text of each statement, by the kind and the name of the object."""
    made: dict[tuple[str, str], tuple[int, str]] = {}
    for number, text in enumerate(_texts()):
        if match := _MAKES.match(text):
            made[_KINDS.get(match[1]) or match[1].lower(), match[2]] = (number, text + ";")
    return made


def making_statement(kind: str, name: str) -> str | None:
    """The statement that makes an object, in the schema trioboss; None if no statement of its own makes it.

    Of the kind ``row``: the statement that fills the table of that name.
    """
    found = _statements().get((kind, name))
    return None if found is None else found[1]


def added_columns(table: str) -> list[str]:
    """The statements that give a table the columns that came later than the table."""
    return [text + ";" for text in _texts() if (match := _ADDS.match(text)) and match[1] == table]


def position(kind: str, name: str) -> int | None:
    """The position of the statement that makes an object: an object never needs one with a later position."""
    found = _statements().get((kind, name))
    return None if found is None else found[0]
