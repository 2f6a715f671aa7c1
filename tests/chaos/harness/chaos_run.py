"""One run: a server, the nemesis with the workers, and the producers, until every job has ended."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import psycopg

import trioboss
from benchmarks.harness.processes import Program, ProgramFailed, python_module
from benchmarks.harness.server import Server, open_server, run_sql
from tests.chaos.harness.evidence import collect
from tests.chaos.harness.history import History
from tests.chaos.harness.plan import QUEUES, Plan
from tests.chaos.harness.producer import LEDGER

__all__ = ["NotDrained", "run"]

_SETTINGS: dict[str, str | int | bool] = {"track_commit_timestamp": True, "shared_buffers": "128MB"}
_LEFT = "select count(*) from trioboss.live_job where readiness <= 'active'"
_STUCK = "select to_jsonb(job) - 'data' from trioboss.job limit 10"
_BLOCKING = "select id from trioboss.job where name = 'chaos.fifo' and state = 'failed'"
_POLL_INTERVAL = 0.2  # seconds
_LOG_INTERVAL = 2.0  # seconds

Log = Callable[[str], None]


class NotDrained(Exception):
    """Some jobs have not ended in time."""


def run(plan: Plan, folder: Path, log: Log, *, drain_within: float = 600.0) -> History:
    """Run a plan and return its history. The journals and the workers' standard error stay in the folder."""
    wall_ahead = time.time() - time.monotonic()
    with open_server(None, _SETTINGS) as server, server.database() as dsn:
        _prepare(dsn)
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            ChaosRun(plan, folder, server, boss, log).run(drain_within)
        return collect(folder, dsn, wall_ahead)


def _prepare(dsn: str) -> None:
    run_sql(dsn, LEDGER)
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        for name, options in QUEUES.items():
            boss.create_queue(name, **options)


@attrs.define(eq=False)
class ChaosRun:
    """Starts the programs of one run, restarts the server for the nemesis, and retries blocking jobs."""

    plan: Plan
    folder: Path
    server: Server
    boss: trioboss.SyncBoss
    log: Log
    _calm: bool = attrs.field(default=False, init=False)
    _restarts: int = attrs.field(default=0, init=False)
    _logged_at: float = attrs.field(default=-math.inf, init=False)

    def run(self, drain_within: float) -> None:
        """Run from the first send to the end of the last job."""
        with self._nemesis() as (nemesis, dsns), self._producers(dsns) as producers:
            while not (self._calm and all(each.has_ended for each in producers)):
                self._poll(nemesis)
            self._check_producers(producers)
            self.log("no more faults: waiting for the remaining jobs")
            deadline = time.monotonic() + drain_within
            while left := self._poll(nemesis):
                if time.monotonic() > deadline:
                    raise NotDrained(f"{left} jobs are left: {run_sql(self.boss.dsn, _STUCK)}")

    def _check_producers(self, producers: list[Program]) -> None:
        """Log why a producer ended early. The checker still judges what it has sent."""
        for each in producers:
            try:
                each.wait("ready")
                each.wait("done")
            except ProgramFailed as error:
                self.log(f"a producer failed: {error}")

    @contextlib.contextmanager
    def _nemesis(self) -> Iterator[tuple[Program, list[str]]]:
        spec = self._spec(dsn=self.boss.dsn)
        nemesis = Program(python_module("tests.chaos.harness.nemesis"), spec)
        try:
            yield nemesis, nemesis.wait("ready")["producers"]
        finally:
            nemesis.send({"do": "stop"})
            nemesis.stop(15.0)

    @contextlib.contextmanager
    def _producers(self, dsns: list[str]) -> Iterator[list[Program]]:
        command = python_module("tests.chaos.harness.producer")
        with contextlib.ExitStack() as stack:
            producers = []
            for number, dsn in enumerate(dsns):
                producers.append(Program(command, self._spec(dsn=dsn, number=number)))
                stack.callback(producers[-1].kill)
            yield producers

    def _spec(self, **more: Any) -> dict[str, Any]:
        return {"plan": attrs.asdict(self.plan), "folder": str(self.folder), **more}

    def _poll(self, nemesis: Program) -> int:
        """Serve the nemesis, retry blocking jobs, and return how many jobs are left; -1 if the server is down."""
        while (event := nemesis.poll()) is not None:
            if event["event"] == "restart":
                self._restarts += 1
                self.server.crash()
                nemesis.send({"do": "go on"})
            elif event["event"] == "calm":
                self._calm = True
            else:
                raise RuntimeError(f"the nemesis ended: {nemesis.stderr_tail()}")
        time.sleep(_POLL_INTERVAL)
        with contextlib.suppress(trioboss.DatabaseUnavailable, psycopg.OperationalError):
            return self._retry_blocking_jobs()
        return -1

    def _retry_blocking_jobs(self) -> int:
        """Retry failed strict FIFO jobs, as an operator does: they block their keys. Return how many jobs are left."""
        with self.boss.transaction() as conn:
            if blocking := [id for (id,) in conn.execute(_BLOCKING)]:
                self.boss.retry("chaos.fifo", blocking)
            ((left,),) = conn.execute(_LEFT).fetchall()
        if time.monotonic() > self._logged_at + _LOG_INTERVAL:
            self._logged_at = time.monotonic()
            self.log(f"{left} jobs left, {self._restarts} restarts")
        return int(left)
