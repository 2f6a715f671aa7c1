"""Everything that the actors report, as values. Logs, metrics, tests and `boss.events()` read the same stream."""

from collections.abc import Mapping
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
    "JobCreated",
    "JobFailed",
    "JobReleased",
    "JobStarted",
    "JobStuck",
    "JobsRecovered",
    "LateError",
    "LeaderChanged",
    "LeaseExtended",
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
    """Seconds from when the job was due until it started; those behind other jobs of its key count, too."""


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
    exception: BaseException | None = attrs.field(default=None, eq=False, repr=False)
    """The exception that the handler raised; None where it raised none: the job expired, or was failed by a call."""
    dead_letter: str | None = None
    """The queue that got a copy: of a job that has failed for good, and has such a queue."""
    blocked_key: str | None = None
    """The key that it blocks from now on, until it is retried or deleted: of a job that has failed for good in a queue
    with the policy key_strict_fifo.
    """


@attrs.frozen
class LateError(Event):
    """A handler has raised an exception, or returned an output, that has no effect: its job was settled before, by
    `job.transaction` or `job.complete`, or was cancelled or lost.
    """

    queue: str
    id: UUID
    attempt: int
    error: str
    """The error in one line."""
    exception: BaseException | None = attrs.field(default=None, eq=False, repr=False)
    """None for an output."""


@attrs.frozen
class JobReleased(Event):
    """A job was released before it ended, and is queued again. No retry is spent."""

    queue: str
    id: UUID
    attempt: int


@attrs.frozen
class LeaseExtended(Event):
    """A handler has extended its lease."""

    queue: str
    id: UUID
    attempt: int
    expire_in: float
    """Seconds from its start, after which the lease now expires."""


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
    """Maintenance has rescued jobs: it has ended their leases. ``expired``: the attempt took too long. ``lost``: its
    worker is gone, or its heartbeats stopped. ``released``: its worker has stopped and could not settle it; that spends
    no retry.
    """

    queue: str
    ids: tuple[UUID, ...]
    outcome: Literal["expired", "lost", "released"]


@attrs.frozen
class TickFired(Event):
    """The tick of a schedule has become a job."""

    queue: str
    key: str
    due: datetime
    id: UUID | None


@attrs.frozen
class JobCreated(Event):
    """A job was sent by this boss. Made only for readers that name this kind: ``events(JobCreated)``.

    A job that is sent in a caller's transaction exists when that commits, which is after this event.
    """

    queue: str | None
    """None where an event was published, to any number of queues."""
    id: UUID | None
    """None where jobs were inserted without returning their ids."""
    count: int = 1


@attrs.frozen
class JobCancelled(Event):
    """A job was cancelled by this boss; or the handler of a job has ended here because its job was cancelled, deleted,
    or settled elsewhere.
    """

    queue: str
    id: UUID
    attempt: int | None
    """The attempt whose handler was cancelled; None for a job that was not running here."""
    ran: float | None = None
    """Seconds that its handler took; None if it was not called."""


@attrs.frozen
class WorkerWip:
    """The state of one worker. Times are those of this machine; None: never so far."""

    id: UUID
    queue: str
    state: Literal["active", "idle", "stopping"]
    count: int
    """Jobs running."""
    completed: int
    failed: int
    name: str = ""
    """The ``worker_name`` of its boss."""
    options: Mapping[str, object] = attrs.field(factory=dict)
    """The options of `work`, with their defaults."""
    created_on: datetime | None = None
    last_fetched_on: datetime | None = None
    """When it last claimed jobs, with or without success."""
    last_job_started_on: datetime | None = None
    last_job_ended_on: datetime | None = None
    last_job_duration: float | None = None
    """Seconds that the handler of the last ended job took."""
    last_error: str | None = None
    """The last failure of a job, in one line."""
    last_error_on: datetime | None = None


@attrs.frozen
class Wip(Event):
    """Work in progress, every two seconds while jobs run, and when it has changed."""

    workers: tuple[WorkerWip, ...]


@attrs.frozen
class MonitorStates(Event):
    """How many jobs of each queue are in each state: live ones now, ended ones of the last 24 hours."""

    queues: dict[str, dict[str, int]]
    """For each queue every state, also those without jobs, and their sum as ``all``."""
    totals: dict[str, int] = attrs.field(factory=dict)
    """The same for all queues together."""


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

    polling: bool = False
    """Notifications do not arrive, as behind a transaction pooler: the listener polls instead."""
    after: float | None = None
    """Seconds for which there was no connection; None for the first one."""


@attrs.frozen
class ListenerDown(Event):
    """The listener has lost its connection, or could not connect, and tries again. Repeated for another reason, and
    from time to time as long as it lasts; not for each attempt to connect.
    """

    reason: str
    seconds: float = 0.0
    """For how long there has been no connection."""


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
    """The cause; of an exception group, what it contains."""


@attrs.frozen
class ErrorEvent(Event):
    """An actor could not do something; it will try again."""

    actor: str
    error: str


@attrs.frozen
class Stopped(Event):
    """The boss has stopped: the last event."""

    unsettled: int = 0
    """How many outcomes its workers could not settle. Maintenance releases these jobs, with no retry spent."""
