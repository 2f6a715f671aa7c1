"""One measurement of `compare`: a fresh database, one program, and the meters around its measured part."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from benchmarks.comparing.checkout import Checkout
from benchmarks.comparing.rows import Row
from benchmarks.harness.meters import Meter
from benchmarks.harness.percentiles import median, summarize
from benchmarks.harness.processes import Program
from benchmarks.harness.server import Server, run_sql

__all__ = ["Figures", "measure_row"]

_TIMEOUT = 600.0
_SETTLE = 0.5  # seconds between the start of the programs and the measured part

# All relations that a checkout has made, whatever their names: tables, indexes, TOAST.
_SIZE = """
    select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"""


@attrs.frozen
class Figures:
    """The figures of one run. A figure that does not belong to the row is None."""

    noise: float
    rate: float | None = None
    postgres_us: float | None = None
    worker_us: float | None = None
    wal_bytes: float | None = None
    stored_bytes: float | None = None
    median_ms: float | None = None
    worst_ms: float | None = None
    p99_ms: float | None = None


def measure_row(server: Server, checkout: Checkout, row: Row) -> Figures:
    """Measure one row on one checkout."""
    template = _template(server, checkout, row)
    with server.database(template) as dsn:
        if row.spec["role"] == "work":
            return _measure_latency(server, checkout, row, dsn)
        with checkout.run({**row.spec, "dsn": dsn}) as program, _metered(server, [program]) as metered:
            metered.done = program.request({"do": "go"}, "done", _TIMEOUT)
        figures = metered.figures(row)
        if row.measures_storage:
            grown = _growth(server, checkout, row, dsn)
            return attrs.evolve(figures, stored_bytes=grown / metered.done["completed"])
        return figures


def _template(server: Server, checkout: Checkout, row: Row, *, empty: bool = False) -> str:
    steps = () if empty else row.steps
    spec = {"options": row.options, "steps": steps}

    def fill(dsn: str) -> None:
        checkout.fill({**spec, "dsn": dsn})

    return server.template(f"{checkout.name}: {row.options} {steps}", fill).name


@attrs.define(eq=False)
class _Metered:
    """The readings around the measured part of a program."""

    done: dict[str, Any] = attrs.field(factory=dict)
    meter: Meter | None = None
    wal: int = 0

    def figures(self, row: Row) -> Figures:
        assert self.meter is not None
        if not row.counts_jobs:
            found = summarize(self.done["ms"])
            return Figures(
                self.meter.noise, median_ms=median(self.done["ms"]), worst_ms=found.max, p99_ms=found.p99
            )
        jobs = self.done["jobs"]
        return Figures(
            self.meter.noise,
            rate=jobs / self.done["seconds"],
            postgres_us=self.meter.postgres / jobs * 1e6,
            worker_us=self.meter.programs / jobs * 1e6,
            wal_bytes=self.wal / jobs,
        )


@contextmanager
def _metered(server: Server, programs: list[Program]) -> Iterator[_Metered]:
    """Wait until the programs are ready, read the meters before and after the block, and let the programs check."""
    metered = _Metered()
    for program in programs:
        program.wait("ready", _TIMEOUT)
    time.sleep(_SETTLE)
    wal = server.wal_position()
    with Meter(server.postmaster, lambda: sum(program.cpu() for program in programs)) as metered.meter:
        yield metered
    metered.wal = server.wal_position() - wal
    for program in programs:
        program.request({"do": "check"}, "checked", _TIMEOUT)


def _measure_latency(server: Server, checkout: Checkout, row: Row, dsn: str) -> Figures:
    """Send and handle in two processes."""
    with (
        checkout.run({**row.spec, "dsn": dsn}) as worker,
        checkout.run({**row.spec, "dsn": dsn, "role": "produce"}) as producer,
        _metered(server, [worker, producer]) as metered,
    ):
        worker.send({"do": "go"})
        producer.request({"do": "go"}, "done", _TIMEOUT)
        metered.done = worker.wait("done", _TIMEOUT)
    return metered.figures(row)


def _growth(server: Server, checkout: Checkout, row: Row, dsn: str) -> int:
    """Return by how many bytes all relations are larger than in an empty database, without dead rows."""
    with server.database(_template(server, checkout, row, empty=True)) as empty:
        before = run_sql(empty, "vacuum full", _SIZE)[0][0]
    after = run_sql(dsn, "vacuum full", _SIZE)[0][0]
    return int(after - before)
