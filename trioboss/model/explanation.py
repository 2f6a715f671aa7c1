"""The reason why a job is not running."""

import enum
from datetime import datetime
from uuid import UUID

import attrs

__all__ = ["Explanation", "Reason"]


class Reason(enum.StrEnum):
    """The first obstacle between a job and its start."""

    UNKNOWN = "unknown"
    """There is no such job in the queue."""
    ENDED = "ended"
    """It has ended, or it failed and blocks its key."""
    RUNNING = "running"
    """A worker has it, or a caller that fetched it."""
    PAUSED = "paused"
    """Its queue is paused."""
    DEFERRED = "deferred"
    """It waits for its time."""
    BLOCKED_KEY = "blocked_key"
    """A failed job of its key blocks it."""
    BEHIND = "behind"
    """Another job of its key goes first."""
    NO_WORKER = "no_worker"
    """No worker takes jobs of its queue, or none of those that do is connected."""
    BUSY = "busy"
    """It is due, and all slots of the workers of its queue are busy."""
    QUEUED = "queued"
    """It is due, and other jobs of its queue go first."""


@attrs.frozen
class Explanation:
    """The answer of `why`: a reason for programs, a sentence for people, and the job or time that it depends on."""

    reason: Reason
    text: str
    until: datetime | None = None
    """When a deferred job becomes due, or the deferred job that it is behind."""
    behind: UUID | None = None
    """The job of the same key that goes first."""

    def __str__(self) -> str:
        return self.text
