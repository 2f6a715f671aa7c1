"""Rows become model values here, and nowhere else."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import attrs

from trioboss.model.job import Job
from trioboss.model.queue import Queue, QueueStats
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import Claim
from trioboss.postgres.wire import Results
from trioboss.postgres.wire.results import PGresult, read_row, read_rows

__all__ = ["read_claim", "read_due", "read_first", "read_jobs", "read_queues", "read_schedules", "read_stats"]


def read_first(results: Results) -> list[tuple[Any, ...]]:
    """The rows of the first statement of a flush."""
    return read_rows(results[0][0])


def read_claim(result: PGresult) -> Claim:
    """The answer of claim.sql."""
    first = read_row(result, 0)
    again, policy, first_id = first[:3]
    return Claim([] if first_id is None else _ClaimedJobs(result, first), 0.0 if again else None, policy)


def read_due(result: PGresult) -> float | None:
    """The answer of find_due.sql."""
    return read_row(result, 0)[0] if result.ntuples else None


@attrs.define(eq=False)
class _ClaimedJobs(Sequence[Job]):
    """The jobs of a claim, read when somebody looks at them; how many there are is known before."""

    _result: PGresult
    _first: tuple[Any, ...]
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
            self._jobs = [Job(*row[2:]) for row in (self._first, *read_rows(self._result, after=0))]
        return self._jobs


def read_jobs(results: Results) -> list[Job]:
    """Rows in the column order of get_job.sql."""
    return [Job(*row) for row in read_first(results)]


def read_queues(results: Results) -> list[Queue]:
    """Rows of get_queues.sql."""
    return [Queue(*row) for row in read_first(results)]


def read_stats(results: Results) -> QueueStats | None:
    """The row of get_queue_stats.sql, if the queue exists."""
    rows = read_first(results)
    return QueueStats(*rows[0]) if rows else None


def read_schedules(results: Results) -> list[Schedule]:
    """Rows of get_schedules.sql."""
    return [Schedule(*row) for row in read_first(results)]
