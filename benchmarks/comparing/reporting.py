"""The measurements of `compare` as tables."""

from collections.abc import Callable, Iterator, Sequence

from benchmarks.comparing.measuring import Figures
from benchmarks.comparing.rows import EMPTY, STANDARD, Row
from benchmarks.harness.tables import Cell, Spread, Table

__all__ = ["Measured", "make_tables"]

Measured = dict[str, dict[str, list[Figures]]]
"""The figures of each round, by row and by checkout."""

_METRICS = {
    "rate": "jobs/s",
    "postgres_us": "Postgres µs a job",
    "worker_us": "worker or sender µs a job",
    "wal_bytes": "WAL bytes a job",
    "stored_bytes": "stored bytes a job",
    "median_ms": "median ms",
    "worst_ms": "worst ms",
}


def make_tables(rows: Sequence[Row], measured: Measured, names: Sequence[str]) -> Iterator[Table]:
    """Yield the ratios of all metrics, a table for each metric, and the ratios within each checkout."""
    if len(names) == 2:
        yield _overview(rows, measured, names)
    for key, title in _METRICS.items():
        table = Table(title, ("work", *names, *(["new/old"] if len(names) == 2 else [])))
        for row in rows:
            values = {name: _values(measured[row.name][name], key) for name in names}
            if all(values.values()):
                table.add(row.name, *_cells([values[name] for name in names]))
        if table.rows:
            yield table
    within = _table_within(rows, measured, names)
    if within.rows:
        yield within


def _values(figures: Sequence[Figures], key: str) -> list[float]:
    found = [getattr(each, key) for each in figures]
    return [value for value in found if value is not None]


def _cells(values: Sequence[list[float]]) -> list[Cell]:
    cells: list[Cell] = [Spread.of(each) for each in values]
    if len(values) == 2:
        cells.append(_ratio(values[0], values[1]))
    return cells


def _ratio(values: Sequence[float], base: Sequence[float]) -> Spread | None:
    """Return the ratios of the rounds; None if there are none, because a meter could not be read.

    The runs of one round follow each other, so drift of the machine hardly affects their ratio.
    """
    ratios = [value / other for value, other in zip(values, base, strict=False) if other]
    return Spread.of(ratios) if ratios else None


def _overview(rows: Sequence[Row], measured: Measured, names: Sequence[str]) -> Table:
    """Return the median of new/old for each row and metric."""
    table = Table("New/old, medians of the rounds", ("work", *_METRICS.values()))
    for row in rows:
        cells: list[Cell] = []
        for key in _METRICS:
            new, old = (_values(measured[row.name][name], key) for name in names)
            ratio = _ratio(new, old)
            cells.append(None if ratio is None else ratio.median)
        table.add(row.name, *cells)
    return table


def _table_within(rows: Sequence[Row], measured: Measured, names: Sequence[str]) -> Table:
    table = Table("Ratios within one checkout", ("ratio", *names))
    comparisons: tuple[tuple[str, str, str, Callable[[str], bool]], ...] = (
        (STANDARD, "rate", "jobs/s", lambda name: name.startswith("keyed drain")),
        (STANDARD, "postgres_us", "Postgres µs", lambda name: name.startswith("keyed drain")),
        (EMPTY, "median_ms", "median", lambda name: name.startswith("claim") and name != EMPTY),
    )
    for base, key, what, belongs in comparisons:
        if base not in measured:
            continue
        for row in rows:
            if belongs(row.name):
                cells = [
                    _ratio(_values(measured[row.name][name], key), _values(measured[base][name], key))
                    for name in names
                ]
                if None not in cells:
                    table.add(f"{what}: {row.name} / {base}", *cells)
    return table
