"""The ports of the actors, on the store and a pool of its own: this is where the two meet."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import attrs
import trio

from trioboss.actors.ports import ListeningConnection
from trioboss.errors import DatabaseUnavailable, LeaseLost
from trioboss.model.job import Lease
from trioboss.model.payload import Json, encode
from trioboss.model.polling import PollResult, Watch
from trioboss.model.queue import Queue
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed, Settlements
from trioboss.postgres import Connection, Pool, open_connection
from trioboss.postgres.errors import transient_as_unavailable, translate_errors
from trioboss.postgres.executor import execute, execute_in
from trioboss.postgres.operation import Operation
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.postgres.wire import BoundStatement, Results
from trioboss.store import Store

__all__ = ["StoreAdapter"]

T = TypeVar("T")

_SHORT_KEEPALIVES = {
    # The server notices within seconds that this machine is gone, and lets go of the lock of our presence.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
_LEADERSHIP = 30.0  # seconds that a leader leads without a look
# The same behind a pooler, where no lock tells that it died, and looks are more frequent.
_POLLED_LEADERSHIP = 8.0
_PATIENCE = 30.0  # seconds in which the server has to answer anybody else
_ANSWER_TIMEOUT = 4.0  # seconds in which the server has to answer a listener


@attrs.define(eq=False, repr=False)
class StoreAdapter:
    """What the actors need, for one boss."""

    boss_id: UUID
    dsn: str = attrs.field(repr=False)
    _pool: Pool
    _store: Store
    pooled: bool
    """A transaction pooler is in between: no session is ours for longer than a transaction."""
    _workers: dict[UUID, tuple[str, str]] = attrs.field(factory=dict, init=False)
    """The workers that were registered, with their names and queues: who was missed for too long is forgotten by
    the others, and introduces itself again."""

    @property
    def pool(self) -> Pool:
        """The connections of the runtime, which no caller holds."""
        return self._pool

    @property
    def _lock(self) -> int | None:
        """The lock by which others see this boss: 63 bits of its own random id."""
        return None if self.pooled else self.boss_id.int & (1 << 63) - 1

    async def _execute_operation(self, conversation: Operation[T]) -> T:
        with transient_as_unavailable(), trio.move_on_after(_PATIENCE):
            return await execute(conversation, self._pool)
        raise DatabaseUnavailable("the server does not answer")

    # -- workers

    async def settle_and_claim(
        self,
        queue: str,
        settlements: Settlements,
        request: ClaimRequest | None,
        *,
        promote_due: bool,
        idle: bool | None,
        notify: str | None,
    ) -> SettledAndClaimed:
        """Settle what has ended and claim what is wanted, in one round trip; the caller says how long it may take."""
        operation = self._store.working.settle_and_claim(
            queue, settlements, request, promote_due=promote_due, idle=idle, notify=notify
        )
        with transient_as_unavailable():
            return await execute(operation, self._pool)

    async def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Mapping[str, float]:
        """Mark dispatchers as asleep, then look."""
        return await self._execute_operation(self._store.maintenance.bulk_poll(worker, queues))

    async def recover_unseen(self, queue: str, worker: UUID, known: Sequence[UUID]) -> None:
        """Queue again what the worker was given by a claim whose answer got lost."""
        await self._execute_operation(self._store.maintenance.recover_unseen(queue, worker, known))

    async def renew(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        """Heartbeats for leases, by queue; return the ids of those still held."""
        return await self._execute_operation(self._store.claiming.renew(leases))

    async def check(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        """The ids of those leases that are still held; none of them is renewed."""
        return await self._execute_operation(self._store.claiming.check(leases))

    async def register(self, worker: UUID, name: str, queue: str) -> None:
        """A worker begins."""
        self._workers[worker] = (name, queue)
        await self._execute_operation(
            self._store.maintenance.register(worker, self.boss_id, name, queue, self._lock)
        )

    async def unregister(self, worker: UUID) -> None:
        """A worker has ended."""
        self._workers.pop(worker, None)
        await self._execute_operation(self._store.maintenance.unregister(worker))

    def _introductions(self) -> list[BoundStatement]:
        return [
            self._store.maintenance.introducing(worker, self.boss_id, name, queue, self._lock)
            for worker, (name, queue) in self._workers.items()
        ]

    async def get_queues(self) -> list[Queue]:
        """All queues."""
        return await self._execute_operation(self._store.queues.get_all())

    # -- handlers

    async def extend(self, queue: str, lease: Lease, seconds: Any) -> float:
        """Let a lease expire later; return its length."""
        return await self._execute_operation(self._store.claiming.extend(queue, lease, seconds))

    async def touch_one(self, queue: str, lease: Lease) -> None:
        """Renew one lease, or raise LeaseLost."""
        if lease.id not in await self.renew({queue: [lease]}):
            raise LeaseLost(queue, [lease.id])

    async def report_progress(self, queue: str, lease: Lease, value: Json) -> None:
        """Note how far a job has come."""
        await self._execute_operation(self._store.claiming.report_progress(queue, lease, value))

    async def complete(self, queue: str, lease: Lease, output: Json) -> None:
        """Settle a job from within its handler."""
        text = "null" if output is None else encode(output, "output", self._store.context.max_bytes)
        done = await self._execute_operation(self._store.settling.complete_leases(queue, [(lease, text)]))
        if lease.id not in done:
            raise LeaseLost(queue, [lease.id])

    # -- maintenance and cron

    async def rescue_leases(self, grace: float, margin: float, *, full: bool) -> Watch:
        """End leases that ran out, or whose worker is gone."""
        return await self._execute_operation(self._store.maintenance.watch(grace, margin, full=full))

    async def prune(self) -> None:
        """Retention. There may be a lot to delete; each step of it is short."""
        with transient_as_unavailable():
            await execute(self._store.maintenance.tidy(), self._pool)

    async def count_states(self) -> dict[str, dict[str, int]]:
        """How many jobs of each queue are in each state."""
        return await self._execute_operation(self._store.maintenance.count_states())

    async def notify(self, message: str) -> None:
        """Tell all bosses something."""
        await self._execute_operation(self._store.maintenance.announce(message))

    async def read_schedules(self) -> tuple[datetime, list[tuple[Schedule, datetime | None]]]:
        """The time of the database, and each schedule with its last tick."""
        return await self._execute_operation(self._store.maintenance.read_schedules())

    async def fire(self, schedule: Schedule, due: datetime, id: UUID) -> tuple[bool, UUID | None, float]:
        """Fire one tick: the ledger and the job in one transaction."""
        verb = self._store.maintenance.fire(schedule, due, id)
        with trio.move_on_after(_PATIENCE):
            async with self._pool.connection() as conn:
                with transient_as_unavailable(), translate_errors(conn):
                    async with conn.transaction():
                        return await execute_in(conn, verb, self._pool)
        raise DatabaseUnavailable("the server does not answer")

    # -- listening

    @asynccontextmanager
    async def open_listening_connection(self) -> AsyncIterator[ListeningConnection]:
        """Connect, listen, and hold the lock of our presence."""
        if self.pooled:
            yield _PollingConnection(self._pool, self._store, self.boss_id, self._introductions)
            return
        context = self._store.context
        presence = context.step("hold_presence", lock=self._lock)
        settings = OWN_SETTINGS | _SHORT_KEEPALIVES
        with transient_as_unavailable():
            async with open_connection(self.dsn, settings=settings) as conn:
                connection = _ListeningConnection(conn, self._store, self.boss_id)
                await connection.run(context.step("listen"), presence, *self._introductions())
                yield connection


@attrs.define(eq=False)
class _ListeningConnection:
    """One listening session."""

    _conn: Connection[Any]
    _store: Store
    _boss: UUID

    async def receive(self) -> list[str]:
        """Wait for words on the channel. To be cancelled loses none."""
        with translate_errors(self._conn):
            words = await self._conn.wait_notifies()
        return [word.payload for word in words]

    async def ping(self) -> None:
        """Prove that the other side is there, without a statement."""
        with translate_errors(self._conn):
            await self._conn.ping(_ANSWER_TIMEOUT)

    async def poll(self, queues: Sequence[str], token: str, *, candidate: bool) -> PollResult:
        """See what these queues have to do, and lead if nobody does."""
        boss = self._boss if candidate else None
        step = self._store.maintenance.looking(queues, token, boss, _LEADERSHIP, session=True)
        return self._store.maintenance.read_look(await self.run(step))

    async def run(self, *steps: BoundStatement) -> Results:
        """Run steps, each by itself; the server has to answer in time."""
        with trio.move_on_after(_ANSWER_TIMEOUT), translate_errors(self._conn):
            return await self._conn.run([[step] for step in steps])
        raise DatabaseUnavailable("the server does not answer the listener")


@attrs.define(eq=False)
class _PollingConnection:
    """Behind a transaction pooler: no words, only looks. Presence and leadership are rows with a time."""

    _pool: Pool
    _store: Store
    _boss: UUID
    _introductions: Callable[[], list[BoundStatement]]

    async def receive(self) -> list[str]:
        """Wait; nothing will be heard."""
        await trio.sleep_forever()

    async def ping(self) -> None:
        """Looks come often enough."""

    async def poll(self, queues: Sequence[str], token: str, *, candidate: bool) -> PollResult:
        """See what these queues have to do, say that we are here, and lead if nobody does."""
        boss = self._boss if candidate else None
        step = self._store.maintenance.looking(queues, token, boss, _POLLED_LEADERSHIP)
        with transient_as_unavailable(), trio.move_on_after(_ANSWER_TIMEOUT):
            results = await self._pool.run([[each] for each in (step, *self._introductions())])
            return self._store.maintenance.read_look(results)
        raise DatabaseUnavailable("the server does not answer the listener")
