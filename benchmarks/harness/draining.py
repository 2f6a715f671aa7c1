"""The measurement of a drain: how fast are jobs done that are queued already?"""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import attrs
import psycopg

from benchmarks.harness.meters import Meter
from benchmarks.harness.processes import Program, ProgramFailed
from benchmarks.harness.queue_programs import QueueProgram, count_pending, wait_drained
from benchmarks.harness.server import Server, Template

__all__ = ["drain", "drain_for"]

_WARM = 1000  # handler entries before the measurement begins
_ENTRIES = 10_000  # handler entries that are measured in a backlog too long to drain
_START_UP = 60.0  # seconds within which the warm-up must be over

Result = dict[str, Any]
Settings = Mapping[str, Any]


def drain(
    server: Server,
    queue: QueueProgram,
    settings: Settings,
    template: Template,
    *,
    jobs: int,
    workers: int = 1,
    cap: float = 12.0,
    entries_only: bool = False,
) -> Result:
    """Return the jobs a second from the 1000th handler entry to the last durable completion.

    A slow queue is stopped `cap` seconds after that entry, and its durable completions count. `entries_only` is for
    backlogs too long to drain: then handler entries count, and `rate` is None.
    """
    warm = min(_WARM, jobs // 10)
    goal = min(jobs, warm + _ENTRIES) if entries_only else jobs
    with (
        server.database(template.name) as dsn,
        psycopg.connect(dsn, autocommit=True) as connection,
        _workers(queue, dsn, settings, workers) as programs,
    ):
        deadline = _begin(programs)
        warmed_up = _wait_for_entries(programs, warm, deadline)
        before = _entries(programs)
        with Meter(server.postmaster, lambda: sum(program.cpu() for program in programs)) as meter:
            reached = warmed_up and _wait_for_entries(programs, goal, time.monotonic() + cap)
            left = 0 if reached or entries_only else count_pending(connection, template)
            end = time.monotonic() if left or entries_only else wait_drained(dsn, template, 60.0)
        entries = [program.request({"do": "report"}, "recorded")["entered"] for program in programs]
    if reached and not entries_only and sum(map(len, entries)) != jobs:
        raise ProgramFailed(f"{sum(map(len, entries))} handler entries for {jobs} jobs")
    run = _Run(entries, warm)
    metered = run.count - before
    return {
        "rate": None if entries_only else run.rate(jobs - left, end),
        "entry_rate": run.entry_rate(),
        "worker_us": meter.programs / metered * 1e6 if metered else None,
        "postgres_us": meter.postgres / metered * 1e6 if metered else None,
        "capped": not reached,
        "noise": meter.noise,
    }


def drain_for(
    server: Server,
    queue: QueueProgram,
    settings: Settings,
    template: Template,
    *,
    seconds: float,
    beside: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> Result:
    """Drain a backlog that lasts longer; return when handlers were entered, from the first on, as `at`.

    `beside` is a block that runs on the same database.
    """
    with (
        server.database(template.name) as dsn,
        beside(dsn),
        _workers(queue, dsn, settings, 1) as programs,
        Meter(server.postmaster, lambda: programs[0].cpu()) as meter,
    ):
        _begin(programs)
        _wait_for_entries(programs, 1, time.monotonic() + _START_UP)
        time.sleep(seconds)
        entered = programs[0].request({"do": "report"}, "recorded")["entered"]
    first = min(entered)
    return {"at": [each - first for each in entered if each - first < seconds], "noise": meter.noise}


@attrs.define(eq=False)
class _Run:
    """When the handlers of each worker were entered."""

    entries: list[list[float]]
    warm: int
    _ordered: list[float] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._ordered = sorted(time_ for each in self.entries for time_ in each)
        if len(self._ordered) <= self.warm:
            raise ProgramFailed(f"only {len(self._ordered)} jobs were begun")

    @property
    def count(self) -> int:
        return len(self._ordered)

    def rate(self, finished: int, end: float) -> float:
        """Return the rate of the jobs that were finished by `end` and began after every worker had begun."""
        began = [each[0] for each in self.entries if each]
        begin = max(self._ordered[self.warm - 1], *began)
        before = sum(1 for time_ in self._ordered if time_ <= begin)
        return (finished - before) / (end - begin)

    def entry_rate(self) -> float:
        """Return the handler entries a second of the first entries after the warm-up."""
        last = min(self.count, self.warm + _ENTRIES)
        return (last - self.warm) / (self._ordered[last - 1] - self._ordered[self.warm - 1])


@contextlib.contextmanager
def _workers(queue: QueueProgram, dsn: str, settings: Settings, count: int) -> Iterator[list[Program]]:
    """Start workers that wait for `_begin`, because starting an interpreter takes longer than some drains."""
    with contextlib.ExitStack() as stack:
        workers = [
            stack.enter_context(queue.run("work", dsn, settings, progress=True, hold=True))
            for _ in range(count)
        ]
        for worker in workers:
            worker.wait("up")
        yield workers


def _begin(programs: list[Program]) -> float:
    """Let all workers begin; return the deadline of the warm-up."""
    for program in programs:
        program.send({"do": "go"})
    for program in programs:
        program.wait("ready")
    return time.monotonic() + _START_UP


def _entries(programs: list[Program]) -> int:
    return sum(program.entries for program in programs)


def _wait_for_entries(programs: list[Program], goal: int, deadline: float) -> bool:
    """Wait for so many handler entries; return False at the deadline."""
    while _entries(programs) < goal:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
