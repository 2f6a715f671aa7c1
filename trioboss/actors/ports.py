"""What the actors need of the world. The store happens to fit; `boss.py` joins them; tests bring a script.

Every call answers within a bounded time, or raises DatabaseUnavailable.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from trioboss.model.job import Lease
from trioboss.model.payload import Json
from trioboss.model.polling import PollResult, Watch
from trioboss.model.queue import Queue
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed, Settlements

__all__ = [
    "LeasePort",
    "ListenPort",
    "ListeningConnection",
    "MaintenancePort",
    "MonitorPort",
    "SchedulePort",
    "WorkPort",
]


class LeasePort(Protocol):
    """What a handler can do to its lease. Each raises LeaseLost if it is no longer held."""

    async def extend(self, queue: str, lease: Lease, seconds: Any) -> float:
        """Let it expire later; return its length."""

    async def touch_one(self, queue: str, lease: Lease) -> None:
        """Renew it."""

    async def report_progress(self, queue: str, lease: Lease, value: Json) -> None:
        """Note how far the job has come."""

    async def complete(self, queue: str, lease: Lease, output: Json) -> None:
        """Settle the job."""


class WorkPort(LeasePort, Protocol):
    """What workers need."""

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
        """Settle what has ended and claim what is wanted, in one round trip."""

    async def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Mapping[str, float]:
        """Mark the worker's dispatchers of these queues as asleep, then look: in how many seconds there is
        something to claim, for those queues where there is.
        """

    async def recover_unseen(self, queue: str, worker: UUID, known: Sequence[UUID]) -> None:
        """Queue again what the worker was given by a claim whose answer got lost."""

    async def renew(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        """Heartbeats for leases, by queue; return the ids of those still held."""

    async def check(self, leases: Mapping[str, Sequence[Lease]]) -> set[UUID]:
        """The ids of those leases that are still held; none of them is renewed."""

    async def register(self, worker: UUID, name: str, queue: str) -> None:
        """A worker begins."""

    async def unregister(self, worker: UUID) -> None:
        """A worker has ended."""

    async def get_queues(self) -> list[Queue]:
        """All queues."""


class ListeningConnection(Protocol):
    """One session that listens."""

    async def receive(self) -> list[str]:
        """Wait for words on the channel. To be cancelled loses none."""

    async def ping(self) -> None:
        """Prove that the other side is there, without a statement."""

    async def poll(self, queues: Sequence[str], token: str, *, candidate: bool) -> PollResult:
        """See what these queues have to do; say the token on the channel; try to lead, if a candidate."""


class ListenPort(Protocol):
    """Where ears come from."""

    def open_listening_connection(self) -> AbstractAsyncContextManager[ListeningConnection]:
        """Connect, listen, and hold the lock by which others see that this boss is alive."""


class MaintenancePort(Protocol):
    """What maintenance needs."""

    async def rescue_leases(self, grace: float, margin: float, *, full: bool) -> Watch:
        """End leases that ran out ``margin`` seconds ago, or whose worker is gone for ``grace`` seconds."""

    async def prune(self) -> None:
        """Retention: drop what is old, make room for what comes."""

    async def notify(self, message: str) -> None:
        """Say something on the channel."""


class MonitorPort(Protocol):
    """What the monitor needs."""

    async def count_states(self) -> dict[str, dict[str, int]]:
        """How many jobs of each queue are in each state."""


class SchedulePort(Protocol):
    """What cron needs."""

    async def read_schedules(self) -> tuple[datetime, list[tuple[Schedule, datetime | None]]]:
        """The time of the database, and each schedule with the last tick that was fired."""

    async def fire(self, schedule: Schedule, due: datetime, id: UUID) -> tuple[bool, UUID | None, float]:
        """Fire one tick: was it ours to fire, the job's id, and in how many seconds it is due if too early."""
