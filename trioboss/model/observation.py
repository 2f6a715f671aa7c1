"""The view of an operator: workers, attempts, backlogs, and a view of everything that happens now."""

from datetime import datetime
from uuid import UUID

import attrs

from trioboss.model.payload import Json

__all__ = [
    "Attempt",
    "BacklogJob",
    "BlockedBacklog",
    "BlockedKey",
    "FailureView",
    "Observation",
    "QueueView",
    "RunningView",
    "WorkerView",
]


@attrs.frozen
class WorkerView:
    """A worker as the database has it."""

    id: UUID
    boss: UUID
    name: str
    queue: str
    """A name, or a pattern with *."""
    started_on: datetime
    seen_on: datetime
    """When it was last registered; since when it is gone."""
    present: bool
    """Whether its boss is connected."""
    pooled: bool
    """Whether it is connected through a transaction pooler, in polling mode."""
    running: int


@attrs.frozen
class Attempt:
    """An attempt that did not end well."""

    attempt: int
    worker: UUID | None
    started_on: datetime
    ended_on: datetime
    outcome: str
    """failed, expired, lost, released or cancelled."""
    error: Json


@attrs.frozen
class BacklogJob:
    """A job in the backlog of its key."""

    id: UUID
    readiness: str
    attempt: int
    created_on: datetime
    start_after: datetime


@attrs.frozen
class QueueView:
    """A queue now."""

    name: str
    policy: str
    paused: bool
    waiting: int
    deferred: int
    active: int
    oldest_age: float
    sent: int
    """Since the time that was asked for."""
    workers: int


@attrs.frozen
class RunningView:
    """A job that is running."""

    queue: str
    id: UUID
    attempt: int
    age: float
    expires_in: float | None
    progress: Json
    worker: str | None


@attrs.frozen
class FailureView:
    """An attempt that did not end well."""

    queue: str
    id: UUID
    attempt: int
    outcome: str
    age: float
    error: Json


@attrs.frozen
class BlockedKey:
    """A key of a strict FIFO queue, and the failed job that blocks it."""

    queue: str
    key: str
    id: UUID


@attrs.frozen
class BlockedBacklog:
    """A key of a strict FIFO queue, the failed job that blocks it, and the jobs behind it."""

    queue: str
    key: str
    id: UUID
    since: datetime | None
    error: Json
    waiting: int
    """Counted up to 10,000."""


@attrs.frozen
class Observation:
    """Everything that happens now."""

    queues: tuple[QueueView, ...]
    running: tuple[RunningView, ...]
    failures: tuple[FailureView, ...]
    blocked: tuple[BlockedKey, ...]
    workers: tuple[WorkerView, ...]
