"""The programs in examples/, each with the first paragraph of its docstring."""

import ast
from collections.abc import Iterator
from pathlib import Path

__all__ = ["describe_examples", "find_examples"]

_FOLDER = Path(__file__).parent.parent.parent / "examples"


def find_examples() -> list[Path]:
    """The programs, in their order."""
    return sorted(_FOLDER.glob("[0-9]*.py"))


def describe_examples() -> str:
    """A section for each program: what it shows, and its text."""
    return "\n".join(line for program in find_examples() for line in _describe(program))


def _describe(program: Path) -> Iterator[str]:
    docstring = ast.get_docstring(ast.parse(program.read_text("utf-8"))) or ""
    first, _, _ = docstring.partition("\n\n")
    number, _, title = program.stem.partition("_")
    yield f"## {number} {title.replace('_', ' ')}\n"
    yield f"{first}\n".replace("<", r"\<")
    yield f"```{{literalinclude}} /../examples/{program.name}\n:language: python\n```\n"
