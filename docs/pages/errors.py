"""The tree of errors, from the classes."""

from collections.abc import Iterator

import trioboss.errors
from trioboss.errors import TriobossError

__all__ = ["describe_errors"]


def describe_errors() -> str:
    """The errors as a list of lists, each with the first sentence of its text."""
    return "\n".join(_describe(TriobossError, 0))


def _describe(error: type[TriobossError], depth: int) -> Iterator[str]:
    first = " ".join((error.__doc__ or "").split()).partition(". ")[0].rstrip(".")
    yield f"{'  ' * depth}- {{py:obj}}`~trioboss.{error.__name__}`: {first}."
    children = [
        each
        for each in error.__subclasses__()
        if each.__module__ == trioboss.errors.__name__ and each.__name__ in trioboss.errors.__all__
    ]
    for child in children:
        yield from _describe(child, depth + 1)
