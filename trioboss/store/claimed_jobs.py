"""The answer of a claim, and the jobs in it. A job is made of its row at its first use."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, overload
from uuid import UUID

import attrs

from trioboss.model.job import OPTIONS, SHARED, Job
from trioboss.model.queue import Queue
from trioboss.model.states import JobState, Readiness
from trioboss.postgres.wire import PGresult, read_row, read_rows

__all__ = ["ClaimAnswer", "read_claim", "read_next_due", "with_options"]

# Job is frozen: Job() sets each of its forty fields by a call. These two make one from a dict at once, which has the
# values of this job alone: small dicts are made fast, and thousands of them cost the garbage collector little.
_NEW = object.__new__
_SET = object.__setattr__


@attrs.frozen
class ClaimAnswer:
    """The answer of a claim, before its jobs are read."""

    revision: int | None
    """Of the queue; None if there is no such queue."""
    again: bool
    """A job was left, and may be claimed at once: another session was just changing it, or the data of the others was
    enough for one answer.
    """
    more_after: str | None
    """The position after which the same claim may find more; None if there is no more."""
    left_seq: int | None
    """The number of the last check that it has read of those whose owner left."""
    took: float
    """Seconds that the statement ran."""
    _started_on: datetime
    _result: PGresult

    def jobs(self, queue: Queue, worker: UUID | None) -> Sequence[Job]:
        """The claimed jobs, with the options of that queue."""
        if self._result.ntuples == 1:
            return []
        return _ClaimedJobs(self._result, self._started_on, queue, worker)


def read_claim(result: PGresult) -> ClaimAnswer:
    """The answer of claim.sql and the other statements that lease jobs."""
    revision, started_on, again, more_after, left_seq, took = read_row(result, 0)[:6]
    return ClaimAnswer(revision, again, more_after, left_seq, took, started_on, result)


def with_options(jobs: Sequence[Job], queue: Queue) -> Sequence[Job]:
    """The jobs of one claim, with the options of that queue instead of the one that the claim was made for."""
    return attrs.evolve(jobs, queue=queue) if isinstance(jobs, _ClaimedJobs) else jobs


def read_next_due(result: PGresult) -> float | None:
    """The answer of find_next_due.sql."""
    return read_row(result, 0)[0] if result.ntuples else None


@attrs.define(eq=False)
class _ClaimedJobs(Sequence[Job]):
    """The jobs of a claim, read at their first use; their number is there at once."""

    _result: PGresult
    _started_on: datetime
    _queue: Queue
    _worker: UUID | None
    _jobs: list[Job] = attrs.field(factory=list, init=False)

    def __len__(self) -> int:
        return self._result.ntuples - 1  # the first row is about the claim

    @overload
    def __getitem__(self, index: int) -> Job: ...
    @overload
    def __getitem__(self, index: slice) -> list[Job]: ...
    def __getitem__(self, index: int | slice) -> Job | list[Job]:
        return self._read()[index]

    def __iter__(self) -> Iterator[Job]:
        return iter(self._read())

    def _read(self) -> list[Job]:
        if not self._jobs:
            shared = _shared_values(self._queue, self._worker, self._started_on)
            self._jobs = [_claimed_job(shared, row) for row in read_rows(self._result, after=0)]
        return self._jobs


def _shared_values(queue: Queue, worker: UUID | None, started_on: datetime) -> dict[str, Any]:
    """The values of all jobs of one claim, unless a job has its own."""
    shared: dict[str, Any] = dict.fromkeys(field.name for field in attrs.fields(Job))
    shared.update((name, getattr(queue, name)) for name in OPTIONS)
    shared.update(queue=queue.name, policy=queue.policy.value, state=JobState.ACTIVE)
    shared.update(readiness=Readiness.ACTIVE, started_on=started_on, worker=worker, lease_extensions=0)
    return shared


def _claimed_job(shared: dict[str, Any], row: tuple[Any, ...]) -> Job:
    id, attempt, retries, priority, seq, created, start, key, options, data, notes = row[6:]
    fields = {
        SHARED: shared,
        "id": id,
        "queue": shared["queue"],
        "data": data,
        "priority": priority,
        "attempt": attempt,
        "retry_count": retries,
        "singleton_key": key,
        "created_on": created,
        "start_after": start,
        "started_on": shared["started_on"],
        "seq": seq,
    }
    if isinstance(options, dict):  # null for nearly all jobs
        fields.update(options)
    if notes is not None:
        fields.update(_read_notes(notes))
    job = _NEW(Job)
    _SET(job, "__dict__", fields)
    return job


def _read_notes(notes: Any) -> dict[str, Any]:
    # JSON keeps no times and no ids: they are text there, with an offset that depends on the session. The domain
    # job_notes keeps out what cannot be read here; a job that has it nevertheless is claimed without it.
    if not isinstance(notes, dict):
        return {}
    fields = {"output": notes.get("error"), "progress": notes.get("progress")}
    with suppress(ValueError, TypeError, KeyError, OverflowError):
        if (slot := notes.get("singleton_on")) is not None:
            fields["singleton_on"] = datetime.fromisoformat(slot).astimezone(UTC)
        if (source := notes.get("source")) is not None:
            fields["source_queue"] = source["queue"]
            fields["source_id"] = UUID(source["id"])
            fields["source_created_on"] = datetime.fromisoformat(source["created_on"]).astimezone(UTC)
            fields["source_retry_count"] = source["retry_count"]
    return fields
