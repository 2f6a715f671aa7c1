"""The migrations as single statements, each found by the object that it makes."""

import re
from collections.abc import Iterator

from trioboss.sql import qualify
from trioboss.sql.plans import migrations

__all__ = ["making_statement", "split_statements"]

# A part of a script that has no end of a statement in it: a comment, a body in dollar quotes, a text.
_OPAQUE = re.compile(r"--[^\n]*\n?|(\$\w*\$).*?\1|'(?:[^']|'')*'|;", re.DOTALL)
_MAKES = re.compile(
    r"CREATE (?:UNLOGGED |UNIQUE )?(TABLE|VIEW|SEQUENCE|INDEX|TRIGGER|FUNCTION|TYPE|DOMAIN)\s+(?:trioboss\.)?(\w+)"
)
_KINDS = {"domain": "type"}


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


def making_statement(kind: str, name: str, schema: str) -> str | None:
    """The statement that makes an object; None if no statement of its own makes it."""
    for migration in migrations():
        for statement in split_statements(migration.up):
            if (match := _MAKES.match(statement)) and match[2] == name:
                made = match[1].lower()
                if _KINDS.get(made, made) == kind:
                    return qualify(statement, schema) + ";"
    return None
