"""What does a worker notice of an export? Its waits at 500 jobs/s alone, and while history goes to a lake beside it."""

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

from benchmarks.harness.contenders import TRIOBOSS, wait_drained
from benchmarks.harness.percentiles import latencies, median, summarize
from benchmarks.harness.progress import say
from benchmarks.harness.server import Template
from benchmarks.harness.tables import Spread, Table
from benchmarks.pipelines.reading import fill_history
from benchmarks.pipelines.setting import Setting

__all__ = ["measure_beside"]

_RATE = 500.0
_SECONDS = 40.0
_TIDIED = 17.0  # seconds until a new worker is done with retention, which reads all of history, too
_SETTINGS: dict[str, Any] = {"concurrency": 10}
_COLUMNS = ("worker at 500 jobs/s", "p50 ms", "p99 ms", "x alone", "horizon held, s", "jobs exported")
_HELD = """
select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_xmin is not null
  and backend_type = 'client backend' and state <> 'idle'  -- idle: the moment in which a listener hears a word
"""


@attrs.frozen
class _Turn:
    """What the worker noticed in one turn, how long the horizon was held, and how many jobs were exported meanwhile."""

    p50: float
    p99: float
    held: float
    exported: int


def measure_beside(setting: Setting) -> Table:
    """The worker alone, and beside `trioboss pipeline archive` of the whole history, again and again meanwhile.

    In turns, and the middle ones are compared: a disk that hesitates for a moment is the p99 of a turn.
    """
    base = TRIOBOSS.template(setting.server, _SETTINGS)

    def fill(dsn: str) -> dict[str, Any]:
        fill_history(setting.rows)(dsn)
        return dict(base.facts)

    template = setting.server.template(f"worker, {setting.rows:,} archived", fill, base.name)
    turns: dict[str, list[_Turn]] = {"alone": [], "beside archive": []}
    for _ in range(setting.repeats):
        for name, found in turns.items():
            found.append(_run(setting, template, exporting=name != "alone"))
            say(f"{name}: p99 {found[-1].p99:.1f} ms, horizon held {found[-1].held:.2f} s")
    table = Table(f"Exporting {setting.rows:,} jobs beside a worker", _COLUMNS)
    alone = median(turn.p99 for turn in turns["alone"])
    for name, found in turns.items():
        p50, p99 = (Spread.of(getattr(turn, each) for turn in found) for each in ("p50", "p99"))
        held, exported = max(turn.held for turn in found), sum(turn.exported for turn in found)
        table.add(name, p50, p99, p99.median / alone, held, exported)
    table.notes.append(
        "Spark runs on the same two cores as worker, sender and server, as `trioboss pipeline archive` of its own"
    )
    return table


def _run(setting: Setting, template: Template, *, exporting: bool) -> _Turn:
    count = round(_RATE * _SECONDS)
    sending = {"senders": 10, "mode": "rate", "n": count, "rate": _RATE, "warmup": 50}
    with (
        setting.server.database(template.name) as dsn,
        TRIOBOSS.run("work", dsn, _SETTINGS) as worker,
        TRIOBOSS.run("produce", dsn, _SETTINGS, **sending) as producer,
    ):
        worker.wait("ready")
        producer.wait("ready")
        time.sleep(_TIDIED)
        os.sync()  # the copy of the history is on disk before anybody's commits compete with it
        with _watching(dsn) as held, _exporting(dsn, exporting) as exports:
            producer.ask({"do": "go"}, "produced", timeout=_SECONDS + 120)
            wait_drained(dsn, template, 60.0, pause=0.05)
        recorded = worker.ask({"do": "report"}, "recorded")
    rows = zip(recorded["entered"], recorded["called"], recorded["due"], strict=True)
    entered, called, due = zip(*(row for row in rows if row[1]), strict=True)
    summary = summarize(value * 1000 for value in latencies(entered, called, due))
    return _Turn(summary.p50, summary.p99, max(held, default=0.0), sum(exports))


@contextmanager
def _exporting(dsn: str, wanted: bool) -> Iterator[list[int]]:
    """Export to one new lake after the other, each by a command of its own; gives how many jobs each exported."""
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
    """As cron would run it: in a session of its own."""
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
def _watching(dsn: str) -> Iterator[list[float]]:
    """How long transactions hold the horizon of vacuum, looked at ten times a second."""
    over, held = threading.Event(), list[float]()

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not over.is_set():
                row = connection.execute(_HELD).fetchone()
                held.append(float(row[0]) if row else 0.0)
                time.sleep(0.1)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield held
    finally:
        over.set()
        thread.join()
