"""`trioboss top`: what happens now, live on a terminal; one view as plain text elsewhere.

It reads the tables when it draws, and nothing is collected for it: it costs nothing while nobody uses it.
"""

import argparse
import os
import select
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import import_module
from uuid import UUID

import attrs

from trioboss.api.observing import observe
from trioboss.api.sync import SyncBoss
from trioboss.cli.opening import open_sync
from trioboss.cli.output import format_table, show_value
from trioboss.cli.times import show_ago
from trioboss.errors import DatabaseUnavailable
from trioboss.model.check import check_duration
from trioboss.model.described_error import described_line
from trioboss.model.observation import Observation, QueueView
from trioboss.model.texts import printable, show_seconds
from trioboss.postgres.dsn import describe_database

__all__ = ["run_top"]

_CAP = 100_000  # jobs of a queue that observe_queues.sql counts
_ROWS = 10  # of running jobs, failures and blocked keys that are read
_FIRST = 1.0  # seconds over which the first rates are measured
_CLOCKS = 60.0  # seconds by which the clock of a producer may be ahead
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


@attrs.frozen
class _Sample:
    """The figures, and when they were read."""

    at: float
    seen: Observation


def run_top(args: argparse.Namespace) -> int:
    """Draw until a person quits; without a terminal draw once."""
    interval = check_duration("interval", args.interval, low=0.2)
    with open_sync(args) as boss:
        if args.once or not (sys.stdout.isatty() and sys.stdin.isatty()):
            first = _take(boss, None)
            time.sleep(_FIRST)
            for line in _draw(boss, first, _take(boss, first)):
                print(line.rstrip())
            return 0
        with _full_screen():
            _run(boss, interval)
    return 0


def _run(boss: SyncBoss, interval: float) -> None:
    last, pause = _take(boss, None), min(interval, _FIRST)
    while True:
        if _wait_for_key(pause) in ("q", "Q", "\x1b", "\x03"):
            return
        pause = interval
        try:
            now = _take(boss, last)
        except DatabaseUnavailable as error:
            _write([f"the database cannot be reached, trying again: {printable(str(error))}"])
            continue
        height = os.get_terminal_size(sys.stdout.fileno()).lines
        _write(_draw(boss, last, now, height - 1))
        last = now


def _take(boss: SyncBoss, last: _Sample | None) -> _Sample:
    at = time.time()
    since, until = at if last is None else last.at, at + _CLOCKS
    return _Sample(at, observe(boss, _first_id(since), _first_id(until), _ROWS))


def _first_id(seconds: float) -> UUID:
    """The smallest id that a job sent at that time can have: a UUIDv7 begins with the milliseconds."""
    return UUID(int=int(seconds * 1000) << 80 | 7 << 76)


# -- the terminal


@contextmanager
def _full_screen() -> Iterator[None]:
    """A screen of its own, keys without Enter; the terminal is as before at the end, whatever happens."""
    termios, tty = import_module("termios"), import_module("tty")
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        sys.stdout.write(_ENTER)
        sys.stdout.flush()
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()


def _wait_for_key(seconds: float) -> str:
    readable, _, _ = select.select([sys.stdin], [], [], seconds)
    return sys.stdin.read(1) or "q" if readable else ""


def _write(lines: Sequence[str]) -> None:
    width, height = os.get_terminal_size(sys.stdout.fileno())
    shown = [line[:width] for line in lines[: height - 1]]
    text = "".join(f"{line}{_CLEAR_LINE}\r\n" for line in shown)
    sys.stdout.write(_HOME + text + _CLEAR_BELOW)
    sys.stdout.flush()


# -- the view


@attrs.frozen
class _List:
    """A list of the view."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def draw(self, most: int) -> list[str]:
        """Its lines, with at most so many rows."""
        if not self.rows:
            return ["", f"{self.title.upper()}: none"]
        left = len(self.rows) - most
        table = format_table([self.columns, *self.rows[:most]])
        return [
            "",
            self.title.upper() + (f" ({left} more)" if left > 0 else ""),
            *(f"  {line}" for line in table),
        ]


def _draw(boss: SyncBoss, last: _Sample, now: _Sample, height: int | None = None) -> list[str]:
    """The lines of a view. Where the screen has fewer lines, each list gets its share of them."""
    database = f"{describe_database(boss.dsn)}, schema {boss.schema}"
    keys = "" if height is None else "q quits   "  # without a screen nobody can type
    lines = [f"trioboss top   {datetime.now():%H:%M:%S}   {keys}{database}"]
    lists = _collect(last, now)
    most = [len(each.rows) for each in lists]
    if height is not None:
        most = _share(height - len(lines), most)
        lists[0] = attrs.evolve(lists[0], rows=_queue_rows(last, now, most[0]))
    for each, rows in zip(lists, most, strict=True):
        lines += each.draw(rows)
    return lines


def _share(lines: int, wanted: Sequence[int]) -> list[int]:
    """How many rows each list may have, so that all of them fit: at least one, then one more in turns."""
    rows = [min(1, each) for each in wanted]
    left = lines - sum(
        4 if each else 2 for each in wanted
    )  # an empty line, the title, and the columns and a row
    while left > 0 and rows != list(wanted):
        for number, each in enumerate(wanted):
            if rows[number] < each and left > 0:
                rows[number] += 1
                left -= 1
    return rows


def _collect(last: _Sample, now: _Sample) -> list[_List]:
    seen = now.seen
    running = [
        [
            each.queue,
            str(each.id),
            str(each.attempt),
            show_seconds(each.age),
            _short(each.progress),
            each.worker or "-",
        ]
        for each in seen.running
    ]
    failures = [
        [
            each.queue,
            str(each.id),
            str(each.attempt),
            each.outcome,
            show_seconds(each.age),
            _error(each.error),
        ]
        for each in seen.failures
    ]
    blocked = [[each.queue, printable(each.key), str(each.id)] for each in seen.blocked]
    lists = [
        _List(
            "queues",
            ["queue", "policy", "waiting", "deferred", "active", "oldest", "in/s", "out/s", "workers"],
            _queue_rows(last, now, None),
        ),
        _List("running, the longest first", ["queue", "id", "attempt", "for", "progress", "worker"], running),
        _List("failures, the newest first", ["queue", "id", "attempt", "outcome", "ago", "error"], failures),
        _List("blocked keys", ["queue", "key", "failed job"], blocked),
        _List("workers", ["queue", "name", "state", "mode", "running", "up for"], _worker_rows(seen)),
    ]
    return [each for each in lists if each.rows or each.title != "blocked keys"]


def _queue_rows(last: _Sample, now: _Sample, most: int | None) -> list[list[str]]:
    before = {queue.name: queue for queue in last.seen.queues}
    seconds = max(0.001, now.at - last.at)
    return [_queue_row(each, before.get(each.name), seconds) for each in _in_order(now.seen.queues, most)]


def _in_order(queues: Sequence[QueueView], most: int | None) -> Sequence[QueueView]:
    """By name if all fit on the screen, else those with most jobs first."""
    if most is None or len(queues) <= most:
        return queues
    return sorted(queues, key=lambda queue: (-queue.waiting - queue.active, queue.name))


def _worker_rows(seen: Observation) -> list[list[str]]:
    now = datetime.now(UTC)
    rows = []
    for worker in seen.workers:
        state = "present" if worker.present else f"gone for {show_ago(worker.seen_on, now)}"
        mode = "polling" if worker.pooled else "listening"
        rows.append(
            [worker.queue, worker.name, state, mode, str(worker.running), show_ago(worker.started_on, now)]
        )
    return rows


def _queue_row(queue: QueueView, before: QueueView | None, seconds: float) -> list[str]:
    sent = queue.sent if before is not None else 0
    ended = "-"
    if before is not None and _live(queue) < _CAP and _live(before) < _CAP:
        ended = f"{max(0.0, (sent - (_live(queue) - _live(before))) / seconds):.1f}"
    return [
        queue.name + (" (paused)" if queue.paused else ""),
        queue.policy,
        f"{queue.waiting}" + ("+" if _live(queue) >= _CAP else ""),
        str(queue.deferred),
        str(queue.active),
        show_seconds(queue.oldest_age) if queue.oldest_age else "-",
        f"{sent / seconds:.1f}",
        ended,
        str(queue.workers) if queue.workers else "none",
    ]


def _live(queue: QueueView) -> int:
    return queue.waiting + queue.deferred + queue.active


def _short(value: object) -> str:
    return show_value(value, "data")[:30] if value is not None else "-"


def _error(error: object) -> str:
    return printable(described_line(error))[:80] or "-"
