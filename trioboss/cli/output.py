"""Prints tables for people, JSON for programs, and error messages."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from trioboss.errors import TriobossError, UsageError, help_note
from trioboss.model.texts import printable, show_seconds

__all__ = [
    "confirm",
    "format_table",
    "print_error",
    "print_failure",
    "print_json",
    "print_rows",
    "show_value",
]

_AGES = ("oldest_age", "age")  # columns of durations
_PAYLOADS = ("data", "output")  # columns of JSON


def print_error(message: str) -> None:
    """Print a message on standard error: one line, whatever is in it."""
    print(f"trioboss: {printable(message)}", file=sys.stderr)


def print_failure(error: Exception, message: str, page: str) -> None:
    """Print what ended a command, and below it an address: of the error, or of the command for a wrong argument."""
    print_error(message)
    is_known = isinstance(error, TriobossError) and type(error) is not UsageError
    print(f"  {help_note(type(error)) if is_known else f'documentation: {page}'}", file=sys.stderr)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, default=str, indent=2))


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], *, as_json: bool) -> None:
    """Print rows as a table with these columns, or as a JSON list of objects."""
    listed = [{column: row.get(column) for column in columns} for row in rows]
    if as_json:
        print_json(listed)
        return
    cells = [[show_value(row[column], column) for column in columns] for row in listed]
    for line in format_table([list(columns), *cells]):
        print(line)
    if not listed:
        print("(none)")


def format_table(lines: Sequence[Sequence[str]]) -> list[str]:
    """Lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def show_value(value: object, column: str = "") -> str:
    """A value for people."""
    if value is None:
        return "-"
    if column in _PAYLOADS:
        return printable(json.dumps(value, ensure_ascii=False))
    if isinstance(value, float):
        if column not in _AGES:
            return f"{value:.1f}"
        return show_seconds(value).replace(" ", "") if value else "-"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return printable(str(value))


def confirm(question: str, *, yes: bool) -> bool:
    """Ask a person; without a terminal only --yes is an answer."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question}: nobody can be asked here: add --yes")
    print(f"{question}? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
