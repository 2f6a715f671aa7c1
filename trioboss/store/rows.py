"""Rows become model values here, and nowhere else."""

from typing import Any

from trioboss.model.exchange import Claim
from trioboss.model.job import Job
from trioboss.model.queue import Queue, QueueStats
from trioboss.model.schedule import Schedule
from trioboss.postgres.flush import Results
from trioboss.postgres.results import read_rows

__all__ = ["read_claim", "read_first", "read_jobs", "read_queues", "read_schedules", "read_stats"]


def read_first(results: Results) -> list[tuple[Any, ...]]:
    """The rows of the first statement of a flush."""
    return read_rows(results[0][0])


def read_claim(results: Results) -> Claim:
    """The answer of claim.sql, which is the last statement of its transaction."""
    rows = read_rows(results[-1][-1])
    next_due, policy, first_id = rows[0][:3]
    jobs = [] if first_id is None else [Job(*row[2:]) for row in rows]
    return Claim(jobs, next_due, policy)


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
