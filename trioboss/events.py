"""Everything that the actors report, as values. Logs, metrics, tests and `boss.events()` read the same stream."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import attrs

__all__ = [
    "ActorRestarted",
    "ErrorEvent",
    "Event",
    "JobCancelled",
    "JobCompleted",
    "JobFailed",
    "JobReleased",
    "JobStarted",
    "JobStuck",
    "JobsRecovered",
    "LeaderChanged",
    "LeaseLostEvent",
    "ListenerDown",
    "ListenerUp",
    "LoopBlocked",
    "MonitorStates",
    "QueueWarning",
    "Stopped",
    "TickFired",
    "Wip",
    "WorkerWip",
]


@attrs.frozen
class Event:
    """Something that happened in this boss."""


@attrs.frozen
class JobStarted(Event):
    """A handler was called."""

    queue: str
    id: UUID
    attempt: int
    waited: float
    """Seconds from when the job could have started until it did."""


@attrs.frozen
class JobCompleted(Event):
    """A job's completion is in the database."""

    queue: str
    id: UUID
    attempt: int
    waited: float
    ran: float
    """Seconds that its handler took."""


@attrs.frozen
class JobFailed(Event):
    """A job's failure is in the database: it will be retried, or it has failed for good."""

    queue: str
    id: UUID
    attempt: int
    waited: float
    ran: float
    error: str
    """The error in one line."""
    state: Literal["retry", "failed"]


@attrs.frozen
class JobCancelled(Event):
    """The handler of a job that was cancelled, deleted or settled elsewhere has ended. Nothing was settled here."""

    queue: str
    id: UUID
    attempt: int
    ran: float
    """Seconds that its handler took."""


@attrs.frozen
class JobReleased(Event):
    """A job was released before it ended, and is queued again. No retry is spent."""

    queue: str
    id: UUID
    attempt: int


@attrs.frozen
class LeaseLostEvent(Event):
    """The lease of an attempt was lost: the job expired, was cancelled or runs elsewhere. Nothing was settled."""

    queue: str
    id: UUID
    attempt: int
    reason: str


@attrs.frozen
class JobStuck(Event):
    """A handler was cancelled and does not end: its attempt is settled without it, its slot stays occupied."""

    queue: str
    id: UUID
    attempt: int


@attrs.frozen
class JobsRecovered(Event):
    """Maintenance has ended leases: they had expired, or their worker is gone."""

    queue: str
    ids: tuple[UUID, ...]
    outcome: Literal["expired", "lost"]


@attrs.frozen
class TickFired(Event):
    """The tick of a schedule has become a job."""

    queue: str
    key: str
    due: datetime
    id: UUID | None


@attrs.frozen
class WorkerWip:
    """What one worker is doing."""

    id: UUID
    queue: str
    state: Literal["active", "idle", "stopping"]
    count: int
    """Jobs running."""
    completed: int
    failed: int


@attrs.frozen
class Wip(Event):
    """Work in progress, at most every two seconds, when it has changed."""

    workers: tuple[WorkerWip, ...]


@attrs.frozen
class MonitorStates(Event):
    """How many jobs of each queue are in each state."""

    queues: dict[str, dict[str, int]]


@attrs.frozen
class QueueWarning(Event):
    """Something that an operator should examine."""

    queue: str | None
    warning: str
    """The kind: queue_size, oldest_age, queue_gone, old_snapshot, notify_unavailable, …"""
    message: str


@attrs.frozen
class ListenerUp(Event):
    """The listener receives notifications, or is in polling mode."""


@attrs.frozen
class ListenerDown(Event):
    """The listener has lost its connection, and reconnects."""

    reason: str


@attrs.frozen
class LeaderChanged(Event):
    """This boss does maintenance for all from now on, or no longer does."""

    leads: bool


@attrs.frozen
class LoopBlocked(Event):
    """A handler has blocked the event loop: everything in this process waited."""

    seconds: float


@attrs.frozen
class ActorRestarted(Event):
    """An actor has crashed and was restarted."""

    actor: str
    error: str


@attrs.frozen
class ErrorEvent(Event):
    """An actor could not do something; it will try again."""

    actor: str
    error: str


@attrs.frozen
class Stopped(Event):
    """The boss has stopped: the last event."""
