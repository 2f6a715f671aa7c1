"""One run: a server of its own, the nemesis with the workers, the producers; then quiet, then the history."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import psycopg

import trioboss
from benchmarks.chaos.evidence import collect
from benchmarks.chaos.history import History
from benchmarks.chaos.plan import QUEUES, Plan
from benchmarks.chaos.producer import LEDGER
from benchmarks.harness.processes import Program, ProgramFailed, python_module
from benchmarks.harness.server import Server, open_server, run_sql

__all__ = ["NotDrained", "run"]

_SETTINGS: dict[str, str | int | bool] = {"track_commit_timestamp": True, "shared_buffers": "128MB"}
_LEFT = "select count(*) from trioboss.job where state <= 'active'"
_STUCK = """
    select name, state::text, gate, singleton_key, attempt, start_after - now(), worker is not null, count(*) over ()
    from trioboss.job order by seq limit 10"""
_BLOCKING = "select id from trioboss.job where name = 'chaos.fifo' and state = 'failed'"
_PAUSE = 0.2  # seconds between two looks
_SAY_EVERY = 2.0  # seconds

Say = Callable[[str], None]


class NotDrained(Exception):
    """Some jobs have not come to their end."""


def run(plan: Plan, folder: Path, say: Say, *, drain_within: float = 600.0) -> History:
    """Make it all happen; return what happened. Journals and complaints stay in the folder."""
    wall_ahead = time.time() - time.monotonic()
    with open_server(None, _SETTINGS) as server, server.database() as dsn:
        _prepare(dsn)
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            Conductor(plan, folder, server, boss, say).play(drain_within)
        return collect(folder, dsn, wall_ahead)


def _prepare(dsn: str) -> None:
    run_sql(dsn, LEDGER)
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        for name, options in QUEUES.items():
            boss.create_queue(name, **options)


@attrs.define(eq=False)
class Conductor:
    """Watches over one run."""

    plan: Plan
    folder: Path
    server: Server
    boss: trioboss.SyncBoss
    say: Say
    _calm: bool = attrs.field(default=False, init=False)
    _restarts: int = attrs.field(default=0, init=False)
    _said_at: float = attrs.field(default=-math.inf, init=False)

    def play(self, drain_within: float) -> None:
        """From the first send to the end of the last job."""
        with self._nemesis() as (nemesis, dsns), self._producers(dsns) as producers:
            while not (self._calm and all(each.is_over for each in producers)):
                self._watch(nemesis)
            self._hear_out(producers)
            self.say("quiet: waiting for the jobs that are left")
            deadline = time.monotonic() + drain_within
            while left := self._watch(nemesis):
                if time.monotonic() > deadline:
                    raise NotDrained(f"{left} jobs are left: {run_sql(self.boss.dsn, _STUCK)}")

    def _hear_out(self, producers: list[Program]) -> None:
        """Whoever ended before its time says why. What it did send is judged nevertheless."""
        for each in producers:
            try:
                each.wait("ready")
                each.wait("done")
            except ProgramFailed as error:
                self.say(f"a producer failed: {error}")

    @contextlib.contextmanager
    def _nemesis(self) -> Iterator[tuple[Program, list[str]]]:
        spec = self._spec(dsn=self.boss.dsn)
        nemesis = Program(python_module("benchmarks.chaos.nemesis"), spec)
        try:
            yield nemesis, nemesis.wait("ready")["producers"]
        finally:
            nemesis.tell({"do": "stop"})
            nemesis.end(15.0)

    @contextlib.contextmanager
    def _producers(self, dsns: list[str]) -> Iterator[list[Program]]:
        command = python_module("benchmarks.chaos.producer")
        with contextlib.ExitStack() as stack:
            producers = []
            for number, dsn in enumerate(dsns):
                producers.append(Program(command, self._spec(dsn=dsn, number=number)))
                stack.callback(producers[-1].kill)
            yield producers

    def _spec(self, **more: Any) -> dict[str, Any]:
        return {"plan": attrs.asdict(self.plan), "folder": str(self.folder), **more}

    def _watch(self, nemesis: Program) -> int:
        """Do what the nemesis asks for, and what an operator would; return how many jobs are left."""
        while (event := nemesis.poll()) is not None:
            if event["event"] == "restart":
                self._restarts += 1
                self.server.crash()
                nemesis.tell({"do": "go on"})
            elif event["event"] == "calm":
                self._calm = True
            else:
                raise RuntimeError(f"the nemesis ended: {nemesis.complaint()}")
        time.sleep(_PAUSE)
        with contextlib.suppress(trioboss.DatabaseUnavailable, psycopg.OperationalError):
            return self._tend()
        return -1

    def _tend(self) -> int:
        """A failed job blocks its key until somebody has it tried again."""
        with self.boss.transaction() as conn:
            if blocking := [id for (id,) in conn.execute(_BLOCKING)]:
                self.boss.retry("chaos.fifo", blocking)
            ((left,),) = conn.execute(_LEFT).fetchall()
        if time.monotonic() > self._said_at + _SAY_EVERY:
            self._said_at = time.monotonic()
            self.say(f"{left} jobs left, {self._restarts} restarts")
        return int(left)
