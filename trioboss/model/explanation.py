"""The reason why a job is not running."""

import enum
from datetime import datetime
from uuid import UUID

import attrs

__all__ = ["Explanation", "Reason"]


class Reason(enum.StrEnum):
    """The first obstacle between a job and its start."""

    UNKNOWN = "unknown"
    ENDED = "ended"
    RUNNING = "running"
    PAUSED = "paused"
    DEFERRED = "deferred"
    BLOCKED_KEY = "blocked_key"
    BEHIND = "behind"
    NO_WORKER = "no_worker"
    QUEUED = "queued"


@attrs.frozen
class Explanation:
    """The answer of `why`: a reason for programs, a sentence for people, and the job or time that it depends on."""

    reason: Reason
    text: str
    until: datetime | None = None
    """When a deferred job becomes due."""
    behind: UUID | None = None
    """The job of the same key that goes first."""

    def __str__(self) -> str:
        return self.text
