"""The needs of the actors from the outside, as protocols: runtime/ implements them on the store, tests in memory.

Every call answers within a bounded time, or raises DatabaseUnavailable, except where a method says otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import attrs

from trioboss.model.job import Lease
from trioboss.model.payload import JsonInput
from trioboss.model.polling import PollResult, Rescue
from trioboss.model.queue import Queue
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed, Settlements

__all__ = [
    "LeasePort",
    "ListenPort",
    "ListeningConnection",
    "MaintenancePort",
    "MonitorPort",
    "Registration",
    "SchedulePort",
    "WorkPort",
]


@attrs.frozen
class Registration:
    """A worker, as other bosses see it in the database."""

    worker: UUID
    name: str
    queue: str
    slots: int | None = None
    """How many jobs it runs at once."""


class LeasePort(Protocol):
    """The operations of a handler on its lease."""

    async def extend(self, queue: str, lease: Lease, seconds: Any) -> float:
        """Let the lease expire later; return its length. Raises LeaseLost."""

    async def report_progress(self, queue: str, lease: Lease, value: JsonInput) -> None:
        """Record how far the job has come. Raises LeaseLost."""

    async def renew(self, leases: Mapping[str, Sequence[Lease]]) -> dict[UUID, bool]:
        """Renew leases, given by queue; return the ids of those that are still held, and whether each was renewed: not
        if an open transaction, for instance one that settles the job, has locked it.
        """

    async def complete(self, queue: str, lease: Lease, output: str) -> bool:
        """Settle the job, with its output as JSON text; return whether the lease was still held."""


class WorkPort(LeasePort, Protocol):
    """The operations that workers need."""

    async def settle_and_claim(
        self,
        queue: str,
        settlements: Settlements,
        request: ClaimRequest | None,
        *,
        notify: str | None,
    ) -> SettledAndClaimed:
        """Settle outcomes, and claim jobs unless ``request`` is None, in one round trip; ``notify`` is sent on the
        channel. The caller limits the time.
        """

    async def recover_unseen(self, queue: str, worker: UUID, known: Sequence[UUID]) -> None:
        """Queue the jobs again that are leased to the worker, other than the known ones."""

    async def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Mapping[str, float]:
        """Set the worker's idle marker in these queues, and then find in how many seconds each has a job to claim.
        Queues without one are left out.
        """

    async def check(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        """The ids of those leases, given by queue, that are still held. None of them is renewed."""

    async def register(self, registration: Registration) -> None:
        """A worker starts."""

    async def unregister(self, worker: UUID) -> None:
        """A worker has ended."""

    async def get_queues(self) -> list[Queue]:
        """All queues."""


class ListeningConnection(Protocol):
    """One session that listens on the channel."""

    async def receive(self) -> list[str]:
        """Wait for notifications, without a limit of time. No notification is lost when this is cancelled."""

    async def ping(self) -> None:
        """Check the connection without a statement."""

    async def poll(
        self, queues: Sequence[str], token: str, *, candidate: bool, registrations: Sequence[Registration]
    ) -> PollResult:
        """Find in how many seconds each queue has a job to claim, send a probe with the token to the channel, renew the
        registrations where that is needed, and lead, if a candidate and no other boss does.
        """


class ListenPort(Protocol):
    """Opens listening connections."""

    def open_listening_connection(
        self, registrations: Callable[[], Sequence[Registration]]
    ) -> AbstractAsyncContextManager[ListeningConnection]:
        """Connect, listen, take the lock by which other bosses see that this one is alive, and register its workers
        again: the leader deletes the rows of a boss that was away for too long. Raises ServerDown if no server runs
        there.
        """


class MaintenancePort(Protocol):
    """The operations that maintenance needs."""

    async def rescue_leases(
        self, grace: float, margin: float, *, warnings: bool, certain: bool, queue: str | None = None
    ) -> Rescue:
        """End leases that expired ``margin`` seconds ago, or whose worker has stopped or has no row; if ``certain``,
        also those whose worker is gone for ``grace`` seconds, or whose heartbeats stopped. Of all queues, or of one.
        ``warnings``: also find problems for operators.
        """

    async def find_long_queues(self) -> Sequence[tuple[str | None, str, str]] | None:
        """Queues with more jobs queued than their warning_queue_size: queue, kind, message; or None if none has one."""

    async def sample(self) -> None:
        """Add what is new to the statistics of all queues."""

    async def keep_warnings(self, warnings: Sequence[tuple[str | None, str, str]]) -> None:
        """Keep warnings for operators: the queue, the kind, and the message of each."""

    async def prune(self, queue: str | None = None) -> None:
        """Retention: drop old jobs and history, make the partitions of the next days; or drop old jobs of one queue.
        This may take long.
        """

    async def notify(self, message: str) -> None:
        """Send a notification to all bosses."""


class MonitorPort(Protocol):
    """The operations that the monitors need."""

    async def count_states(self) -> dict[str, dict[str, int]]:
        """How many jobs of each queue are in each state."""

    async def keep_lag(self, lag: float) -> None:
        """Keep for operators for how many seconds the event loop of this boss stood still."""


class SchedulePort(Protocol):
    """The operations that the scheduler needs."""

    async def read_schedules(self) -> tuple[datetime, list[tuple[Schedule, datetime | None]]]:
        """The time of the database, and each schedule with the last tick that was fired."""

    async def fire(self, schedule: Schedule, due: datetime, id: UUID) -> tuple[bool, UUID | None, float]:
        """Fire one tick. Returns whether this call has fired it, and the id of its job; and how many seconds it is too
        early for the tick, by the clock of the database.
        """
