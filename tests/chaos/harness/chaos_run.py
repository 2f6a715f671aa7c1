"""One run: a server, the nemesis with the workers, and the producers, until every job has ended."""

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import psycopg

import trioboss
from benchmarks.harness.processes import Program, ProgramFailed, python_module
from benchmarks.harness.server import Server, open_server, run_sql
from tests.chaos.harness.evidence import KEEP_TICKS, collect
from tests.chaos.harness.history import History
from tests.chaos.harness.journal import Journal
from tests.chaos.harness.lateness import QUIET
from tests.chaos.harness.plan import Plan, PlannedSend
from tests.chaos.harness.producer import LEDGER, Producer
from tests.chaos.harness.queues import CRON, QUEUES
from tests.chaos.harness.server_faults import PRODUCER
from tests.chaos.harness.small_disk import mount_small_disk, move_to_disk
from tests.chaos.harness.standby import Standby, open_standby, with_standby
from trioboss.postgres.embedded.binaries import find_binaries
from trioboss.postgres.embedded.postmaster import find_postmaster
from trioboss.sql.grants import grant_plans

__all__ = ["NotDrained", "run"]

_SETTINGS: dict[str, str | int | bool] = {"track_commit_timestamp": True, "shared_buffers": "128MB"}
_SMALL_NOTIFY_QUEUE: dict[str, str | int | bool] = {
    "max_notify_queue_pages": 64
}  # the minimum, from Postgres 17 on
# Sessions of every third worker and producer have time-outs that are shorter than many faults.
_HASTY = """
    create role hasty superuser login password 'hasty';
    alter role hasty set statement_timeout = '3s';
    alter role hasty set lock_timeout = '1s';
    alter role hasty set idle_in_transaction_session_timeout = '2s';
    alter role hasty set idle_session_timeout = '8s'"""
_LEFT = "select count(*) from trioboss.live_job where readiness <= 'active' and not coalesce(data ? 'strange', false)"
_STUCK = (
    "select to_jsonb(job) - 'data' from trioboss.job where not coalesce(data ? 'strange', false) limit 10"
)
_BLOCKING = "select id from trioboss.job where name = 'chaos.fifo' and state = 'failed'"
_CALM_FAULTS = ("kill", None, "term", "kill", "stop")  # None: no fault, to see that jobs start at once
_PROBES = 30  # jobs that run while one of them happens
_PROBE = {"seconds": 1.5, "then": "complete"}
_STARTING = 0.7  # seconds in which some of the probes begin
_POLL_INTERVAL = 0.2  # seconds
_LOG_INTERVAL = 2.0  # seconds

Log = Callable[[str], None]


class NotDrained(Exception):
    """Some jobs have not ended in time."""


def run(plan: Plan, folder: Path, log: Log, *, drain_within: float = 600.0) -> History:
    """Run a plan and return its history. The journals and the workers' standard error stay in the folder."""
    wall_ahead = time.time() - time.monotonic()
    settings = _SETTINGS | (_SMALL_NOTIFY_QUEUE if find_binaries().major >= 17 else {})
    with contextlib.ExitStack() as stack:
        disk = stack.enter_context(mount_small_disk(folder, plan.disk, log)) if plan.disk else None
        server = stack.enter_context(open_server(None, settings))
        dsn = stack.enter_context(_database(server))
        spaces = {} if disk is None else {str(move_to_disk(server.dsn, dsn, disk)): str(disk / "standby")}
        _prepare(dsn)
        standby = stack.enter_context(open_standby(server, folder, spaces)) if plan.failover else None
        own_dsn = dsn if standby is None else with_standby(dsn, standby.port)
        with trioboss.SyncBoss(own_dsn, migrate=False) as boss:
            ChaosRun(plan, folder, server, dsn, disk, standby, boss, log).run(drain_within)
        return collect(folder, own_dsn, wall_ahead)


@contextlib.contextmanager
def _database(server: Server) -> Iterator[str]:
    """Yield the dsn of a database. After a failover the server is gone, and the database with it."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(server.database())
        if server.own is not None and find_postmaster(server.own.data) is None:
            stack.pop_all()


def _prepare(dsn: str) -> None:
    run_sql(dsn, LEDGER, *_HASTY.split(";"), f"create role {PRODUCER}")
    run_sql(dsn, grant_plans("trioboss", {"producer": PRODUCER}))
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        for name, options in QUEUES.items():
            boss.create_queue(name, **options)
        boss.schedule(CRON, "* * * * * *", {"seconds": 0.0, "then": "complete"}, missed="all")


@attrs.define(eq=False)
class ChaosRun:
    """Starts the programs of one run, restarts the server for the nemesis, and retries blocking jobs."""

    plan: Plan
    folder: Path
    server: Server
    dsn: str
    """The dsn of the server without its standby, for the proxies."""
    disk: Path | None
    standby: Standby | None
    boss: trioboss.SyncBoss
    log: Log
    _calm: bool = attrs.field(default=False, init=False)
    _caused: bool = attrs.field(default=False, init=False)
    _restarts: int = attrs.field(default=0, init=False)
    _logged_at: float = attrs.field(default=-math.inf, init=False)

    def run(self, drain_within: float) -> None:
        """Run from the first send to the end of the last job."""
        with self._nemesis() as (nemesis, dsns), self._producers(dsns) as producers:
            while not (self._calm and all(each.has_ended for each in producers)):
                self._poll(nemesis)
            self._check_producers(producers)
            self.log("no more faults: waiting for the remaining jobs")
            self._unschedule()
            self._drain(nemesis, drain_within)
            for number in range(self.plan.calm):
                kind = _CALM_FAULTS[number % len(_CALM_FAULTS)]
                self._cause_alone(nemesis, kind)
                self._drain(nemesis, drain_within)

    def _unschedule(self) -> None:
        """End the schedule, and keep its ticks, which are deleted with it."""
        with self.boss.transaction() as conn:
            conn.execute(KEEP_TICKS)
            self.boss.unschedule(CRON, conn=conn)

    def _drain(self, nemesis: Program, within: float) -> None:
        deadline = time.monotonic() + within
        while left := self._poll(nemesis):
            if time.monotonic() > deadline:
                raise NotDrained(f"{left} jobs are left: {run_sql(self.boss.dsn, _STUCK)}")

    def _cause_alone(self, nemesis: Program, kind: str | None) -> None:
        """Cause one fault, or none, while jobs run and nothing else is broken: the checker then judges sharply."""
        time.sleep(QUIET + 1.0)
        self.log(f"calm: {kind or 'no fault'}")
        producer = Producer(self.boss, Journal(self.folder, f"calm-{uuid4().hex[:8]}"))
        for _ in range(_PROBES):
            producer.send(PlannedSend(uuid4(), "chaos.standard", None, _PROBE, "plain", 0.0))
        if kind is None:
            return
        time.sleep(_STARTING)
        nemesis.send({"do": "fault", "kind": kind})
        while not self._caused:
            self._poll(nemesis)
        self._caused = False

    def _check_producers(self, producers: list[Program]) -> None:
        """Record a producer that ended early: an error was raised that it does not expect."""
        journal = Journal(self.folder, "run")
        for number, each in enumerate(producers):
            try:
                each.wait("ready")
                each.wait("done")
            except ProgramFailed as error:
                self.log(f"a producer failed: {error}")
                journal.write("exit", name=f"producer-{number}", code=1)

    @contextlib.contextmanager
    def _nemesis(self) -> Iterator[tuple[Program, list[str]]]:
        port = None if self.standby is None else self.standby.port
        disk = None if self.disk is None else str(self.disk)
        spec = self._spec(dsn=self.dsn, standby=port, disk=disk)
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
            elif event["event"] == "failover":
                self._fail_over()
                nemesis.send({"do": "go on"})
            elif event["event"] == "calm":
                self._calm = True
            elif event["event"] == "caused":
                self._caused = True
            else:
                raise RuntimeError(f"the nemesis ended: {nemesis.stderr_tail()}")
        time.sleep(_POLL_INTERVAL)
        with contextlib.suppress(trioboss.DatabaseUnavailable, psycopg.OperationalError):
            return self._retry_blocking_jobs()
        return -1

    def _fail_over(self) -> None:
        assert self.standby is not None
        assert self.server.postmaster is not None
        os.kill(self.server.postmaster, signal.SIGQUIT)
        self.standby.promote()

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
