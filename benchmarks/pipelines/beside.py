"""How much does an export slow down a worker? Waits at 500 jobs/s, alone and while history is exported to a lake."""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import psycopg

from benchmarks.harness.percentiles import latencies, median, summarize
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS, wait_drained
from benchmarks.harness.server import Template
from benchmarks.harness.tables import Spread, Table
from benchmarks.pipelines.context import PipelineContext
from benchmarks.pipelines.reading import fill_history

__all__ = ["measure_beside"]

_RATE = 500.0
_SECONDS = 40.0
_AFTER_MAINTENANCE = (
    17.0  # seconds until a new worker has finished its first maintenance, which reads all of history
)
_SETTINGS: dict[str, Any] = {"concurrency": 10}
_COLUMNS = ("worker at 500 jobs/s", "p50 ms", "p99 ms", "x alone", "snapshot held, s", "jobs exported")
_HELD = """
select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_xmin is not null
  and backend_type = 'client backend' and state <> 'idle'  -- idle: a listener while it receives a notification
"""


@attrs.frozen
class _Phase:
    """The worker's waits in one phase, how long a snapshot was held, and how many jobs were exported."""

    p50: float
    p99: float
    held: float
    exported: int


def measure_beside(context: PipelineContext) -> Table:
    """Measure the worker alone, and while `trioboss pipeline archive` exports the whole history again and again.

    The phases alternate, and the medians are compared, because one slow moment of the disk decides the p99 of a phase.
    """
    base = TRIOBOSS.template(context.server, _SETTINGS)

    def fill(dsn: str) -> dict[str, Any]:
        fill_history(context.rows)(dsn)
        return dict(base.facts)

    template = context.server.template(f"worker, {context.rows:,} archived", fill, base.name)
    phases: dict[str, list[_Phase]] = {"alone": [], "beside archive": []}
    for _ in range(context.repeats):
        for name, found in phases.items():
            found.append(_run(context, template, exporting=name != "alone"))
            log(f"{name}: p99 {found[-1].p99:.1f} ms, snapshot held {found[-1].held:.2f} s")
    table = Table(f"Exporting {context.rows:,} jobs beside a worker", _COLUMNS)
    alone = median(phase.p99 for phase in phases["alone"])
    for name, found in phases.items():
        p50, p99 = (Spread.of(getattr(phase, each) for phase in found) for each in ("p50", "p99"))
        held, exported = max(phase.held for phase in found), sum(phase.exported for phase in found)
        table.add(name, p50, p99, p99.median / alone, held, exported)
    table.notes.append(
        "Spark runs on the same cores as worker, sender and server, in its own process (`trioboss pipeline archive`)"
    )
    return table


def _run(context: PipelineContext, template: Template, *, exporting: bool) -> _Phase:
    count = round(_RATE * _SECONDS)
    sending = {"senders": 10, "mode": "rate", "n": count, "rate": _RATE, "warmup": 50}
    with (
        context.server.database(template.name) as dsn,
        TRIOBOSS.run("work", dsn, _SETTINGS) as worker,
        TRIOBOSS.run("produce", dsn, _SETTINGS, **sending) as producer,
    ):
        worker.wait("ready")
        producer.wait("ready")
        time.sleep(_AFTER_MAINTENANCE)
        os.sync()  # otherwise the commits of the run compete with writing the copied history to the disk
        with _sampling_snapshots(dsn) as held, _exporting(dsn, exporting) as exports:
            producer.request({"do": "go"}, "produced", timeout=_SECONDS + 120)
            wait_drained(dsn, template, 60.0, pause=0.05)
        recorded = worker.request({"do": "report"}, "recorded")
    rows = zip(recorded["entered"], recorded["called"], recorded["due"], strict=True)
    entered, called, due = zip(*(row for row in rows if row[1]), strict=True)
    summary = summarize(value * 1000 for value in latencies(entered, called, due))
    return _Phase(summary.p50, summary.p99, max(held, default=0.0), sum(exports))


@contextmanager
def _exporting(dsn: str, wanted: bool) -> Iterator[list[int]]:
    """Export to one new lake after the other, each by a new command; yield how many jobs each has exported."""
    over, exports = threading.Event(), list[int]()

    def export() -> None:
        while not over.is_set():
            with tempfile.TemporaryDirectory(prefix="trioboss-lake-") as lake:
                exports.append(_export(dsn, lake))

    thread = threading.Thread(target=export)
    if wanted:
        thread.start()
    try:
        yield exports
    finally:
        over.set()
        if wanted:
            thread.join()


def _export(dsn: str, lake: str) -> int:
    """Run the command as cron does: in its own session."""
    ran = subprocess.run(
        [sys.executable, "-m", "trioboss", "pipeline", "archive", "--to", lake],
        env={**os.environ, "TRIOBOSS_DSN": dsn},
        start_new_session=True,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.search(r"^(\d+) jobs", ran.stdout, re.MULTILINE)
    assert found is not None, ran.stdout
    return int(found[1])


@contextmanager
def _sampling_snapshots(dsn: str) -> Iterator[list[float]]:
    """Yield how long transactions hold a snapshot, which vacuum has to respect, sampled ten times a second."""
    over, held = threading.Event(), list[float]()

    def sample() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.is_set():
                row = connection.execute(_HELD).fetchone()
                held.append(float(row[0]) if row else 0.0)
                time.sleep(0.1)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield held
    finally:
        over.set()
        thread.join()
