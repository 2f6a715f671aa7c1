"""Everything the runtime reports, as values. Logs, metrics, tests and `boss.events()` see the same stream."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import attrs

__all__ = [
    "ActorRestarted",
    "ErrorEvent",
    "Event",
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
    """A handler was given a job."""

    queue: str
    id: UUID
    attempt: int
    waited: float
    """Seconds from when the job could have started."""


@attrs.frozen
class JobCompleted(Event):
    """A job's completion is in the database."""

    queue: str
    id: UUID
    attempt: int
    waited: float
    ran: float
    """Seconds its handler took."""


@attrs.frozen
class JobFailed(Event):
    """A job's failure is in the database: it will be retried, or it has failed for good."""

    queue: str
    id: UUID
    attempt: int
    waited: float
    ran: float
    error: str
    """What went wrong, in one line."""
    state: Literal["retry", "failed"]


@attrs.frozen
class JobReleased(Event):
    """A job was given back unfinished, with no attempt spent."""

    queue: str
    id: UUID
    attempt: int


@attrs.frozen
class LeaseLostEvent(Event):
    """An attempt was no longer ours to settle: the job expired, was cancelled or runs elsewhere."""

    queue: str
    id: UUID
    attempt: int
    reason: str


@attrs.frozen
class JobStuck(Event):
    """A handler was cancelled and does not end; its attempt was settled without it, its slot stays taken."""

    queue: str
    id: UUID
    attempt: int


@attrs.frozen
class JobsRecovered(Event):
    """Leases ended by maintenance: they had expired, or their worker is gone."""

    queue: str
    ids: tuple[UUID, ...]
    outcome: Literal["expired", "lost"]


@attrs.frozen
class TickFired(Event):
    """A schedule's tick became a job."""

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
    """Work in progress, at most every two seconds, while jobs start or end."""

    workers: tuple[WorkerWip, ...]


@attrs.frozen
class MonitorStates(Event):
    """How many jobs of each queue are in each state."""

    queues: dict[str, dict[str, int]]


@attrs.frozen
class QueueWarning(Event):
    """Something an operator should look at."""

    queue: str | None
    warning: str
    """What kind: queue_size, oldest_age, queue_gone, old_snapshot, notify_unavailable, …"""
    message: str


@attrs.frozen
class ListenerUp(Event):
    """The listener hears the channel."""


@attrs.frozen
class ListenerDown(Event):
    """The listener lost its connection, and tries to get it back."""

    reason: str


@attrs.frozen
class LeaderChanged(Event):
    """This boss now does, or no longer does, maintenance for all."""

    leads: bool


@attrs.frozen
class LoopBlocked(Event):
    """A handler held up the event loop: everything in this process waited."""

    seconds: float


@attrs.frozen
class ActorRestarted(Event):
    """An actor crashed and was started again."""

    actor: str
    error: str


@attrs.frozen
class ErrorEvent(Event):
    """Something went wrong in the background; it will be tried again."""

    actor: str
    error: str


@attrs.frozen
class Stopped(Event):
    """The boss has stopped: the last event."""
