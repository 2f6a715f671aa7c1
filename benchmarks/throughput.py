"""How many jobs a second?

send    single sends, one after the other and 10 concurrent
insert  bulk
drain   jobs that are queued already: unbatched (concurrency 10) and batched (prefetch 1000, or handlers that take
        lists), with and without history, by one process and by two, under each policy
steady  10 senders and a worker at full speed

`--only` takes parts of the row names, such as "policy" or "send". Takes about 7 minutes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from benchmarks.harness.draining import drain
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import summarize
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS
from benchmarks.harness.report import Report
from benchmarks.harness.runs import measure_bulk, measure_sends, measure_steady
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Spread, Table

__all__ = ["measure"]

_UNBATCHED: dict[str, Any] = {"concurrency": 10}
_BATCHED: dict[str, Any] = {"concurrency": 10, "prefetch": 1000}
_LEAN: dict[str, Any] = {**_BATCHED, "keep_completed": False}
_POLICIES = ("standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo")
_NO = "no"  # one statement and one commit for each job
_YES = "yes"

Result = dict[str, Any]


@attrs.frozen
class _Measure:
    """One row of the table."""

    name: str
    batched: str
    run: Callable[[], Result]


def measure(server: Server, options: Options) -> Report:
    """Measure all rows."""
    report = Report("throughput")
    measures = [each for each in _measures(server, options) if options.includes(each.name)]
    results: dict[str, list[Result]] = {each.name: [] for each in measures}
    for repeat in range(options.repeats):
        for each in measures:
            result = each.run()
            results[each.name].append(result)
            report.noise.add(each.name, result["noise"])
            log(f"{repeat + 1}/{options.repeats} {each.name}: {result['rate']:,.0f} jobs/s")
    report.tables.append(_table(measures, results, report))
    report.plots += _plots(measures, results)
    report.measures |= results
    return report


def _table(measures: list[_Measure], results: dict[str, list[Result]], report: Report) -> Table:
    columns = ("work", "batched", "jobs/s", "trioboss CPU µs a job", "Postgres CPU µs a job", "wait p50 ms")
    table = Table("Throughput", columns)
    for each in sorted(measures, key=lambda each: each.batched):
        found = results[each.name]
        table.add(
            each.name,
            each.batched,
            Spread.of(result["rate"] for result in found),
            _spread(found, "python_us"),
            _spread(found, "postgres_us"),
            _spread(found, "wait_ms"),
        )
    table.notes += [
        "batched: many jobs in one statement and one commit; each job still has its own handler call, 10 at a time",
        "drain: from the 1000th handler entry to the last durable completion",
        *report.noise.notes(),
    ]
    return table


def _spread(found: list[Result], name: str) -> Spread | None:
    values = [result[name] for result in found if result.get(name) is not None]
    return Spread.of(values) if values else None


def _plots(measures: list[_Measure], results: dict[str, list[Result]]) -> Iterator[Bars]:
    for batched, title in ((_NO, "Unbatched"), (_YES, "Batched")):
        bars = []
        for each in measures:
            if each.batched == batched:
                spread = Spread.of(result["rate"] for result in results[each.name])
                bars.append(Bar(each.name, spread.median, spread.low, spread.high))
        if bars:
            yield Bars(title, "jobs/s", bars)


def _measures(server: Server, options: Options) -> Iterator[_Measure]:
    jobs = options.size(22_000, 2_000)
    yield from _sending(server, options)

    def draining(settings: dict[str, Any], workers: int = 1, count: int = jobs) -> Callable[[], Result]:
        return lambda: _drain(server, settings, count, workers)

    yield _Measure("drain, concurrency 10", _NO, draining(_UNBATCHED))
    yield _Measure("drain, concurrency 10, two processes", _NO, draining(_UNBATCHED, 2))
    yield _Measure("drain, keep_completed off", _NO, draining({**_UNBATCHED, "keep_completed": False}))
    yield _Measure("drain, prefetch 1000", _YES, draining(_BATCHED))
    yield _Measure("drain, prefetch 1000, two processes", _YES, draining(_BATCHED, 2))
    yield _Measure("drain, prefetch 1000, keep_completed off", _YES, draining(_LEAN))
    yield _Measure("drain, prefetch 1000, keep_completed off, two processes", _YES, draining(_LEAN, 2))
    batches = {"concurrency": 2, "batch_size": 500}
    yield _Measure("drain, handler takes lists of 500", _YES, draining(batches))

    yield _Measure("steady, 10 senders and a worker", _NO, lambda: _steady(server, _UNBATCHED, options))
    yield _Measure(
        "steady, 10 senders and a worker, prefetch", _YES, lambda: _steady(server, _BATCHED, options)
    )

    for policy in _POLICIES:
        settings = {**_BATCHED, "policy": policy, "keys": jobs}
        yield _Measure(f"drain, policy {policy}, each job its own key", _YES, draining(settings))
    for keys in (1, 100, 10_000):
        settings = {**_BATCHED, "policy": "key_strict_fifo", "keys": keys}
        # With one key only one job runs at a time: the row measures the latency from one job to the next.
        count = jobs if keys > 1 else jobs // 10
        yield _Measure(
            f"drain, strict FIFO on {keys:,} keys", _YES if keys > 1 else _NO, draining(settings, 1, count)
        )


def _sending(server: Server, options: Options) -> Iterator[_Measure]:
    seconds = options.size(3.0, 0.5)
    bulk = options.size(100_000, 5_000)

    def single(senders: int) -> Callable[[], Result]:
        def run() -> Result:
            result = measure_sends(server, TRIOBOSS, {}, senders=senders, seconds=seconds)
            return {**result, "python_us": result["client_us"]}

        return run

    def in_bulk() -> Result:
        result = measure_bulk(server, TRIOBOSS, {}, count=bulk)
        return {**result, "python_us": result["client_us"]}

    yield _Measure("send, one after the other", _NO, single(1))
    yield _Measure("send, 10 concurrent", _NO, single(10))
    yield _Measure(f"insert of {bulk:,} jobs", _YES, in_bulk)


def _drain(server: Server, settings: dict[str, Any], jobs: int, workers: int) -> Result:
    template = TRIOBOSS.template(server, settings, jobs)
    result = drain(server, TRIOBOSS, settings, template, jobs=jobs, workers=workers)
    return {**result, "python_us": result["worker_us"]}


def _steady(server: Server, settings: dict[str, Any], options: Options) -> Result:
    result = measure_steady(server, TRIOBOSS, settings, seconds=options.size(10.0, 1.0))
    waits = summarize(result.pop("ms"))
    del result["at"]
    return {**result, "rate": result["handled"], "wait_ms": waits.p50, "wait_p99_ms": waits.p99}
