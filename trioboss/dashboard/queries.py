"""The reads of the pages: operations of the store's kind, each of one statement or a few."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import attrs

from trioboss.dashboard.filters import LAST_ID, Counted, JobFilter
from trioboss.dashboard.payloads import MOST_BYTES
from trioboss.dashboard.values import (
    COUNT_LIMIT,
    Attempt,
    AuditRow,
    BacklogJob,
    BulkLoad,
    DeadLetters,
    ErrorClass,
    EventRow,
    JobPage,
    JobRow,
    KeyPage,
    KeyRow,
    Lake,
    PipelineAudit,
    QueueRow,
    Rates,
    SlowJobs,
    WorkerPage,
    WorkerRow,
)
from trioboss.model.job import Job
from trioboss.postgres.errors import is_query_canceled
from trioboss.postgres.operation import Batch, Operation
from trioboss.store import Store
from trioboss.store.context import text_array, uuid_array
from trioboss.store.rows import read_first, read_jobs

__all__ = [
    "BUDGET",
    "PAGE",
    "add_excerpts",
    "count_backlog",
    "count_dead_letters",
    "count_on",
    "count_workers",
    "find_dead_letter",
    "find_queue_of_job",
    "get_clock",
    "get_counted",
    "get_job",
    "get_payload",
    "list_attempts",
    "list_audit",
    "list_backlog",
    "list_errors",
    "list_events",
    "list_jobs",
    "list_keys",
    "list_pipeline",
    "list_queues",
    "list_rates",
    "list_slowest",
    "list_workers",
    "read_rows",
]

PAGE = 50
"""Jobs on a page."""
BUDGET = 20_000
"""Jobs that a search reads at a time."""
_NOTES = 4_000_000  # bytes of notes that it reads, as they are stored: compressed, mostly
_ERRORS = 100_000_000  # bytes of notes of dead letters that a count reads
_ATTEMPTS = 100  # of a job, on its page
_DATA = 2_000  # bytes of data that a list shows the beginning of
_COUNTS = ("deferred", "waiting", "ready", "active")
_KEY_COUNT = 1_001  # at which counting the jobs of a key stops, in a list of keys
_COUNTED_ON = 10  # queues: each may have 10,001 jobs of each kind
_BEFORE_ALL_KEYS = "key"  # a backlog is "key:" and the key


def read_rows(store: Store, statement: str, **values: object) -> Operation[list[tuple[Any, ...]]]:
    """Execute one statement."""
    return read_first((yield Batch((store.context.bind(statement, **values),))))


def get_clock(store: Store) -> Operation[datetime]:
    """The time of the database."""
    ((now,),) = yield from read_rows(store, "read_clock")
    return now  # type: ignore[no-any-return]


def get_counted(store: Store) -> Operation[Counted]:
    """This moment, for what is counted next."""
    ((now, committed),) = yield from read_rows(store, "show_committed")
    return Counted(now, committed)


def list_queues(
    store: Store,
    *,
    queue: str | None = None,
    text: str | None = None,
    after: str | None = None,
    limit: int = 100,
    most: int = COUNT_LIMIT,
    names: Sequence[str] | None = None,
) -> Operation[list[QueueRow]]:
    """Queues by name, with their live jobs counted: all, one, some by name, or those with a text in their names."""
    given = {"queue": queue, "names": None if names is None else text_array(names), "text": text}
    found = yield from read_rows(store, "show_queues", **given, after=after, limit=limit, most=most)
    return [_with_stopped(QueueRow(*row), most) for row in found]


def _with_stopped(row: QueueRow, most: int) -> QueueRow:
    """The row, with a count that has stopped as the number of which there are more."""
    stopped = frozenset(name for name in _COUNTS if getattr(row, name) >= most)
    counts: dict[str, Any] = dict.fromkeys(stopped, most - 1)
    return attrs.evolve(row, stopped=stopped, **counts)


def count_on(store: Store, rows: Sequence[QueueRow]) -> Operation[list[QueueRow]]:
    """The rows, with the first ten queues in which counting has stopped counted up to 10,000."""
    names = [row.name for row in rows if row.stopped][:_COUNTED_ON]
    if not names:
        return list(rows)
    counted = {row.name: row for row in (yield from list_queues(store, names=names))}
    return [counted.get(row.name, row) for row in rows]


def find_queue_of_job(store: Store, id: UUID) -> Operation[str | None]:
    """The queue that has a job of this id."""
    rows = yield from read_rows(store, "show_queue_of_job", id=id)
    return rows[0][0] if rows else None


def get_job(store: Store, queue: str, id: UUID) -> Operation[Job | None]:
    """One job, without its data, output and progress: see `get_payload`."""
    jobs = read_jobs((yield Batch((store.context.bind("show_job", queue=queue, id=id),)))[0][0])
    return jobs[0] if jobs else None


def get_payload(store: Store, job: Job) -> Operation[list[tuple[str | None, int | None]]]:
    """The data, output and progress of a job: the beginning of the JSON text, and the size of the whole."""
    rows = yield from read_rows(store, "show_payload", queue=job.queue, id=job.id, most=MOST_BYTES)
    fields = rows[0] if rows else (None,) * 6
    return list(zip(fields[::2], fields[1::2], strict=True))


def list_rates(
    store: Store, queues: Sequence[str], now: datetime, minutes: int = 60
) -> Operation[Mapping[str, Rates]]:
    """The events of each queue in each of the last minutes."""
    first = (now - timedelta(minutes=minutes - 1)).replace(second=0, microsecond=0)
    rows = yield from read_rows(store, "show_rates", queues=text_array(queues), since=first)
    found = {}
    for queue, times, *columns in rows:
        minutes_of = [int((time - first).total_seconds() // 60) for time in times]
        found[queue] = Rates(*(_spread(minutes_of, column, minutes) for column in columns))
    return found


def _spread(minutes_of: Sequence[int], counts: Sequence[int], length: int) -> list[int]:
    spread = [0] * length
    for index, count in zip(minutes_of, counts, strict=True):
        if 0 <= index < length:
            spread[index] += count
    return spread


def list_errors(store: Store, queue: str) -> Operation[list[ErrorClass]]:
    """The classes of errors of the newest failed jobs."""
    return [ErrorClass(*row) for row in (yield from read_rows(store, "show_errors", queue=queue))]


def list_slowest(store: Store, queue: str) -> Operation[list[SlowJobs]]:
    """The newest completed jobs that ran longest, those of one key together."""
    return [SlowJobs(*row) for row in (yield from read_rows(store, "show_slowest", queue=queue, limit=6))]


def list_keys(
    store: Store, queue: str, after: str | None = None, after_blocked: str | None = None, limit: int = 50
) -> Operation[KeyPage]:
    """One page of the keys with jobs, blocked ones first."""
    values = {
        "queue": queue,
        "after": after,
        "after_blocked": after_blocked,
        "limit": limit + 1,
        "most": _KEY_COUNT,
    }
    rows = yield from read_rows(store, "show_keys", **values)
    blocked = [KeyRow(*row) for part, *row in rows if part == 0]
    if len(blocked) > limit:
        return KeyPage(blocked[:limit], after_blocked=blocked[limit - 1].backlog)
    others = [KeyRow(*row) for part, *row in rows if part == 1]
    taken = others[: limit - len(blocked)]
    keys = [*blocked, *(key for key in taken if not key.blocked)]
    if len(taken) < len(others):
        return KeyPage(keys, after=taken[-1].backlog if taken else _BEFORE_ALL_KEYS)
    # The search may have stopped at a blocked key, of which many can be between two others.
    return KeyPage(keys, after=taken[-1].backlog if taken and taken[-1].blocked else None)


def list_backlog(store: Store, queue: str, key: str, limit: int = 100) -> Operation[list[BacklogJob]]:
    """The jobs of a key, in their order."""
    rows = yield from read_rows(store, "show_backlog", queue=queue, key=key, limit=limit)
    return [BacklogJob(part == 0, *fields[:10]) for part, *fields in rows]


def count_backlog(store: Store, queue: str, key: str) -> Operation[int]:
    """How many jobs wait behind the owner of a key, up to 10,001."""
    ((number,),) = yield from read_rows(store, "show_backlog_size", queue=queue, key=key, most=COUNT_LIMIT)
    return number  # type: ignore[no-any-return]


def has_dead_letters(store: Store, queue: str) -> Operation[bool]:
    """Whether the first queued job came from a queue in which it failed. All jobs of a dead letter queue do."""
    first = yield from store.redriving.preview(queue, None, None, 1)
    return any(group.source is not None for group in first)


def count_dead_letters(store: Store, queue: str) -> Operation[DeadLetters]:
    """The dead letters that could be redriven now, in groups: the oldest 10,001, fewer if their errors are large."""
    counted = yield from get_counted(store)
    groups = yield from store.redriving.preview(
        queue, None, None, COUNT_LIMIT, most_bytes=_ERRORS, committed=counted.committed
    )
    number = sum(group.count for group in groups)
    is_over = number >= COUNT_LIMIT or sum(group.size for group in groups) >= _ERRORS
    return DeadLetters(groups, counted, number if is_over else None)


def list_jobs(store: Store, queue: str, filter: JobFilter, limit: int = PAGE) -> Operation[JobPage]:
    """One page of the jobs that pass the filter, the newest first, without what `add_excerpts` adds."""
    values = {**filter.values(), "queue": queue, "limit": limit, "budget": BUDGET}
    statements = [
        store.context.bind(f"show_{table}_jobs", **values, **({"bytes": _NOTES} if table == "live" else {}))
        for table in filter.tables
    ]
    if not statements:
        return JobPage([])
    results = yield Batch(tuple(statements))
    jobs: list[JobRow] = []
    ends: list[tuple[UUID, int]] = []  # of each table not read to its end: the oldest id, and how many
    for result in results[0]:
        for *fields, last, searched in read_first([[result]]):
            if fields[0] is None:
                ends.append((last, searched))
            else:
                jobs.append(JobRow(*fields))
    # Older ids of a table that was not read to its end are unknown: jobs of the other table beyond it come later.
    reached, searched = max(ends, default=(None, None))
    jobs = sorted(
        (job for job in jobs if reached is None or job.id >= reached), key=lambda job: job.id, reverse=True
    )
    if len(jobs) >= limit:
        return JobPage(jobs[:limit], jobs[limit - 1].id)
    return JobPage(jobs, reached, searched)


def add_excerpts(store: Store, queue: str, page: JobPage) -> Operation[JobPage]:
    """The page, with the errors of its jobs, and with their data where it is small."""
    if not page.jobs:
        return page
    ended = [job.ended_on for job in page.jobs if job.ended_on is not None]
    # Days without any of them are not read.
    within = {"first": min(ended, default=None), "last": max(ended, default=None)}
    ids = uuid_array([job.id for job in page.jobs])
    try:
        rows = yield from read_rows(store, "show_excerpts", queue=queue, ids=ids, bytes=_DATA, **within)
    except Exception as failure:
        # Documents that are small in a row can take long to write as text: the list goes without excerpts.
        if not is_query_canceled(failure):
            raise
        return page
    found = {id: fields for id, *fields in rows}
    jobs = []
    for job in page.jobs:
        error, message, failed_on, data = found.get(job.id, (None, None, None, None))
        ended_on = job.ended_on or failed_on
        jobs.append(attrs.evolve(job, error=error, message=message, ended_on=ended_on, data=data))
    return attrs.evolve(page, jobs=jobs)


def list_attempts(store: Store, job: Job) -> Operation[list[Attempt]]:
    """The last hundred attempts, in order: those that did not end well, and the last one. The row of a job has one due
    time, that of its last attempt, or of the next one if the job is queued again: of other attempts only the time since
    the one before is known.
    """
    rows = yield from read_rows(store, "show_attempts", queue=job.queue, id=job.id, limit=_ATTEMPTS)
    attempts = [Attempt(*row) for row in rows]
    known = {(attempt.number, attempt.started_on) for attempt in attempts}
    if (
        job.started_on is not None
        and (job.attempt, job.started_on) not in known
        and job.state in ("active", "completed")
    ):
        attempts.append(Attempt(job.attempt, job.worker, job.started_on, job.completed_on, str(job.state)))
    if attempts:
        attempts[-1] = attrs.evolve(attempts[-1], waited=_wait_of_last(job, attempts[-1]))
    before = [Attempt(0, None, None, job.created_on, "sent"), *attempts]
    attempts = [
        attrs.evolve(each, after=_pause(last, each)) for last, each in zip(before, attempts, strict=False)
    ]
    return attempts[-_ATTEMPTS:]


def _pause(last: Attempt, attempt: Attempt) -> float | None:
    """Seconds between two attempts; None if one of them is unknown, or if there were others between them."""
    if last.ended_on is None or attempt.started_on is None or attempt.number != last.number + 1:
        return None
    return max(0.0, (attempt.started_on - last.ended_on).total_seconds())


def _wait_of_last(job: Job, attempt: Attempt) -> float | None:
    """Seconds from when the last attempt was due to its start; None if the job has another due time by now."""
    due = max(job.start_after, job.created_on)
    is_queued = job.state in ("created", "retry")
    # A job that was cancelled while it was queued again has the due time of an attempt that never started.
    if is_queued or attempt.started_on is None or attempt.started_on < due:
        return None
    return (attempt.started_on - due).total_seconds()


def find_dead_letter(store: Store, job: Job) -> Operation[tuple[str, UUID] | None]:
    """The dead letter job of a failed one."""
    if job.dead_letter is None or job.state != "failed" or job.completed_on is None:
        return None
    rows = yield from read_rows(
        store, "show_dead_letter", queue=job.dead_letter, id=job.id, ended_on=job.completed_on
    )
    return (rows[0][0], rows[0][1]) if rows else None


def count_workers(store: Store, queue: str | None = None) -> Operation[tuple[int, int]]:
    """How many workers are not known to be gone, and how many of these are connected, up to 10,001: of all workers, or
    of those that take jobs of a queue.
    """
    ((number, connected),) = yield from read_rows(store, "show_worker_count", most=COUNT_LIMIT, serving=queue)
    return number, connected


def list_workers(
    store: Store,
    after: tuple[str, str, UUID] | None = None,
    *,
    queue: str | None = None,
    worker: UUID | None = None,
    limit: int = 100,
) -> Operation[WorkerPage]:
    """One page of the workers with their jobs: those after a name, queue and id; of a queue, or one."""
    name, pattern, id = after or (None, None, None)
    values = {"after_name": name, "after_queue": pattern, "after_id": id, "serving": queue, "worker": worker}
    found = yield from read_rows(store, "show_workers", **values, limit=limit + 1, most=COUNT_LIMIT)
    rows = [WorkerRow(*fields, _read_leases(jobs)) for *fields, jobs in found]  # type: ignore[call-arg]
    return WorkerPage(rows[:limit], rows[limit - 1] if len(rows) > limit else None)


def _read_leases(jobs: list[list[Any]] | None) -> list[tuple[str, UUID, datetime, int]]:
    return [
        (queue, UUID(id), datetime.fromisoformat(started_on), attempt)
        for queue, id, started_on, attempt in jobs or ()
    ]


def list_audit(store: Store, before: UUID = LAST_ID) -> Operation[list[AuditRow]]:
    """The actions of people, the newest first."""
    return [AuditRow(*row) for row in (yield from read_rows(store, "show_audit", high=before, limit=100))]


def list_events(store: Store, kind: str | None = None) -> Operation[list[EventRow]]:
    """Recent events of all kinds, or of one, the newest first."""
    return [EventRow(*row) for row in (yield from read_rows(store, "show_events", kind=kind, limit=100))]


def list_pipeline(store: Store) -> Operation[tuple[list[Lake], list[PipelineAudit], list[BulkLoad]]]:
    """Exports, audits and bulk loads."""
    rows = yield from read_rows(store, "show_pipeline", limit=50)
    lakes = [Lake(*row[1:8]) for row in rows if row[0] == "lake"]
    loads = [BulkLoad(row[1], row[2], *row[8:]) for row in rows if row[0] == "load"]
    audits = [PipelineAudit(*row) for row in (yield from read_rows(store, "show_history_audits", limit=50))]
    return lakes, audits, loads
