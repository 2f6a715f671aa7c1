"""Prints tables for people, JSON for programs, and error messages."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

__all__ = ["print_error", "print_json", "print_rows", "printable"]


def print_error(message: str) -> None:
    """Print a message on standard error: one line, whatever is in it."""
    print(f"trioboss: {printable(message)}", file=sys.stderr)


def printable(text: str) -> str:
    """The text in one line, without characters that would control the terminal."""
    # A message of the server has several lines, with indentation: one space is as readable, and stays one line.
    joined = " ".join(text.split()) if not text.isprintable() else text
    return "".join(c if c.isprintable() else "?" for c in joined)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, default=str, indent=2))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print rows as a table with these columns, or as a JSON list of objects."""
    listed = [{column: row.get(column) for column in columns} for row in rows]
    if as_json:
        print_json(listed)
        return
    cells = [[_show(row[column]) for column in columns] for row in listed]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in [list(columns), *cells]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    if not listed:
        print("(none)")


def _show(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return printable(str(value))
