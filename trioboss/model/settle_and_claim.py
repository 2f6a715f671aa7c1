"""What a worker and the store tell each other: what is wanted, what was claimed, what has ended."""

import json
from collections.abc import Sequence
from uuid import UUID

import attrs

from trioboss.model.job import Job, Lease
from trioboss.model.states import JobState

__all__ = ["Claim", "ClaimRequest", "Failure", "SettledAndClaimed", "Settlements"]


@attrs.frozen
class ClaimRequest:
    """Which jobs a claim is for, and for whom."""

    limit: int = 1
    worker: UUID | None = None
    by_priority: bool = True
    min_priority: int | None = None
    max_priority: int | None = None
    find_next_due: bool = True
    """Whether to say when the next job is due."""


@attrs.frozen
class Claim:
    """What a claim found: the jobs, and what to do when they are not enough."""

    jobs: Sequence[Job]
    """Perhaps not read yet: their number is known sooner."""
    next_due: float | None
    """Seconds until something waits to be made ready; None if nothing waits for time, or if nobody asked."""
    policy: str | None
    """The policy of the queue now; None if there is no such queue."""
    more: bool = False
    """Whether another look at once may find more."""


@attrs.frozen
class Failure:
    """How an attempt ended badly. The error is JSON text."""

    error: str | None = None
    delay: float | None = None
    """Seconds until the next try, instead of the job's own retry delay."""
    dead: bool = False
    """Skip the retries."""
    outcome: str = "failed"
    """What the history calls it: failed, expired or lost."""

    def as_json(self) -> str:
        """The part of the fence that fail.sql reads."""
        rest = json.dumps([self.delay, self.dead, self.outcome])[1:-1]
        return f"{self.error or 'null'},{rest}"


@attrs.frozen
class Settlements:
    """Attempts that have ended: well, with their output as JSON text; badly; or not at all."""

    completed: Sequence[tuple[Lease, str]] = ()
    failed: Sequence[tuple[Lease, Failure]] = ()
    released: Sequence[Lease] = ()

    def __bool__(self) -> bool:
        return bool(self.completed or self.failed or self.released)


@attrs.frozen
class SettledAndClaimed:
    """What settling and claiming did: the states of the jobs it settled, by id, and what it claimed."""

    settled: dict[UUID, JobState]
    claim: Claim | None
