"""The jobs that a call is to settle: jobs, jobs that were passed to handlers, or ids; one or many."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import attrs

from trioboss.errors import JobNotFound, LeaseLost, UsageError
from trioboss.model.answers import Settled
from trioboss.model.check import check_name, check_uuid, shown
from trioboss.model.handed_job import HandedJob
from trioboss.model.job import Job, Lease
from trioboss.model.states import JobState

__all__ = ["Target", "TargetSet", "Targets", "parse_targets"]

_NEVER = datetime.fromtimestamp(0, UTC)

Target = Job | HandedJob | UUID | str
Targets = Target | Iterable[Target]
"""The jobs of a call: one or many, each as the `Job`, as the job of a handler, or as its id, a UUID or its text."""


@attrs.frozen
class TargetSet:
    """The targets of one call. A job object stands for its attempt, an id for whatever attempt is active."""

    queue: str
    jobs: Sequence[Job]
    plain: Sequence[UUID]
    handed: Sequence[HandedJob]

    @property
    def ids(self) -> list[UUID]:
        """Each id once, in order, so that no two calls deadlock."""
        return sorted({*self.plain, *(job.id for job in self.jobs)})

    @property
    def _latest(self) -> dict[UUID, Job]:
        """The job objects by id. If several attempts of one job are given, the last one: earlier ones are stale."""
        return {job.id: job for job in sorted(self.jobs, key=lambda job: job.attempt)}

    @property
    def all_leases(self) -> list[Lease]:
        """The leases, and for each plain id one that never matches: it is settled whatever its attempt is."""
        return [*self.leases, *(Lease(id, -1, _NEVER) for id in self.unfenced)]

    @property
    def leases(self) -> list[Lease]:
        """The leases of the job objects, in order, as above."""
        # A job that was not active when it was read has no lease, and never matches.
        leases = [
            job.lease or Lease(job.id, -1, job.started_on or job.created_on) for job in self._latest.values()
        ]
        return sorted(leases, key=lambda lease: lease.id)

    @property
    def unfenced(self) -> list[UUID]:
        """The plain ids, in order, without those that are also given as a job."""
        return sorted(set(self.plain) - {job.id for job in self.jobs})

    @property
    def unleased(self) -> list[UUID]:
        """The plain ids, and the jobs that were not active when they were read."""
        return sorted({*self.plain, *(job.id for job in self.jobs if job.lease is None)})

    @property
    def handlers_to_cancel(self) -> list[UUID]:
        """The jobs that another caller than their handler settles: their workers are notified and cancel them."""
        return sorted(set(self.ids) - {handed.job.id for handed in self.handed})

    def report(self, states: Mapping[UUID, JobState], error: str = "", *, own: bool) -> None:
        """Report to handlers that they settled their own jobs. The caller's transaction may still be rolled back."""
        # Of two attempts of one job only the last was settled: the handler of the other has lost its lease.
        latest = self._latest
        for handed in self.handed:
            id = handed.job.id
            if id in states and (id not in latest or latest[id].attempt == handed.job.attempt):
                handed.settled_manually(states[handed.job.id], error, committed=own)

    def answer(self, done: set[UUID], wanted: str) -> Settled:
        """The answer, or the error, that the caller gets if these were settled."""
        # Jobs that were given as objects have to be settled, all of them; of plain ids at least one has to exist.
        latest = self._latest
        stale = [job.id for job in self.jobs if job.id not in done or job.attempt < latest[job.id].attempt]
        if stale:
            raise LeaseLost(self.queue, stale)
        ids = self.ids
        if ids and not done:
            raise JobNotFound(self.queue, ids, wanted)
        return Settled(len(ids), len(done), tuple(sorted(done)))


def parse_targets(queue: str, targets: Targets, handled: Sequence[HandedJob] = ()) -> TargetSet:
    """The targets of a call, or a UsageError. ``handled``: jobs whose handler may name them by their ids."""
    check_name("queue", queue)
    if isinstance(targets, Job | HandedJob | UUID | str):
        targets = [targets]
    if not isinstance(targets, Iterable):
        raise UsageError(f"id: {shown(targets)} is not a job, nor an id, nor several of them")
    several = list(targets)
    handed = [target for target in several if isinstance(target, HandedJob)]
    plain = [target.job if isinstance(target, HandedJob) else target for target in several]
    jobs = [target for target in plain if isinstance(target, Job)]
    for job in jobs:
        if job.queue != queue:
            raise UsageError(f"queue: job {job.id} is of queue {job.queue!r}, not {queue!r}")
    ids = [check_uuid("id", target) for target in plain if not isinstance(target, Job)]
    handed += [job for job in handled if job.id in ids]
    return TargetSet(queue, jobs, ids, handed)
