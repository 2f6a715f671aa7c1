"""Figures as text: tables that are readable in a terminal and valid Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from benchmarks.harness.percentiles import median

__all__ = ["Cell", "Spread", "Table", "spell"]


@attrs.frozen
class Spread:
    """The median of repeated measurements, the lowest and the highest."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Return the spread of these values."""
        found = list(values)
        return cls(median(found), min(found), max(found), len(found))

    def __str__(self) -> str:
        if self.count == 1:
            return spell(self.median)
        return f"{spell(self.median)} ({spell(self.low)}–{spell(self.high)})"  # noqa: RUF001


Cell = str | int | float | Spread | None


def spell(number: float) -> str:
    """Return a number with three significant digits."""
    if number != number:
        return "–"  # noqa: RUF001
    size = abs(number)
    if isinstance(number, int) or size >= 1000:
        return f"{round(number):,}"
    if size >= 100:
        return f"{number:.0f}"
    if size >= 10:
        return f"{number:.1f}"
    return f"{number:.2f}" if size >= 0.095 or not size else f"{number:.2g}"


def _text(cell: Cell) -> str:
    if cell is None:
        return ""
    return spell(cell) if isinstance(cell, int | float) else str(cell)


@attrs.define
class Table:
    """Rows under a heading. The notes below them state what a reader needs to interpret the figures."""

    title: str
    columns: Sequence[str]
    rows: list[list[Cell]] = attrs.field(factory=list)
    notes: list[str] = attrs.field(factory=list)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Table":
        """Return the table that a raw file of results holds."""
        rows: list[list[Cell]] = [
            [Spread(**cell) if isinstance(cell, dict) else cell for cell in row] for row in stored["rows"]
        ]
        return cls(stored["title"], stored["columns"], rows, stored["notes"])

    def add(self, *cells: Cell) -> None:
        """Add a row with a cell for each column."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{self.title}: {len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(list(cells))

    def render(self) -> str:
        """Return the table as Markdown with aligned columns."""
        texts = [[_text(cell) for cell in row] for row in self.rows]
        widths = [
            max(len(row[place]) for row in (self.columns, *texts)) for place in range(len(self.columns))
        ]
        numeric = [self._is_numeric(place) for place in range(len(self.columns))]
        lines = [self._line(self.columns, widths, numeric)]
        rules = (
            "-" * (width - 1) + ":" if right else "-" * width
            for width, right in zip(widths, numeric, strict=True)
        )
        lines.append("| " + " | ".join(rules) + " |")
        lines += [self._line(row, widths, numeric) for row in texts]
        notes = [f"- {note}" for note in self.notes]
        return "\n".join([f"### {self.title}", "", *lines, *(["", *notes] if notes else [])])

    def _is_numeric(self, place: int) -> bool:
        cells = [row[place] for row in self.rows if row[place] is not None]
        return bool(cells) and not any(isinstance(cell, str) for cell in cells)

    @staticmethod
    def _line(texts: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
        padded = (
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(texts, widths, numeric, strict=True)
        )
        return "| " + " | ".join(padded) + " |"
