"""The output of jobs: a table for people, JSON for programs. Text from jobs never speaks to the terminal."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

__all__ = ["print_json", "print_rows", "show"]


def print_json(value: object) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, default=_json, indent=2))


def _json(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def print_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Print rows as a table with these columns; numbers to the right."""
    listed = list(rows)
    cells = [[show(row.get(column)) for column in columns] for row in listed]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    right = [any(isinstance(row.get(column), int | float) for row in listed) for column in columns]
    for line in [list(columns), *cells]:
        padded = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        print("  ".join(padded).rstrip())
    if not listed:
        print("(none)")


def show(value: object) -> str:
    """A value as text of one line that can be printed anywhere."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    return "".join(c if c.isprintable() else "?" for c in str(value))
