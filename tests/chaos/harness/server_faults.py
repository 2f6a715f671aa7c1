"""Faults of the server: crashes, locks, ended sessions, a full disk, a full queue of notifications, strange rows."""

import contextlib
import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import attrs
import psycopg
import trio

from benchmarks.programs.protocol import emit
from tests.chaos.harness.journal import Journal

__all__ = ["PRODUCER", "ServerFaults"]

PRODUCER = "chaos_producer"
"""A role with the rights of a producer."""

# The listening connection of a boss holds a shared advisory lock, which proves the presence of the boss.
_LISTENERS = """
    select pid from pg_locks where locktype = 'advisory' and mode = 'ShareLock'
      and database = (select oid from pg_database where datname = current_database())"""
_BACKENDS = """
    select pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""
_TERMINATE = "select pg_terminate_backend(%s)"
_LOCK = "lock table trioboss.live_job in access exclusive mode"
_SNAPSHOT = "set transaction isolation level repeatable read; select count(*) from trioboss.live_job"
_FLOOD = "select pg_notify('chaos', repeat('x', 7000) || number) from generate_series(1, 20) number"
_FLOODS = 200  # far more than fit into a queue of notifications of 64 pages
_SPARE = 65536  # bytes that a full disk still has

# Columns and values of jobs that a producer may try to write. Most are refused by the database, which is fine. Each
# row has one of them, because two together could be a job that is tried for ever.
_STRANGE_COLUMNS = {
    "start_after": ("-infinity", "0001-01-02", "2000-01-01"),
    "created_on": ("8999-12-30", "0001-01-02", "infinity"),
    "keep_until": ("-infinity", "8999-12-30"),
    "retention": ("1 us", "200 years", "-1 s"),
    "delete_after": ("0", "200 years", "-1 s"),
    "expire_in": ("1 us", "0", "178000000 years"),
    "heartbeat": ("0", "1 s", "200 years"),
    "retry_window": ("-1 s", "1 us", "200 years"),
    "retry_delay": ("NaN", "-1", "1e-300"),
    "retry_delay_max": ("0", "1e300", "-Infinity"),
    "retry_jitter": ("NaN", "1", "-0.5"),
    "priority": ("2147483647", "-2147483648"),
    "max_lease_extensions": ("2147483647", "-1"),
    "singleton_key": ("", " ", "x", "key:k1"),
}
_STRANGE_QUEUES = ("chaos.standard", "chaos.own_table", "chaos.short", "batches")


@attrs.define(eq=False)
class ServerFaults:
    """The faults that need no worker."""

    dsn: str
    journal: Journal
    rng: random.Random
    restarted: threading.Event
    disk: Path | None
    """The small disk that the data is on; None: this run has none."""
    _disk_in_use: trio.Lock = attrs.field(factory=trio.Lock, init=False)
    """A server cannot start while its disk is full."""

    @contextlib.contextmanager
    def fault(self, kind: str, target: str | None = None) -> Iterator[None]:
        """Record a fault before it begins and after it is over, so that the checker never misses one."""
        number = self.rng.getrandbits(48)
        self.journal.write("fault", kind=kind, target=target, number=number)
        try:
            yield
        finally:
            self.journal.write("healed", number=number)

    async def _execute(self, *statements: str, hold: float = 0.0) -> list[Any]:
        """Execute statements in one transaction and keep it open for a while. Errors are ignored: faults overlap."""

        def execute() -> list[Any]:
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.dsn) as connection:
                cursor = connection.cursor()
                for statement in statements:
                    cursor.execute(statement.encode())
                threading.Event().wait(hold)
                return cursor.fetchall() if cursor.description else []
            return []

        return await trio.to_thread.run_sync(execute)

    async def _terminate(self, pids: list[Any]) -> None:
        for (pid,) in pids:
            await self._execute(_TERMINATE.replace("%s", str(int(pid))))

    async def listener(self) -> None:
        """Terminate the backend of one listener."""
        pids = await self._execute(_LISTENERS)
        with self.fault("listener"):
            await self._terminate(self.rng.sample(pids, min(1, len(pids))))

    async def backends(self) -> None:
        """Terminate all backends."""
        with self.fault("backends"):
            await self._terminate(await self._execute(_BACKENDS))

    async def _ask_for(self, kind: str) -> None:
        """Let the chaos run do something, because it owns the servers."""
        async with self._disk_in_use:
            with self.fault(kind):
                self.restarted.clear()
                emit(kind)
                await trio.to_thread.run_sync(self.restarted.wait)

    async def restart(self) -> None:
        """Crash the server and start it again."""
        await self._ask_for("restart")

    async def failover(self) -> None:
        """Crash the server for ever, and promote its standby."""
        await self._ask_for("failover")

    async def lock(self) -> None:
        """Lock the jobs, up to longer than a heartbeat lasts."""
        with self.fault("lock"):
            await self._execute("set lock_timeout = '2s'", _LOCK, hold=self.rng.uniform(0.3, 2.5))

    async def snapshot(self) -> None:
        """Hold an old snapshot. It has no target, so that it does not count as the reason of a lost lease."""
        with self.fault("snapshot", "none"):
            await self._execute(_SNAPSHOT, hold=self.rng.uniform(3, 10))

    async def notify_full(self) -> None:
        """Fill the queue of notifications, behind a session that listens and does not read."""
        hold = self.rng.uniform(1, 5)

        def fill() -> None:
            with contextlib.suppress(psycopg.Error), psycopg.connect(self.dsn) as listener:
                listener.execute("listen chaos")
                listener.commit()
                listener.execute("select")  # an open transaction reads no notifications
                with contextlib.suppress(psycopg.errors.ProgramLimitExceeded):
                    self._flood()
                threading.Event().wait(hold)

        with self.fault("notify_full"):
            await trio.to_thread.run_sync(fill)

    def _flood(self) -> None:
        """Notify until the server refuses. Before Postgres 17 the queue has 8 GB, and is not filled."""
        with psycopg.connect(self.dsn, autocommit=True) as sender:
            for _ in range(_FLOODS):
                sender.execute(_FLOOD)

    async def disk_full(self) -> None:
        """Fill the disk of the data for a while."""
        if self.disk is None:
            return
        path = self.disk / "filler"
        async with self._disk_in_use:
            with self.fault("disk_full"):
                try:
                    _allocate_all(path)
                    await trio.sleep(self.rng.uniform(0.5, 3))
                finally:
                    path.unlink(missing_ok=True)

    async def strange_rows(self) -> None:
        """Insert jobs as a producer may, each with a strange value. They are not judged: retention may delete them."""
        rows = [
            (uuid4(), self.rng.choice(_STRANGE_QUEUES), column, value)
            for column, values in _STRANGE_COLUMNS.items()
            for value in values
        ]
        data = json.dumps({"strange": self.rng.choice(("complete", "fail"))})
        for id, *_ in rows:
            self.journal.write("strange", id=id)

        def insert() -> None:
            with (
                contextlib.suppress(psycopg.OperationalError),
                psycopg.connect(self.dsn, autocommit=True) as connection,
            ):
                connection.execute(f"set role {PRODUCER}")
                for id, queue, column, value in rows:
                    statement = (
                        f"insert into trioboss.job (id, name, data, {column}) values (%s, %s, %s::jsonb, %s)"
                    )
                    with contextlib.suppress(psycopg.DataError, psycopg.IntegrityError):
                        connection.execute(statement.encode(), [id, queue, data, value])

        with self.fault("strange_rows", "none"):
            await trio.to_thread.run_sync(insert)


def _allocate_all(path: Path) -> None:
    with path.open("wb") as file:
        free = os.statvfs(path.parent)
        with contextlib.suppress(OSError):  # other writers were faster
            os.posix_fallocate(file.fileno(), 0, max(1, free.f_bavail * free.f_frsize - _SPARE))
