"""What do people who look at the dashboard cost a worker?

Jobs are sent at a steady rate of 1,000 a second. `alternating`: in one run 20 people open the overview for six
seconds, close it for six seconds, and so on, thirty times; each time with them is compared with the times without them
before and after it. Jobs a second and p99 are to change by less than 5 %: the median of these ratios, and the
interval that has the median of all such ratios with a probability of 95 %. Takes 7 minutes.

`rounds`: the same without the dashboard, while it is served and 20 people have the overview open, and while they have
eight different pages open; they alternate, each in a database of its own. This measures CPU. Then the CPU of
one sample of the statistics that maintenance keeps, over all jobs of a run, and how long it takes until an open page
shows a change, which is to be less than 2 s. Takes 6 minutes.
"""

import http.client
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import attrs
import psycopg

from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import interval_of_median, median, summarize
from benchmarks.harness.processes import Program, python_module, started
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS
from benchmarks.harness.report import Report
from benchmarks.harness.runs import measure_latency
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Spread, Table
from trioboss.postgres.blocking import execute_blocking
from trioboss.sql import Catalog
from trioboss.store import Context, make_store

__all__ = ["measure", "time_until_seen"]

_WORKER: dict[str, Any] = {"concurrency": 10}
_RATE = 1000.0
_READERS = 20
_OVERVIEW = ("/",)
_PAGES = (
    "/",
    "/queues/{}",
    "/queues/{}/jobs",
    "/queues/{}/jobs?state=active",
    "/workers",
    "/events",
    "/schedules",
    "/audit",
)
_PHASE = 6.0  # seconds for which people come, or go
_PHASES = 60
_LEFT_OUT = 1.0  # seconds at the begin of each
_MOST_CHANGE = 0.05  # that people at the dashboard may make
_TRIES = 10  # in each run
_MOST_DELAY = 2.0  # seconds until an open page shows a change

Result = dict[str, Any]


def measure(server: Server, options: Options) -> Report:
    """Measure a worker without and with people, alternating, and a sample of the statistics."""
    report = Report("dashboard")
    if options.includes("alternating"):
        _measure_alternating(server, options, report)
    if options.includes("rounds"):
        _measure_rounds(server, options, report)
    return report


# -- one run, in which people come and go


@attrs.frozen
class _Phase:
    """A time in which the people had the overview open, or did not."""

    is_open: bool
    begin: float
    end: float


def _measure_alternating(server: Server, options: Options, report: Report) -> None:
    phases: list[_Phase] = []
    number = (
        options.size(_PHASES, 4) + 2
    )  # the first and the last are cut off by the begin and the end of the run
    found = measure_latency(
        server,
        TRIOBOSS,
        _WORKER,
        count=round(_RATE * number * _PHASE),
        rate=_RATE,
        beside=lambda dsn: _alternating_readers(dsn, phases),
        keep_due=True,
    )
    begin, end = min(found["due"]), max(found["due"])
    whole = [phase for phase in phases if phase.begin >= begin and phase.end <= end]
    figures = [(phase.is_open, _figures_of(phase, found)) for phase in whole]
    report.noise.add("alternating", found["noise"])
    report.tables.append(_alternating_table(figures, report))
    report.measures["alternating"] = [{"open": is_open, **each} for is_open, each in figures]


def _figures_of(phase: _Phase, found: Result) -> dict[str, float]:
    """The jobs that were due in a phase, without its first second, in which pages are opened or closed."""
    begin, end = phase.begin + _LEFT_OUT, phase.end
    rows = list(zip(found["due"], found["ms"], strict=True))
    summary = summarize(ms for due, ms in rows if begin <= due < end)
    handled = sum(begin <= due + ms / 1000 < end for due, ms in rows)
    return {"handled": handled / (end - begin), "p50": summary.p50, "p99": summary.p99}


def _alternating_table(figures: list[tuple[bool, dict[str, float]]], report: Report) -> Table:
    heading = ("", "without", "with", "ratio", "its 95 % interval")
    table = Table(f"{_READERS} people come and go beside a worker at {_RATE:.0f} jobs/s", heading)
    changes: dict[str, tuple[float, float, float]] = {}
    for label, field in (("jobs a second", "handled"), ("p50, ms", "p50"), ("p99, ms", "p99")):
        without = [each[field] for is_open, each in figures if not is_open]
        with_people = [each[field] for is_open, each in figures if is_open]
        ratios = [
            each[field] / ((before[field] + after[field]) / 2)
            for (_, before), (is_open, each), (_, after) in zip(
                figures, figures[1:], figures[2:], strict=False
            )
            if is_open
        ]
        low, high = interval_of_median(ratios)
        changes[field] = median(ratios) - 1, low - 1, high - 1
        table.add(
            label, Spread.of(without), Spread.of(with_people), Spread.of(ratios), f"{low:.3f} to {high:.3f}"
        )
    handled, p99 = changes["handled"], changes["p99"]
    is_met = abs(handled[0]) < _MOST_CHANGE and p99[0] < _MOST_CHANGE
    is_sure = max(-handled[1], handled[2], p99[2]) < _MOST_CHANGE
    table.notes += [
        f"{len(figures)} phases of {_PHASE:.0f} s, each with people compared with the two beside it",
        f"jobs a second change by {handled[0]:+.1%}, p99 by {p99[0]:+.1%} ({p99[1]:+.1%} to {p99[2]:+.1%}): "
        f"less than {_MOST_CHANGE:.0%} is {'' if is_met else 'NOT '}met"
        + ("" if is_sure == is_met else "; the interval reaches beyond it"),
        *report.noise.notes(),
    ]
    return table


@contextmanager
def _alternating_readers(dsn: str, phases: list[_Phase]) -> Iterator[None]:
    """The dashboard, and people who open the overview, close it, and so on, until the block ends."""
    over = threading.Event()

    def alternate(readers: Program) -> None:
        is_open = False
        while not over.is_set():
            begin = time.monotonic()
            readers.request({"do": "open" if is_open else "close"}, "opened" if is_open else "closed")
            over.wait(begin + _PHASE - time.monotonic())
            phases.append(_Phase(is_open, begin, time.monotonic()))
            is_open = not is_open

    with _served(dsn) as url:
        spec = {"url": url, "readers": _READERS, "paths": _OVERVIEW, "closed": True}
        with started(python_module("benchmarks.programs.page_readers"), spec) as readers:
            readers.wait("ready")
            thread = threading.Thread(target=alternate, args=(readers,))
            thread.start()
            try:
                yield
            finally:
                over.set()
                thread.join()


# -- rounds


def _measure_rounds(server: Server, options: Options, report: Report) -> None:
    count = round(_RATE * options.size(20.0, 1.0))
    results: dict[str, list[Result]] = {"without": [], "with": [], "pages": []}
    samples: list[float] = []
    seen: dict[str, list[float]] = {"delays": [], "messages": []}
    kinds = {
        "without": _no_readers,
        "with": lambda dsn: _readers(dsn, _OVERVIEW, seen),
        "pages": lambda dsn: _readers(dsn, _PAGES, seen),
    }
    for repeat in range(options.repeats):
        # In another order each time: none is always the first after the pause between two rounds.
        for name in _rotate(list(kinds), repeat):
            beside = kinds[name]
            found = measure_latency(
                server, TRIOBOSS, _WORKER, count=count, rate=_RATE, beside=beside, then=_timed(samples)
            )
            found["p99"], found["p50"] = summarize(found["ms"]).p99, summarize(found["ms"]).p50
            results[name].append(found)
            report.noise.add(name, found["noise"])
            log(
                f"{repeat + 1}/{options.repeats} {name} readers: p50 {found['p50']:.2f} ms, p99 {found['p99']:.2f} ms"
            )
    table = _table(results, "with", "people", count, report)
    pages = _table(results, "pages", f"people, who have {len(_PAGES)} different pages open,", count, report)
    table.notes += [_note_of_samples(results, samples, count), *_notes_of_pages(seen), *report.noise.notes()]
    report.tables += [table, pages]
    report.measures |= {name: [_without_samples(each) for each in found] for name, found in results.items()}


def _rotate(names: list[str], by: int) -> list[str]:
    """The names, beginning with another one each time."""
    first = by % len(names)
    return names[first:] + names[:first]


def _notes_of_pages(seen: dict[str, list[float]]) -> list[str]:
    delays, messages = seen["delays"], seen["messages"]
    met = "" if max(delays) < _MOST_DELAY else "NOT "
    return [
        f"an open page shows a change after {Spread.of(delays)} s, in {len(delays)} tries after the runs: "
        f"less than {_MOST_DELAY:.0f} s is {met}met",
        f"each person received {Spread.of(messages)} messages a run",
    ]


def _note_of_samples(results: dict[str, list[Result]], samples: list[float], count: int) -> str:
    a_job = median(samples) / count
    load = median((each["worker_cpu"] + each["postgres_cpu"]) / count for each in results["without"])
    return (
        f"a sample of all jobs of a run takes {a_job * 1e6:.2f} µs a job, {a_job / load:.1%} of what a job costs the "
        "worker and Postgres"
    )


def _table(results: dict[str, list[Result]], kind: str, who: str, count: int, report: Report) -> Table:
    table = Table(f"{_READERS} {who} beside a worker at {_RATE:.0f} jobs/s", ("", "without", "with", "ratio"))
    changes: dict[str, float] = {}
    for label, field in (
        ("jobs a second", "handled"),
        ("p50, ms", "p50"),
        ("p99, ms", "p99"),
        ("worker CPU, s", "worker_cpu"),
        ("Postgres CPU, s", "postgres_cpu"),
    ):
        without, with_readers = ([each[field] for each in results[name]] for name in ("without", kind))
        pairs = zip(with_readers, without, strict=True)
        ratio = Spread.of(a / max(b, 1e-9) for a, b in pairs)
        table.add(label, Spread.of(without), Spread.of(with_readers), ratio)
        changes[field] = ratio.median - 1
    is_met = abs(changes["handled"]) < _MOST_CHANGE and changes["p99"] < _MOST_CHANGE
    table.notes += [
        f"jobs a second change by {changes['handled']:+.1%}, p99 by {changes['p99']:+.1%}: "
        f"less than {_MOST_CHANGE:.0%} is {'' if is_met else 'NOT '}met",
        f"all {count:,} jobs of each run were handled",
    ]
    return table


def _without_samples(result: Result) -> Result:
    return {name: value for name, value in result.items() if name != "ms"}


@contextmanager
def _no_readers(dsn: str) -> Iterator[None]:
    yield


def time_until_seen(url: str, dsn: str, tries: int) -> list[float]:
    """Seconds from the commit of a new queue until the overview shows it to a person who has it open."""
    parts, delays = urlsplit(url), []
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)) as stream:
        stream.request("GET", "/", headers={"Accept": "text/event-stream"})
        lines = stream.getresponse()
        with psycopg.connect(dsn, autocommit=True) as connection:
            for number in range(tries):
                time.sleep(random.random())  # the page is read once a second: at any moment of that second
                name = f"seen/{number}-{time.monotonic_ns()}"
                connection.execute("INSERT INTO trioboss.queue (name) VALUES (%s)", [name])
                begun = time.monotonic()
                while name.encode() not in lines.readline():
                    pass
                delays.append(time.monotonic() - begun)
    return delays


@contextmanager
def _readers(dsn: str, paths: Sequence[str], seen: dict[str, list[float]]) -> Iterator[None]:
    """The dashboard in a process of its own, and people who have it open in another; at the end, how live it is."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        ((queue,),) = connection.execute("SELECT name FROM trioboss.queue ORDER BY name LIMIT 1").fetchall()
    given = [path.format(quote(queue.replace("/", "~"))) for path in paths]
    with _served(dsn) as url:
        spec = {"url": url, "readers": _READERS, "paths": given}
        with started(python_module("benchmarks.programs.page_readers"), spec) as readers:
            readers.wait("ready")
            yield
            messages = readers.request({"do": "report"}, "received")["messages"]
            seen["messages"].append(messages / _READERS)
            seen["delays"] += time_until_seen(url, dsn, _TRIES)


@contextmanager
def _served(dsn: str) -> Iterator[str]:
    """The dashboard in a process of its own; its address."""
    command = [sys.executable, "-m", "trioboss", "dashboard", "--port", "0", "--dsn", dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            yield served.stdout.readline().split()[4]
        finally:
            served.terminate()


def _cpu_of(pid: int) -> float:
    """CPU seconds of one process, to the nanosecond. The clock would measure what else the machine does."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _timed(samples: list[float]) -> Any:
    """After a run: the CPU seconds of one sample of everything that happened in it."""

    def sample(dsn: str) -> None:
        store = make_store(Context(Catalog("trioboss")))
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE trioboss.archive, trioboss.live_job")
            connection.execute(
                "UPDATE trioboss.sampling SET counted = now() - interval '10 min', xid = '3'::xid8, taken_by = NULL"
            )
            begun = _cpu_of(connection.info.backend_pid)
            execute_blocking(connection, store.statistics.sample(), connection)
            samples.append(_cpu_of(connection.info.backend_pid) - begun)

    return sample
