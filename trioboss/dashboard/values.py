"""The contents of the pages, as values. queries.py reads them."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import attrs

from trioboss.dashboard.filters import Counted
from trioboss.model.schedule import Schedule
from trioboss.store.redriving import DeadLetterGroup

__all__ = [
    "COUNT_LIMIT",
    "OVERVIEW_LIMIT",
    "Attempt",
    "AuditRow",
    "BacklogJob",
    "Beginning",
    "BulkLoad",
    "DeadLetters",
    "ErrorClass",
    "EventRow",
    "JobPage",
    "JobRow",
    "KeyPage",
    "KeyRow",
    "Lake",
    "Payload",
    "PipelineAudit",
    "QueueRow",
    "Rates",
    "SchedulePage",
    "ScheduleRow",
    "SlowJobs",
    "Tick",
    "Withheld",
    "WorkerPage",
    "WorkerRow",
]

COUNT_LIMIT = 10_001
"""Counting stops here: a page then shows "more than 10,000"."""

OVERVIEW_LIMIT = 1_001
"""The same for most queues of the overview, which counts the jobs of a hundred queues: see `queries.count_on`."""


@attrs.frozen
class QueueRow:
    """A queue, and how many live jobs it has of each kind."""

    name: str
    policy: str
    paused: bool
    dead_letter: str | None
    keep_completed: bool
    deferred: int
    waiting: int
    ready: int
    active: int
    blocked: int
    oldest_age: float
    is_dead_letter: bool
    """Whether another queue names it as its dead letter queue. Read only for one queue."""
    stopped: frozenset[str] = frozenset()
    """The counts at which counting has stopped: they are lower than the number of jobs."""


@attrs.frozen
class Rates:
    """The events of a queue in each minute of a time."""

    arrived: Sequence[int] = ()
    completed: Sequence[int] = ()
    failed: Sequence[int] = ()


@attrs.frozen
class DeadLetters:
    """The dead letters of a queue that could be redriven."""

    groups: Sequence[DeadLetterGroup]
    counted: Counted
    searched: int | None
    """How many were read, if there may be more."""


@attrs.frozen
class ErrorClass:
    """The failed jobs of a queue that have one class of error, among the newest thousand."""

    name: str
    count: int
    last_on: datetime
    example: UUID
    message: str | None


@attrs.frozen
class SlowJobs:
    """How long the jobs of a key ran, or one job without a key."""

    key: str | None
    count: int
    median: float
    longest: float
    id: UUID
    """The job that ran longest."""
    completed_on: datetime


@attrs.frozen
class KeyRow:
    """A key with jobs: its owner, and how many jobs wait behind."""

    backlog: str
    key: str
    blocked: bool
    owner: UUID | None
    owner_readiness: str | None
    since: datetime | None
    waiting: int


@attrs.frozen
class KeyPage:
    """One page of keys, the blocked ones first. The next page begins after one of two keys; the last has neither."""

    keys: Sequence[KeyRow]
    after: str | None = None
    """The last key that is not blocked."""
    after_blocked: str | None = None
    """The last blocked key, if more of them follow."""


@attrs.frozen
class BacklogJob:
    """A job of one key."""

    is_owner: bool
    id: UUID
    readiness: str
    attempt: int
    retry_count: int
    priority: int
    created_on: datetime
    start_after: datetime
    started_on: datetime | None
    error: str | None
    message: str | None


@attrs.frozen
class JobRow:
    """A job in a list."""

    id: UUID
    state: str
    readiness: str
    priority: int
    attempt: int
    key: str | None
    created_on: datetime
    start_after: datetime
    started_on: datetime | None
    ended_on: datetime | None
    error: str | None = None
    message: str | None = None
    data: Any = None
    """As JSON text, if it is small."""


@attrs.frozen
class JobPage:
    """One page of a list of jobs."""

    jobs: Sequence[JobRow]
    next: UUID | None = None
    """Where the next page begins, if there may be one."""
    searched: int | None = None
    """How many jobs the search has read, if it ended before it had filled the page: it reads so many at a time."""


@attrs.frozen
class Attempt:
    """One attempt of a job."""

    number: int
    worker: UUID | None
    started_on: datetime | None
    ended_on: datetime | None
    outcome: str
    error: Any = None
    waited: float | None = None
    """Seconds from when it was due to when it started, if that is known."""
    after: float | None = None
    """Seconds from the end of the attempt before it, or from the send, to when it started."""


@attrs.frozen
class Beginning:
    """The beginning of JSON that is too large to be parsed."""

    text: str


@attrs.frozen
class Withheld:
    """Stands for a value that is not shown."""

    reason: str


@attrs.frozen
class Payload:
    """The data, output or progress of a job, as far as it may be shown."""

    value: Any
    size: int
    """Of the JSON text that Postgres has."""
    text: str = ""
    """JSON over several lines."""


@attrs.frozen
class Tick:
    """A tick of a schedule: fired, or missed."""

    due: datetime
    fired_on: datetime | None
    job_id: UUID | None

    @property
    def delay(self) -> float:
        """Seconds from when it was due to when it was fired."""
        return 0.0 if self.fired_on is None else max(0.0, (self.fired_on - self.due).total_seconds())

    @property
    def outcome(self) -> str:
        """missed, late or fired. A tick that is late by less than a minute is in time: see `Missed`."""
        if self.fired_on is None:
            return "missed"
        return "late" if self.delay >= 60 else "fired"


@attrs.frozen
class ScheduleRow:
    """A schedule with its ticks."""

    schedule: Schedule
    paused: bool
    ticks: Sequence[Tick]
    """The newest first."""
    next: Sequence[datetime]
    older: datetime | None = None
    """Ticks before this time are on the next page; None if there are none."""

    @property
    def missed(self) -> int:
        """How many of the ticks were missed."""
        return sum(tick.fired_on is None for tick in self.ticks)

    @property
    def outcomes(self) -> str:
        """The ticks in words: 18 fired, 1 late, 1 missed."""
        counts = Counter(tick.outcome for tick in self.ticks)
        return ", ".join(f"{counts[each]} {each}" for each in ("fired", "late", "missed") if counts[each])


@attrs.frozen
class SchedulePage:
    """One page of the schedules."""

    rows: Sequence[ScheduleRow]
    next: Schedule | None
    """The schedule after which the next page begins, if there is one."""


@attrs.frozen
class WorkerRow:
    """A worker, and the jobs it has."""

    id: UUID
    boss: UUID
    name: str
    queue: str
    started_on: datetime
    seen_on: datetime
    """The last sign of it: see show_workers.sql."""
    gone_since: datetime | None
    connected: bool
    pooled: bool
    """Whether it is behind a transaction pooler, where no boss has a session of its own."""
    info: dict[str, Any] | None
    running: int
    oldest: datetime | None
    next_expiry: datetime | None
    jobs: Sequence[tuple[str, UUID, datetime, int]]


@attrs.frozen
class WorkerPage:
    """One page of the workers."""

    rows: Sequence[WorkerRow]
    next: WorkerRow | None
    """The worker after which the next page begins, if there is one."""


@attrs.frozen
class AuditRow:
    """An action of a person from the dashboard."""

    id: UUID
    at: datetime
    who: str
    action: str
    queue: str | None
    filter: Any
    requested: int
    affected: int


@attrs.frozen
class EventRow:
    """Something that happened."""

    kind: str
    at: datetime
    queue: str | None
    job_id: UUID | None
    who: str | None
    """The worker, the person, or the key of the schedule."""
    what: str
    error: str | None
    message: str | None


@attrs.frozen
class PipelineAudit:
    """The last audit of a database or a lake."""

    source: str
    ended_on: datetime
    since: datetime | None
    until: datetime | None
    queues: Sequence[str]
    """All queues, if there is none."""
    jobs: int
    attempts: int
    violations: dict[str, int]
    possible: dict[str, int]


@attrs.frozen
class Lake:
    """A lake to which history is exported."""

    address: str
    exported_on: datetime
    batch: int
    pending: bool
    holds: bool
    watermark: str
    """It has all rows of older transactions."""
    behind: datetime | None
    """When the oldest job ended that it does not have; None if it has all."""


@attrs.frozen
class BulkLoad:
    """A bulk load."""

    id: str
    ended_on: datetime
    queue: str
    state: str
    staged: int
    released: int
    rejected: int
