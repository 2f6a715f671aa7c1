"""The ports of the actors, on the store and a pool of their own: each call executes one operation of the store."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import attrs
import trio

from trioboss.actors.ports import Registration
from trioboss.errors import DatabaseUnavailable
from trioboss.model.job import Lease
from trioboss.model.payload import JsonInput
from trioboss.model.polling import Rescue
from trioboss.model.queue import Queue
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed, Settlements
from trioboss.postgres import Pool
from trioboss.postgres.errors import translate_errors, wrap_driver_errors
from trioboss.postgres.executor import execute, execute_in
from trioboss.postgres.operation import Operation
from trioboss.runtime.listening import BossIdentity
from trioboss.runtime.refusals import refusals_as_unavailable
from trioboss.store import Store

__all__ = ["StoreAdapter"]

T = TypeVar("T")

_TIMEOUT = 30.0  # seconds that the server has to answer, where the caller sets no limit


@attrs.define(eq=False, repr=False)
class StoreAdapter:
    """WorkPort, MaintenancePort, MonitorPort and SchedulePort of one boss."""

    _identity: BossIdentity
    _store: Store
    pool: Pool
    """The connections of the actors: no caller can use them up."""

    async def _execute(self, operation: Operation[T]) -> T:
        with refusals_as_unavailable(), trio.move_on_after(_TIMEOUT):
            return await execute(operation, self.pool)
        raise DatabaseUnavailable(f"the server has not answered within {_TIMEOUT:g} s")

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
        """Settle outcomes and claim jobs. The dispatcher limits the time."""
        operation = self._store.settle_and_claim.settle_and_claim(
            queue, settlements, request, promote_due=promote_due, idle=idle, notify=notify
        )
        with refusals_as_unavailable():
            return await execute(operation, self.pool)

    async def recover_unseen(self, queue: str, worker: UUID, known: Sequence[UUID]) -> None:
        """Queue unknown jobs of a worker again."""
        await self._execute(self._store.presence.recover_unseen(queue, worker, known))

    async def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Mapping[str, float]:
        """Set idle markers, then poll."""
        return await self._execute(self._store.presence.bulk_poll(worker, queues))

    async def check(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        """Check leases."""
        return await self._execute(self._store.leases.check(leases))

    async def register(self, registration: Registration) -> None:
        """Register a worker."""
        worker, name, queue = registration.worker, registration.name, registration.queue
        identity = self._identity
        info = identity.describe(registration.slots)
        while True:
            pid = identity.pid
            operation = self._store.presence.register(
                worker, identity.id, name, queue, identity.lock, pid, info
            )
            await self._execute(operation)
            if (
                identity.pid == pid
            ):  # else the listener has reconnected meanwhile, and this pid is that of a dead session
                return

    async def unregister(self, worker: UUID) -> None:
        """Remove a worker."""
        await self._execute(self._store.presence.unregister(worker))

    async def get_queues(self) -> list[Queue]:
        """Read all queues."""
        return await self._execute(self._store.queues.get_all())

    # -- handlers

    async def extend(self, queue: str, lease: Lease, seconds: Any) -> float:
        """Extend a lease."""
        return await self._execute(self._store.leases.extend(queue, lease, seconds))

    async def report_progress(self, queue: str, lease: Lease, value: JsonInput) -> None:
        """Record progress."""
        await self._execute(self._store.leases.report_progress(queue, lease, value))

    async def renew(self, leases: Mapping[str, Sequence[Lease]]) -> dict[UUID, bool]:
        """Renew leases."""
        return await self._execute(self._store.leases.renew(leases))

    async def complete(self, queue: str, lease: Lease, output: str) -> bool:
        """Complete one job."""
        return lease.id in await self._execute(self._store.settling.complete_leases(queue, [(lease, output)]))

    # -- maintenance, the monitor and the scheduler

    async def keep_lag(self, lag: float) -> None:
        """Tell operators for how long the event loop stood still."""
        await self._execute(self._store.presence.keep_lag(self._identity.id, lag))

    async def rescue_leases(
        self, grace: float, margin: float, *, warnings: bool, certain: bool, queue: str | None = None
    ) -> Rescue:
        """End leases that expired, or whose worker is gone."""
        operation = self._store.maintenance.rescue_leases(
            grace, margin, warnings=warnings, certain=certain, queue=queue
        )
        return await self._execute(operation)

    async def find_long_queues(self) -> Sequence[tuple[str | None, str, str]] | None:
        """Find queues that are too long."""
        return await self._execute(self._store.maintenance.find_long_queues())

    async def sample(self) -> None:
        """Take a sample of all queues."""
        await self._execute(self._store.statistics.sample())

    async def keep_warnings(self, warnings: Sequence[tuple[str | None, str, str]]) -> None:
        """Keep warnings."""
        await self._execute(self._store.statistics.keep_warnings(warnings))

    async def prune(self, queue: str | None = None) -> None:
        """Retention. There may be much to delete, so the whole has no time limit; each statement is short."""
        retention = self._store.retention
        with refusals_as_unavailable():
            await execute(retention.prune() if queue is None else retention.prune_queue(queue), self.pool)

    async def notify(self, message: str) -> None:
        """Send a notification."""
        await self._execute(self._store.presence.notify(message))

    async def count_states(self) -> dict[str, dict[str, int]]:
        """Count jobs by state."""
        return await self._execute(self._store.statistics.count_states())

    async def read_schedules(self) -> tuple[datetime, list[tuple[Schedule, datetime | None]]]:
        """Read the schedules."""
        return await self._execute(self._store.schedules.read_ticks())

    async def fire(self, schedule: Schedule, due: datetime, id: UUID) -> tuple[bool, UUID | None, float]:
        """Fire one tick: the tick and its job are one transaction, so this needs one connection throughout."""
        operation = self._store.schedules.fire(schedule, due, id)
        with trio.move_on_after(_TIMEOUT):
            async with self.pool.connection() as conn:
                with refusals_as_unavailable(), wrap_driver_errors(), translate_errors(conn):
                    async with conn.transaction():
                        return await execute_in(conn, operation, self.pool)
        raise DatabaseUnavailable(f"the server has not answered within {_TIMEOUT:g} s")
