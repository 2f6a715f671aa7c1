"""The job whose handler is running, as context variables: for its log lines, and for the jobs that it sends."""

import logging
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Protocol

from trioboss.model.job import Job

__all__ = ["JobLogFilter", "current_jobs", "current_surroundings", "current_worker"]


class _HasJob(Protocol):
    @property
    def job(self) -> Job: ...


current_jobs: ContextVar[Sequence[_HasJob]] = ContextVar("trioboss_jobs", default=())
"""The jobs of the handler's call that this task, thread or asyncio task belongs to; empty outside of handlers.

Each slot of a worker sets it once, to the list of its running jobs: a job costs nothing. A middleware that sets and
resets it would cost each job of each worker a further call, also where nothing is logged.
"""


current_worker: ContextVar[str] = ContextVar("trioboss_worker", default="")
"""The name of the boss whose handler this is; empty outside of handlers."""

current_surroundings: ContextVar[object] = ContextVar("trioboss_surroundings", default=None)
"""The values that the API gives to all jobs of the handler's worker, its boss among them; None outside of handlers."""


class JobLogFilter(logging.Filter):
    """Adds the job to records that are logged inside a handler: ``queue``, ``job_id``, ``attempt`` and ``worker`` (the
    ``worker_name`` of the boss), else ""; and ``batch_size``: in a handler with ``batch_size`` the job is the first one
    of so many. A field that the record has already, by ``extra=``, is left as it is.

    Attach it to a handler of ``logging``: ``handler.addFilter(trioboss.JobLogFilter())``. ``trioboss worker`` does so.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the fields; every record passes."""
        jobs = current_jobs.get()
        job = jobs[0].job if jobs else None
        fields = (
            ("queue", "" if job is None else job.queue),
            ("job_id", "" if job is None else str(job.id)),
            ("attempt", "" if job is None else job.attempt),
            ("worker", "" if job is None else current_worker.get()),
            ("batch_size", len(jobs)),
        )
        for name, value in fields:
            if not hasattr(record, name):
                setattr(record, name, value)
        return True
