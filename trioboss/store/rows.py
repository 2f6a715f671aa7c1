"""Rows become jobs, queues, schedules and statistics here; the rows of claims in claimed_jobs.py."""

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, timedelta
from typing import Any

import attrs

from trioboss.model.job import OPTIONS, Job
from trioboss.model.queue import Queue, QueueSettings, QueueStats
from trioboss.model.schedule import Schedule
from trioboss.model.states import JobState, Readiness
from trioboss.postgres.wire import PGresult, Results, read_rows

__all__ = [
    "read_first",
    "read_jobs",
    "read_queues",
    "read_schedules",
    "read_stats",
]


def read_first(results: Results) -> list[tuple[Any, ...]]:
    """The rows of the first statement of a batch."""
    return read_rows(results[0][0])


# -- jobs as the view all_jobs has them

_RENAMED = {"name": "queue", "source_name": "source_queue"}
_FIELDS = frozenset(field.name for field in attrs.fields(Job))
_CONVERTERS: Mapping[str, Callable[[Any], object]] = {
    "state": JobState,
    "readiness": Readiness,
    # The only time that the view has without a zone, as pg-boss has it.
    "singleton_on": lambda slot: None if slot is None else slot.replace(tzinfo=UTC),
}
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
