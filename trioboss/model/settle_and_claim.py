"""Requests and answers between a dispatcher and the store: claims, and attempts that have ended."""

import json
from collections.abc import Mapping, Sequence, Set
from typing import Any
from uuid import UUID

import attrs

from trioboss.model.job import Job, Lease
from trioboss.model.states import JobState

__all__ = ["ClaimRequest", "ClaimResult", "Failure", "Position", "SettledAndClaimed", "Settlements"]


@attrs.frozen
class Position:
    """A position in the order of claims: the last job that a dispatcher has claimed."""

    priority: int
    seq: int
    left_seq: int = 0
    """Of a keyed queue: the last check that it has read of those whose owner left."""

    def is_before(self, other: "Position") -> bool:
        """Whether a claim comes to this position first."""
        return (-self.priority, self.seq) < (-other.priority, other.seq)


@attrs.frozen(cache_hash=True)  # the store finds the statements of a claim by its request
class ClaimRequest:
    """A claim: the jobs that it may take, the worker that gets them, and what else it does. A worker's dispatcher fills
    in the latter from claim to claim (machines/dispatch.py).
    """

    limit: int = 1
    worker: UUID | None = None
    by_priority: bool = True
    min_priority: int | None = None
    max_priority: int | None = None
    find_next_due: bool = True
    """Whether to find the next due time, too."""
    after: Position | None = None
    """Begin after this position; None: at the beginning."""
    promote_due: bool = True
    """Make the jobs ready whose start time has come, before."""
    idle: bool | None = None
    """Set or remove the worker's idle marker, before; None: leave it as it is."""


@attrs.frozen
class ClaimResult:
    """The answer to a claim: the jobs, and when to claim again if they are too few."""

    jobs: Sequence[Job]
    """They may be read from the answer at first use; their number is there at once."""
    next_due: float | None
    """Seconds until the next deferred job is due; None if there is none, or if it was not requested."""
    policy: str | None
    """The policy of the queue now; None if there is no such queue."""
    more: bool = False
    """Whether another claim at once may find more."""
    more_after: str = ""
    """The position in the backlogs after which that claim goes on; empty: from the beginning."""
    outdated: bool = False
    """Whether the queue was changed since the boss cached it, so that the claim may have been the wrong one."""
    took: float = 0.0
    """Seconds that its statement ran; 0 if no claim of this kind can begin after a position."""
    left_seq: int | None = None
    """As in `Position`; None if it has read no such check."""

    @property
    def position(self) -> Position | None:
        """The position of the last of its jobs."""
        if not self.jobs:
            return None
        last = self.jobs[-1]
        return Position(last.priority, last.seq, self.left_seq or 0)


@attrs.frozen
class Failure:
    """How an attempt ended badly. The error is JSON text."""

    error: str | None = None
    delay: float | None = None
    """Seconds until the next try, instead of the job's own retry delay."""
    dead: bool = False
    """Skip the retries."""
    outcome: str = "failed"
    """The outcome in the history: failed, expired or lost."""

    def as_json(self) -> str:
        """The elements of the array that retry_failed.sql and fail.sql read."""
        # The error is JSON text already: it is spliced in, and not encoded twice.
        rest = json.dumps([self.delay, self.dead, self.outcome])[1:-1]
        return f"{self.error or 'null'},{rest}"


@attrs.frozen
class Settlements:
    """Attempts that have ended: well, with their output as JSON text; badly; or not at all."""

    completed: Sequence[tuple[Lease, str]] = ()
    failed: Sequence[tuple[Lease, Failure]] = ()
    released: Sequence[Lease] = ()
    postponed: bool = False
    """They were postponed before, because of another transaction: those that still have to wait for one are postponed
    again, without a wait.
    """

    @property
    def leases(self) -> list[Lease]:
        """The leases of all of them."""
        return [*(lease for lease, _ in self.completed), *(lease for lease, _ in self.failed), *self.released]

    def without(self, ids: Set[UUID]) -> "Settlements":
        """The settlements of the other jobs."""
        return Settlements(
            [(lease, output) for lease, output in self.completed if lease.id not in ids],
            [(lease, failure) for lease, failure in self.failed if lease.id not in ids],
            [lease for lease in self.released if lease.id not in ids],
        )

    def __bool__(self) -> bool:
        return bool(self.completed or self.failed or self.released)

    def __len__(self) -> int:
        return len(self.completed) + len(self.failed) + len(self.released)

    def halves(self) -> "tuple[Settlements, Settlements]":
        """Two parts of about the same size, in the order completed, failed, released."""
        kinds = (self.completed, self.failed, self.released)
        first: list[Sequence[Any]] = []
        second: list[Sequence[Any]] = []
        # Cut in the order of the statement, so that a kind is in both halves only if it is where the cut is.
        room = (len(self) + 1) // 2
        for kind in kinds:
            first.append(kind[:room])
            second.append(kind[room:])
            room = max(0, room - len(kind))
        return Settlements(first[0], first[1], first[2]), Settlements(second[0], second[1], second[2])


@attrs.frozen
class SettledAndClaimed:
    """The answer to settling and claiming: the states of the settled jobs, by id, and the claim."""

    settled: dict[UUID, JobState]
    claim: ClaimResult | None
    """None if nothing was to be claimed, or if its answer is not known: it may have leased jobs."""
    rejected: Mapping[UUID, str] = {}
    """Jobs for which the database accepted no other end than a failure, and why."""
    postponed: Set[UUID] = frozenset()
    """Jobs that are not settled yet, because another transaction has changed them, or what they need, and is open."""
