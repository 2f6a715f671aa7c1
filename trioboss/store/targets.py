"""What verbs are asked to settle: jobs, jobs in the hands of their handlers, or ids; one or many."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import attrs

from trioboss.errors import JobNotFound, LeaseLost, UsageError
from trioboss.model.check import check_name, check_uuid, shown
from trioboss.model.job import HandedJob, Job, Lease, Settled
from trioboss.model.states import JobState

__all__ = ["Asked", "Entry", "Target", "Targets", "ids_of", "lease_entries", "parse_targets"]

Target = Job | HandedJob | UUID | str
Targets = Target | Iterable[Target]

Entry = tuple[UUID, int | None, datetime | None, str]
"""An attempt to be settled, for `fence`: id, attempt, start, and what the statement is to know of it."""


@attrs.frozen
class Asked:
    """What one call is about. Job objects stand for their attempt, ids for whatever attempt is active."""

    name: str
    """The queue."""
    jobs: Sequence[Job]
    plain: Sequence[UUID]
    handed: Sequence[HandedJob]

    @property
    def ids(self) -> list[UUID]:
        """Each id once, in order, so that no two calls deadlock."""
        return sorted({*self.plain, *(job.id for job in self.jobs)})

    @property
    def _latest(self) -> dict[UUID, Job]:
        """The job objects, and of several attempts of one job the last: the others are stale in any case."""
        return {job.id: job for job in sorted(self.jobs, key=lambda job: job.attempt)}

    def entries(self, rest: str) -> list[Entry]:
        """Fence each job object by its lease, a plain id not at all. In order, as above."""
        entries: dict[UUID, Entry] = {id: (id, None, None, rest) for id in self.plain}
        for job in self._latest.values():
            # A job that was not active when it was read has no lease, and never matches.
            attempt = job.attempt if job.lease else -1
            entries[job.id] = (job.id, attempt, job.started_on or job.created_on, rest)
        return sorted(entries.values())

    def tell(self, states: Mapping[UUID, JobState], error: str = "", *, own: bool) -> None:
        """Let handlers that settled their own jobs know of it. In the caller's transaction it may come to nothing."""
        latest = self._latest
        for handed in self.handed:
            if handed.job.id in states and latest[handed.job.id].attempt == handed.job.attempt:
                handed.settled_manually(states[handed.job.id], error, certain=own)

    def judge(self, done: set[UUID], wanted: str) -> Settled:
        """Turn what was asked and what was done into the answer, or the error, that the caller gets."""
        latest = self._latest
        stale = [job.id for job in self.jobs if job.id not in done or job.attempt < latest[job.id].attempt]
        if stale:
            raise LeaseLost(self.name, stale)
        asked = self.ids
        if asked and not done:
            raise JobNotFound(self.name, asked, wanted)
        return Settled(len(asked), len(done), tuple(sorted(done)))


def parse_targets(name: str, targets: Targets) -> Asked:
    """What is meant, or a UsageError."""
    check_name("queue", name)
    if isinstance(targets, Job | HandedJob | UUID | str):
        targets = [targets]
    if not isinstance(targets, Iterable):
        raise UsageError(f"id: {shown(targets)} is not a job, nor an id, nor several of them")
    several = list(targets)
    handed = [target for target in several if isinstance(target, HandedJob)]
    plain = [target.job if isinstance(target, HandedJob) else target for target in several]
    jobs = [target for target in plain if isinstance(target, Job)]
    for job in jobs:
        if job.queue != name:
            raise UsageError(f"queue: job {job.id} is of queue {job.queue!r}, not {name!r}")
    ids = [check_uuid("id", target) for target in plain if not isinstance(target, Job)]
    return Asked(name, jobs, ids, handed)


def lease_entries(settled: Iterable[tuple[Lease, str]]) -> list[Entry]:
    """The same for leases, each with what the statement is to know of it."""
    return sorted((lease.id, lease.attempt, lease.started_on, rest) for lease, rest in settled)


def ids_of(entries: Sequence[Entry]) -> list[UUID]:
    """The ids of these."""
    return [entry[0] for entry in entries]
