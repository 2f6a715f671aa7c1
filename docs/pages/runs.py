"""The published runs of the benchmarks, as values: what was run, with which versions, and the tables."""

import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs

__all__ = ["PUBLISHED", "Run", "Table", "find_run", "read_runs"]

PUBLISHED = Path(__file__).parent.parent.parent / "benchmarks" / "results" / "published"

_RANGE = re.compile(r" \([\d.,]+–[\d.,]+\)$")  # noqa: RUF001 (it is the dash of the summaries)


@attrs.frozen
class Table:
    """A table of a run: medians, without their ranges."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def select(self, columns: Sequence[int]) -> "Table":
        """The same with some of the columns."""
        rows = tuple(tuple(row[each] for each in columns) for row in self.rows)
        return attrs.evolve(self, columns=tuple(self.columns[each] for each in columns), rows=rows)

    def has_row(self, begin: str) -> bool:
        """Whether a row begins with this text."""
        return any(row[0].startswith(begin) for row in self.rows)


@attrs.frozen
class Run:
    """A published run."""

    name: str
    """That of its file."""
    at: str
    """When its last part was run."""
    cores: str
    rounds: str
    postgres: str
    trioboss: str
    tables: tuple[Table, ...]

    @property
    def kind(self) -> str:
        """The command that was run."""
        return self.name.partition("-")[0]

    def get_table(self, heading: str, row: str = "") -> Table | None:
        """The table whose heading begins with these words, if a row of it begins with ``row``: T3 is not T3x2."""
        begin = re.compile(rf"{re.escape(heading)}(?!\w)" if heading else "")
        found = (table for table in self.tables if begin.match(table.heading) and table.has_row(row))
        return next(found, None)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(_RANGE.sub("", cell.strip()) for cell in line.strip().strip("|").split("|"))


def _tables(text: str) -> Iterator[Table]:
    for section in text.split("\n### ")[1:]:
        heading, _, rest = section.partition("\n")
        lines = [line for line in rest.splitlines() if line.startswith("|")]
        notes = tuple(line.removeprefix("- ") for line in rest.splitlines() if line.startswith("- "))
        if lines:
            yield Table(heading, _cells(lines[0]), tuple(_cells(line) for line in lines[2:]), notes)


def _read(path: Path) -> Run:
    text = path.read_text("utf-8")

    def find(pattern: str) -> str:
        return next(iter(re.findall(pattern, text)[-1:]), "")

    return Run(
        name=path.stem,
        at=find(r"\((\d{4}-\d\d-\d\d \d\d:\d\d) UTC"),
        cores=find(r"machine: (\d+) cores"),
        rounds=find(r"--repeats (\d+)"),
        postgres=find(r"versions: .*postgres ([\d.]+)"),
        trioboss=find(r"versions: .*trioboss ([\w.]+)"),
        tables=tuple(_tables(text)),
    )


@functools.cache
def read_runs(folder: Path = PUBLISHED) -> tuple[Run, ...]:
    """All published runs, the newest first."""
    return tuple(sorted(map(_read, folder.glob("*.md")), key=lambda run: run.at, reverse=True))


def find_run(kind: str, heading: str, row: str = "", runs: Sequence[Run] | None = None) -> tuple[Run, Table]:
    """The newest run of a command that has a table with this heading, and in it a row that begins so."""
    for run in read_runs() if runs is None else runs:
        if run.kind == kind and (table := run.get_table(heading, row)) is not None:
            return run, table
    raise LookupError(f"no published run of {kind} has a table {heading!r} with a row {row!r}")
