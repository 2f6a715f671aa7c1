"""The ports of the actors, on the store and a pool of their own. actors/ports.py describes each method."""

# ruff: noqa: D102 (a method without a docstring is described by its port)

import json
import os
import platform
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import attrs
import trio

from trioboss._version import __version__
from trioboss.actors.ports import ListeningConnection, Registration
from trioboss.errors import DatabaseUnavailable, ServerDown, StatementFailed, TriobossError
from trioboss.model.job import Lease
from trioboss.model.payload import JsonInput
from trioboss.model.polling import PollResult, Rescue
from trioboss.model.queue import Queue
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed, Settlements
from trioboss.postgres import BoundStatement, Connection, Pool, Results, open_connection
from trioboss.postgres.errors import is_database_error, is_server_down, translate_errors
from trioboss.postgres.executor import execute, execute_in_transaction
from trioboss.postgres.operation import Operation
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.store import Store

__all__ = ["BossIdentity", "ListenAdapter", "StoreAdapter"]

T = TypeVar("T")

_TIMEOUT = 30.0  # seconds that the server has to answer, where the caller sets no limit
_SHORT_KEEPALIVES = {
    # The server notices within seconds that this machine is gone, and releases the lock of its presence.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
# Seconds that a leader leads without a poll: longer than the 20 s between two polls, so that it stays the leader. If
# its session ends, the next candidate that polls leads.
_LEADERSHIP = 30.0
# The same behind a pooler, where no lock shows that the leader died, and polls are more frequent.
_POLLED_LEADERSHIP = 8.0
_LISTENER_TIMEOUT = 4.0  # seconds that the server has to answer a listener
_NO_ANSWER = f"the server has not answered the listener within {_LISTENER_TIMEOUT:g} s"


class refusals_as_unavailable:
    """A block in which a statement that was refused, or an answer that cannot be read, counts as no answer.

    Both come from rows: no actor may end, or count as crashed, because of what somebody has written into a table. It
    reports the failure and tries again, less and less often.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if is_server_down(error):
            raise ServerDown(str(error).partition("\n")[0]) from error
        if isinstance(error, StatementFailed) or is_database_error(error):
            raise DatabaseUnavailable(str(error)) from error
        if isinstance(error, Exception) and not isinstance(error, TriobossError):
            raise DatabaseUnavailable(f"an answer cannot be read: {type(error).__name__}: {error}") from error


@attrs.define(eq=False)
class BossIdentity:
    """How other bosses see this one."""

    id: UUID
    is_pooled: bool
    """A transaction pooler is in between: no session belongs to this boss for longer than a transaction."""
    pid: int | None = None
    """The server process of the session that holds the lock of its presence, while there is one."""

    @property
    def lock(self) -> int | None:
        """The advisory lock of its presence: 63 bits of its random id. None where only a time shows its presence."""
        # 63 bits: an advisory lock is a signed bigint.
        return None if self.is_pooled else self.id.int & (1 << 63) - 1

    def describe(self, registration: Registration) -> dict[str, Any]:
        """A worker of this boss, as the parameters of register_worker.sql."""
        about = {"host": platform.node(), "pid": os.getpid(), "version": __version__}
        info = json.dumps(about | {"slots": registration.slots})
        names = {"worker": registration.worker, "name": registration.name, "queue": registration.queue}
        return names | {"boss": self.id, "lock": self.lock, "info": info}


# -- on the pool of the actors


@attrs.define(eq=False, repr=False)
class StoreAdapter:
    """WorkPort, MaintenancePort, MonitorPort and SchedulePort of one boss: each method executes one operation of the
    store, and is described by its port.
    """

    _identity: BossIdentity
    _store: Store
    pool: Pool
    """The connections of the actors: no caller can use them up."""

    async def _execute(
        self, operation: Operation[T], run: Callable[[Operation[T], Pool], Awaitable[T]] = execute
    ) -> T:
        with refusals_as_unavailable(), trio.move_on_after(_TIMEOUT):
            return await run(operation, self.pool)
        raise DatabaseUnavailable(f"the server has not answered within {_TIMEOUT:g} s")

    # -- workers

    async def settle_and_claim(
        self,
        queue: str,
        settlements: Settlements,
        request: ClaimRequest | None,
        *,
        notify: str | None,
    ) -> SettledAndClaimed:
        settle_and_claim = self._store.settle_and_claim.settle_and_claim
        operation = settle_and_claim(queue, settlements, request, notify=notify)
        with refusals_as_unavailable():  # without a limit: the dispatcher has its own
            return await execute(operation, self.pool)

    async def recover_unseen(self, queue: str, worker: UUID, known: Sequence[UUID]) -> None:
        await self._execute(self._store.presence.recover_unseen(queue, worker, known))

    async def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Mapping[str, float]:
        return await self._execute(self._store.presence.bulk_poll(worker, queues))

    async def check(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        return await self._execute(self._store.leases.check(leases))

    async def register(self, registration: Registration) -> None:
        about = self._identity.describe(registration)
        await self._execute(self._store.presence.register(lambda: self._identity.pid, **about))

    async def unregister(self, worker: UUID) -> None:
        await self._execute(self._store.presence.unregister(worker))

    async def get_queues(self) -> list[Queue]:
        return await self._execute(self._store.queues.get_all())

    # -- handlers

    async def extend(self, queue: str, lease: Lease, seconds: Any) -> float:
        return await self._execute(self._store.leases.extend(queue, lease, seconds))

    async def report_progress(self, queue: str, lease: Lease, value: JsonInput) -> None:
        await self._execute(self._store.leases.report_progress(queue, lease, value))

    async def renew(self, leases: Mapping[str, Sequence[Lease]]) -> dict[UUID, bool]:
        return await self._execute(self._store.leases.renew(leases))

    async def complete(self, queue: str, lease: Lease, output: str) -> bool:
        return lease.id in await self._execute(self._store.settling.complete_leases(queue, [(lease, output)]))

    # -- maintenance, the monitors and the scheduler

    async def rescue_leases(
        self, grace: float, margin: float, *, warnings: bool, certain: bool, queue: str | None = None
    ) -> Rescue:
        rescue = self._store.maintenance.rescue_leases
        return await self._execute(rescue(grace, margin, warnings=warnings, certain=certain, queue=queue))

    async def find_long_queues(self) -> Sequence[tuple[str | None, str, str]] | None:
        return await self._execute(self._store.maintenance.find_long_queues())

    async def sample(self) -> None:
        await self._execute(self._store.statistics.sample())

    async def keep_warnings(self, warnings: Sequence[tuple[str | None, str, str]]) -> None:
        await self._execute(self._store.statistics.keep_warnings(warnings))

    async def prune(self, queue: str | None = None) -> None:
        with (
            refusals_as_unavailable()
        ):  # without a limit: there may be much to delete, by many short statements
            await execute(self._store.retention.prune(queue), self.pool)

    async def notify(self, message: str) -> None:
        await self._execute(self._store.presence.notify(message))

    async def count_states(self) -> dict[str, dict[str, int]]:
        return await self._execute(self._store.statistics.count_states())

    async def keep_lag(self, lag: float) -> None:
        await self._execute(self._store.presence.keep_lag(self._identity.id, lag))

    async def read_schedules(self) -> tuple[datetime, list[tuple[Schedule, datetime | None]]]:
        return await self._execute(self._store.schedules.read_ticks())

    async def fire(self, schedule: Schedule, due: datetime, id: UUID) -> tuple[bool, UUID | None, float]:
        return await self._execute(self._store.schedules.fire(schedule, due, id), execute_in_transaction)


# -- the listening connection: one session of this boss, or polls through the pool behind a transaction pooler


@attrs.define(eq=False, repr=False)
class ListenAdapter:
    """ListenPort of one boss."""

    _identity: BossIdentity
    _dsn: str
    _pool: Pool
    _store: Store
    _conn: Connection[Any] | None = attrs.field(default=None, init=False)
    """The listening connection, while there is one."""

    def limit_cancel_grace(self, seconds: float) -> None:
        """Let clean-up after a cancellation take no longer than this."""
        if self._conn is not None:
            self._conn.cancel_grace = seconds

    @asynccontextmanager
    async def open_listening_connection(
        self, registrations: Callable[[], Sequence[Registration]]
    ) -> AsyncIterator[ListeningConnection]:
        """Connect, listen, take the lock of our presence, and register the workers."""
        if self._identity.is_pooled:
            yield _PollingConnection(self._identity, self._pool, self._store)
            return
        context = self._store.context
        presence = context.bind("hold_presence", lock=self._identity.lock)
        settings = OWN_SETTINGS | _SHORT_KEEPALIVES
        with refusals_as_unavailable():
            connect = self._pool.settings.connect
            async with open_connection(self._dsn, settings=settings, connect=connect) as conn:
                connection = _ListeningConnection(self._identity, conn, self._store)
                self._conn = conn
                try:
                    await connection.run(context.bind("listen"), presence)
                    self._identity.pid = conn.info.backend_pid
                    # After the pid is set: a worker that registers meanwhile uses it, too.
                    if register := _register(self._store, self._identity, registrations()):
                        await connection.run(*register)
                    yield connection
                finally:
                    self._identity.pid = self._conn = None


@attrs.define(eq=False)
class _ListeningConnection:
    """A session of our own. Its presence and its leadership end with it."""

    _identity: BossIdentity
    _conn: Connection[Any]
    _store: Store

    async def receive(self) -> list[str]:
        """Wait for notifications."""
        with translate_errors(self._conn):
            notifications = await self._conn.wait_notifies()
        return [notification.payload for notification in notifications]

    async def ping(self) -> None:
        """Check the connection without a statement."""
        with translate_errors(self._conn):
            await self._conn.ping(_LISTENER_TIMEOUT)

    async def poll(
        self, queues: Sequence[str], token: str, *, candidate: bool, registrations: Sequence[Registration]
    ) -> PollResult:
        """Poll. The registrations are in force as long as the session is."""
        boss = self._identity.id if candidate else None
        poll = self._store.presence.poll_statement(queues, token, boss, _LEADERSHIP, session=True)
        return self._store.presence.read_poll(await self.run(poll))

    async def run(self, *statements: BoundStatement) -> Results:
        """Run statements, each in a transaction of its own."""
        with trio.move_on_after(_LISTENER_TIMEOUT), translate_errors(self._conn):
            return await self._conn.run([[statement] for statement in statements])
        raise DatabaseUnavailable(_NO_ANSWER)


@attrs.define(eq=False)
class _PollingConnection:
    """Behind a transaction pooler there are no notifications. Presence and leadership are rows with a time."""

    _identity: BossIdentity
    _pool: Pool
    _store: Store

    async def receive(self) -> list[str]:
        """Wait: no notification arrives."""
        await trio.sleep_forever()

    async def ping(self) -> None:
        """Nothing: polls come more often than pings."""

    async def poll(
        self, queues: Sequence[str], token: str, *, candidate: bool, registrations: Sequence[Registration]
    ) -> PollResult:
        """Poll, and renew the times of our presence."""
        boss = self._identity.id if candidate else None
        poll = self._store.presence.poll_statement(queues, token, boss, _POLLED_LEADERSHIP)
        statements = [poll, *_register(self._store, self._identity, registrations)]
        with refusals_as_unavailable(), trio.move_on_after(_LISTENER_TIMEOUT):
            results = await self._pool.run([[statement] for statement in statements])
            return self._store.presence.read_poll(results)
        raise DatabaseUnavailable(_NO_ANSWER)


def _register(
    store: Store, identity: BossIdentity, registrations: Sequence[Registration]
) -> list[BoundStatement]:
    register = store.presence.register_statement
    return [register(pid=identity.pid, **identity.describe(each)) for each in registrations]
