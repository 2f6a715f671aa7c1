"""Does the cost of a job grow with what is in the database?

A claim of 10 jobs and a drain, with 1,000 to 1,000,000 jobs queued, with 100,000 jobs behind one blocked key, with
5,000,000 archived rows and with 10,000 queues. Then drains of 60 s beside a transaction that stays open
("transaction"), compared with the same drains without it.

`x base` near 1 means that the cost does not grow. `--only` takes parts of the row names. Takes about 15 minutes.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import psycopg
import trio

from benchmarks.harness.draining import drain, drain_for
from benchmarks.harness.filling import block_key, fill_archive, fill_jobs, fill_queues, measure_claims
from benchmarks.harness.meters import Meter
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import median
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server, Template
from benchmarks.harness.tables import Spread, Table

__all__ = ["measure"]

_WORKER: dict[str, Any] = {"concurrency": 10, "prefetch": 1000}
_IN_ORDER: dict[str, Any] = {**_WORKER, "policy": "key_strict_fifo"}
_SHORT = 5_000  # a backlog of fewer jobs is drained to the end
_CLAIMS = 100

Result = dict[str, Any]


@attrs.frozen
class _Situation:
    """A content of the database. `base` names the situation that it is compared with."""

    name: str
    base: str
    settings: dict[str, Any]
    jobs: int
    """How many jobs can be claimed."""
    fill: Callable[[str], None]
    drains: bool = True
    """Whether all jobs can be drained."""


def measure(server: Server, options: Options) -> Report:
    """Measure claims and drains in each situation, and drains beside an old transaction."""
    report = Report("growth")
    situations = [each for each in _situations(options) if options.includes(each.name)]
    results: dict[str, list[Result]] = {each.name: [] for each in situations}
    for repeat in range(options.repeats):
        for each in situations:
            result = _measure_situation(server, each)
            results[each.name].append(result)
            report.noise.add(each.name, result["noise"])
            found = f"claim {result['claim_ms']:.2f} ms, {result['speed']:,.0f} jobs/s"
            log(f"{repeat + 1}/{options.repeats} {each.name}: {found}")
    table = _table(situations, results)
    if options.includes("transaction"):
        _add_old_transactions(server, options, report, table)
    table.notes += report.noise.notes()
    report.tables.append(table)
    report.measures |= results
    report.plots.append(Bars("Claim of 10 jobs", "ms", list(_bars(table, 1))))
    report.plots.append(Bars("Drain: handler entries", "jobs/s", list(_bars(table, 3))))
    return report


def _table(situations: list[_Situation], results: dict[str, list[Result]]) -> Table:
    columns = ("in the database", "claim of 10, ms", "x base", "jobs/s", "x base ", "Postgres µs a job")
    table = Table("Growth", columns)
    medians = {
        name: {key: median(result[key] for result in found) for key in ("claim_ms", "speed")}
        for name, found in results.items()
    }
    for each in situations:
        found, base = results[each.name], medians.get(each.base)
        mine = medians[each.name]
        table.add(
            each.name,
            Spread.of(result["claim_ms"] for result in found),
            mine["claim_ms"] / base["claim_ms"] if base else None,
            Spread.of(result["speed"] for result in found),
            mine["speed"] / base["speed"] if base else None,
            _spread(result["postgres_us"] for result in found),
        )
    table.notes += [
        "batched (prefetch 1000); jobs/s: the first 10,000 handler entries after a warm-up of 1,000",
        f"fewer than {_SHORT:,} jobs are drained to their last durable completion instead",
    ]
    return table


def _spread(values: Iterable[float | None]) -> Spread | None:
    """Return the spread of the known values; a drain that ended before its meter was read has none."""
    known = [value for value in values if value is not None]
    return Spread.of(known) if known else None


def _bars(table: Table, column: int) -> Iterator[Bar]:
    for row in table.rows:
        if isinstance(spread := row[column], Spread):
            yield Bar(str(row[0]), spread.median, spread.low, spread.high)


def _situations(options: Options) -> Iterator[_Situation]:
    """Yield the situations; a base comes before those that are compared with it."""
    size = options.size
    some = size(12_000, 1_200)
    few = f"{some:,} jobs"
    for jobs in (size(1_000, 300), some, size(100_000, 2_000), size(1_000_000, 4_000)):
        yield _Situation(f"{jobs:,} jobs", few, _WORKER, jobs, fill_jobs(jobs))
    plain = f"{some:,} jobs on as many keys, strict FIFO"
    yield _Situation(plain, plain, _IN_ORDER, some, fill_jobs(some, keyed=True))
    blocked = size(100_000, 2_000)
    name = f"{some:,} jobs on as many keys, and {blocked:,} behind one blocked key"
    yield _Situation(name, plain, _IN_ORDER, some, lambda dsn: block_key(dsn, blocked, some), drains=False)
    archived = size(5_000_000, 20_000)
    name = f"{some:,} jobs, and {archived:,} archived"
    yield _Situation(name, few, _WORKER, some, lambda dsn: fill_archive(dsn, archived, some))
    queues = size(10_000, 500)
    yield _Situation(
        f"{some:,} jobs, and {queues:,} queues",
        few,
        _WORKER,
        some,
        lambda dsn: fill_queues(dsn, queues, some),
    )


def _measure_situation(server: Server, situation: _Situation) -> Result:
    empty = TRIOBOSS.template(server, situation.settings)

    def fill(dsn: str) -> dict[str, Any]:
        situation.fill(dsn)
        return dict(empty.facts)

    template: Template = server.template(situation.name, fill, empty.name)
    with server.database(template.name) as dsn, Meter(server.postmaster) as meter:
        claims = trio.run(measure_claims, dsn, min(_CLAIMS, situation.jobs // 10))
    is_long = situation.jobs >= _SHORT or not situation.drains
    result = drain(server, TRIOBOSS, situation.settings, template, jobs=situation.jobs, entries_only=is_long)
    speed = result["entry_rate"] if is_long else result["rate"]
    return {**result, "speed": speed, "claim_ms": median(claims), "noise": max(meter.noise, result["noise"])}


# -- an old transaction


@contextmanager
def _old_transaction(dsn: str) -> Iterator[None]:
    """Hold a snapshot open: vacuum cannot remove any row that was deleted after it was taken."""
    with psycopg.connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from trioboss.live_job")
        yield


def _add_old_transactions(server: Server, options: Options, report: Report, table: Table) -> None:
    size = options.size
    lean = {"keep_completed": False}
    unbatched, in_order = (
        {"concurrency": 10, **lean},
        {"concurrency": 10, "policy": "key_strict_fifo", **lean},
    )
    for name, settings, jobs in (
        ("a drain", unbatched, size(500_000, 20_000)),
        ("a drain, batched", {**_WORKER, **lean}, size(2_000_000, 60_000)),
        ("a drain, strict FIFO, a key for each job", {**in_order, "keys": 10_000_000}, size(400_000, 10_000)),
        ("a drain, strict FIFO on 100 keys", {**in_order, "keys": 100}, size(200_000, 10_000)),
    ):
        _add_old_transaction(server, options, report, table, _Drain(name, settings, jobs))


@attrs.frozen
class _Drain:
    """A drain of a backlog that lasts longer than it is measured."""

    name: str
    settings: dict[str, Any]
    jobs: int


def _add_old_transaction(
    server: Server, options: Options, report: Report, table: Table, drained: _Drain
) -> None:
    seconds = options.size(60.0, 2.0)
    share = seconds / 5
    name, settings = drained.name, drained.settings
    template = TRIOBOSS.template(server, settings, drained.jobs)
    without = drain_for(server, TRIOBOSS, settings, template, seconds=share)
    beside = drain_for(server, TRIOBOSS, settings, template, seconds=seconds, beside=_old_transaction)
    base = len(without["at"]) / share
    first, last = (_rate(beside["at"], since, share) for since in (0.0, seconds - share))
    log(f"{name}: {first:,.0f} jobs/s at first, {last:,.0f} at last, {base:,.0f} without an old transaction")
    table.add(name, None, None, base, 1.0, None)
    table.add(
        f"the same for {seconds:g} s beside an old transaction: first fifth",
        None,
        None,
        first,
        first / base,
        None,
    )
    table.add("the same: last fifth", None, None, last, last / base, None)
    report.noise.add(f"{name}, without an old transaction", without["noise"])
    report.noise.add(f"{name}, old transaction", beside["noise"])
    by_second = [_rate(beside["at"], second, 1.0) for second in range(round(seconds))]
    report.measures[f"{name}, old transaction"] = {
        "without": base,
        "first": first,
        "last": last,
        "by_second": by_second,
    }


def _rate(entered: list[float], since: float, seconds: float) -> float:
    return sum(1 for at in entered if since <= at < since + seconds) / seconds
