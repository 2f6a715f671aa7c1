"""Rows become jobs, queues, schedules and statistics here."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, overload
from uuid import UUID

import attrs

from trioboss.model.job import OPTIONS, Job
from trioboss.model.queue import Queue, QueueSettings, QueueStats
from trioboss.model.schedule import Schedule
from trioboss.model.states import JobState, Readiness
from trioboss.postgres.wire import PGresult, Results, read_row, read_rows

__all__ = [
    "ClaimAnswer",
    "read_claim",
    "read_first",
    "read_jobs",
    "read_next_due",
    "read_queues",
    "read_schedules",
    "read_stats",
    "with_options",
]

# Job is frozen: Job() sets each of its forty fields by a call. These two make one from a dict at once.
_NEW = object.__new__
_SET = object.__setattr__


def read_first(results: Results) -> list[tuple[Any, ...]]:
    """The rows of the first statement of a batch."""
    return read_rows(results[0][0])


# -- claims


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
    _result: PGresult
    _first: tuple[Any, ...]

    def jobs(self, queue: Queue, worker: UUID | None) -> Sequence[Job]:
        """The claimed jobs, with the options of that queue."""
        if self._first[6] is None:
            return []
        return _ClaimedJobs(self._result, self._first, queue, worker)


def read_claim(result: PGresult) -> ClaimAnswer:
    """The answer of claim.sql and the other statements that lease jobs."""
    first = read_row(result, 0)
    revision, _, again, more_after, left_seq, took = first[:6]
    return ClaimAnswer(revision, again, more_after, left_seq, took, result, first)


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
    _first: tuple[Any, ...]
    _queue: Queue
    _worker: UUID | None
    _jobs: list[Job] = attrs.field(factory=list, init=False)

    def __len__(self) -> int:
        return self._result.ntuples

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
            # Jobs of one claim differ in a dozen fields: copying a template takes a quarter of the time of Job().
            template = _claimed_template(self._queue, self._worker, self._first[1])
            rows = (self._first, *read_rows(self._result, after=0))
            self._jobs = [_claimed_job(template, row) for row in rows]
        return self._jobs


def _claimed_template(queue: Queue, worker: UUID | None, started_on: datetime) -> dict[str, Any]:
    template: dict[str, Any] = dict.fromkeys(field.name for field in attrs.fields(Job))
    template.update((name, getattr(queue, name)) for name in OPTIONS)
    template.update(queue=queue.name, policy=queue.policy.value, state=JobState.ACTIVE)
    template.update(readiness=Readiness.ACTIVE, started_on=started_on, worker=worker, lease_extensions=0)
    return template


def _claimed_job(template: dict[str, Any], row: tuple[Any, ...]) -> Job:
    fields = template.copy()
    (
        fields["id"],
        fields["attempt"],
        fields["retry_count"],
        fields["priority"],
        fields["seq"],
        fields["created_on"],
        fields["start_after"],
        fields["singleton_key"],
        options,
        fields["data"],
        notes,
    ) = row[6:]
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
            fields["singleton_on"] = datetime.fromisoformat(slot).astimezone(UTC).replace(tzinfo=None)
        if (source := notes.get("source")) is not None:
            fields["source_queue"] = source["queue"]
            fields["source_id"] = UUID(source["id"])
            fields["source_created_on"] = datetime.fromisoformat(source["created_on"]).astimezone(UTC)
            fields["source_retry_count"] = source["retry_count"]
    return fields


# -- jobs as the view all_jobs has them

_RENAMED = {"name": "queue", "source_name": "source_queue"}
_FIELDS = frozenset(field.name for field in attrs.fields(Job))
_CONVERTERS: Mapping[str, Callable[[Any], object]] = {"state": JobState, "readiness": Readiness}
_DEFAULTS = attrs.asdict(QueueSettings())


def read_jobs(result: PGresult) -> list[Job]:
    """Rows of the view all_jobs."""
    # By name, because the view also has columns that a Job does not have.
    names = [_column_name(result, column) for column in range(result.nfields)]
    return [_read_job(zip(names, row, strict=True)) for row in read_rows(result)]


def _column_name(result: PGresult, column: int) -> str:
    name = (result.fname(column) or b"").decode()
    return _RENAMED.get(name, name)


def _read_job(columns: Iterator[tuple[str, Any]]) -> Job:
    fields = {name: _value(name, value) for name, value in columns if name in _FIELDS}
    for name in OPTIONS:
        if fields[name] is None:  # also if the queue is gone
            fields[name] = _DEFAULTS[name]
    return Job(**fields)


def _value(name: str, value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    converter = _CONVERTERS.get(name)
    return value if converter is None else converter(value)


# -- the rest


def read_queues(results: Results) -> list[Queue]:
    """Rows of get_queues.sql."""
    return [Queue(*row) for row in read_first(results)]


def read_stats(results: Results) -> dict[str, QueueStats]:
    """Rows of get_queue_stats.sql, by queue."""
    return {name: QueueStats(*numbers) for name, *numbers in read_first(results)}


def read_schedules(results: Results) -> list[Schedule]:
    """Rows of get_schedules.sql."""
    return [Schedule(*row) for row in read_first(results)]
