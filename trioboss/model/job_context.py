"""The job whose handler is running, as a context variable: for log lines that a handler writes."""

import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

from trioboss.model.job import Job

__all__ = ["JobLogFilter", "current_jobs"]


class _HasJob(Protocol):
    @property
    def job(self) -> Job: ...


current_jobs: ContextVar[Sequence[_HasJob]] = ContextVar("trioboss_jobs", default=())
"""The jobs of the handler's call that this task, thread or asyncio task belongs to; empty outside of handlers.

Each slot of a worker sets it once, to the list of its running jobs: a job costs nothing. A middleware that sets and
resets it would cost each job of each worker a further call, also where nothing is logged.
"""


class JobLogFilter(logging.Filter):
    """Adds the job to records that are logged inside a handler: ``queue``, ``job_id`` and ``attempt``, else "".

    Attach it to a handler of ``logging``: ``handler.addFilter(trioboss.JobLogFilter())``. ``trioboss worker`` does so.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; every record passes."""
        jobs = current_jobs.get()
        job = jobs[0].job if jobs else None
        record.queue = "" if job is None else job.queue
        record.job_id = "" if job is None else str(job.id)
        record.attempt = "" if job is None else job.attempt
        return True
