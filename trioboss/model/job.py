"""A job: as it is sent, and as it is read from the database."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypedDict
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import (
    check_count,
    check_duration,
    check_factor,
    check_flag,
    check_fraction,
    check_key,
    check_name,
    check_priority,
    check_start,
    check_trace,
    check_uuid,
    checked,
)
from trioboss.model.option_names import check_known, checks_init_keywords
from trioboss.model.payload import JsonInput
from trioboss.model.states import JobState, Readiness

__all__ = [
    "NO_GROUPS",
    "OPTIONS",
    "SHARED",
    "Duration",
    "FetchOptions",
    "FindOptions",
    "Job",
    "Lease",
    "NewJob",
    "SendOptions",
    "Start",
    "UpdateOptions",
]


Duration = float | timedelta
"""A length of time: seconds, or a timedelta."""

Start = float | timedelta | datetime | str
"""When a job may start: seconds from now, a timedelta, an aware datetime, or ISO 8601 text."""


class SendOptions(TypedDict, total=False):
    """The options of `send`. Durations are seconds or timedeltas, of less than 100 years.

    - ``id`` (a new UUIDv7): the same id twice is one job.
    - ``priority`` (0): higher is claimed first; -2,147,483,648 to 2,147,483,647.
    - ``start_after`` (now): seconds from now, a timedelta, an aware datetime, or ISO 8601 text with a zone.
    - ``singleton_key`` (None): the key of policies, throttles, `send_once` and `send_singleton`; 1 to 1,000 bytes. On a
      queue of the policy standard a key alone refuses nothing.
    - ``singleton_seconds`` (None): the length of a throttle slot, more than 0: one job of a key in each.
    - ``singleton_next_slot`` (False): whether a job whose throttle slot is taken gets the next one.
    - ``trace`` (None): the trace context of the sender, at most 2,000 characters.

    All others are those of the queue unless they are given, with the limits that `QueueOptions` has: ``dead_letter``,
    ``retry_limit``, ``retry_delay``, ``retry_backoff``, ``retry_delay_max``, ``retry_jitter``, ``retry_multiplier``,
    ``retry_window``, ``expire_in``, ``heartbeat``, ``auto_heartbeat``, ``max_lease_extensions``, ``retention`` and
    ``delete_after``. A job cannot switch off the heartbeat of its queue.
    """

    id: UUID | str | None
    """An id of your own: the same id twice is one job. None: a new UUIDv7. Example:
    ``id="0193a5d2-5c1e-7d4c-9c43-8f5be0a1c2d3"``.
    """
    priority: int | None
    """Jobs of a higher priority are claimed first. None: 0. Example: ``priority=10``."""
    start_after: Start | None
    """When the job may start. None: at once. Example: ``start_after=60``."""
    singleton_key: str | None
    """The key by which policies, throttles, `send_once` and `send_singleton` tell jobs apart. key_strict_fifo queues
    require one. On a queue of the policy standard a key alone refuses nothing. Example:
    ``singleton_key="customer-7"``.
    """
    singleton_seconds: Duration | None
    """The length of a throttle slot in seconds: the queue takes one job of a key in each slot. Slots are counted from
    the beginning of 1970, in UTC. Example: ``singleton_seconds=3600``.
    """
    singleton_next_slot: bool | None
    """True: a job whose throttle slot is taken gets the next one, if that is free, and starts when that begins. Needs
    ``singleton_seconds``. Example: ``singleton_seconds=3600, singleton_next_slot=True``.
    """
    dead_letter: str | None
    """The queue that gets a copy if the job fails for good. Example: ``dead_letter="failed-payments"``."""
    retry_limit: int | None
    """How often it is tried again after a failure. Example: ``retry_limit=0``."""
    retry_delay: Duration | None
    """Seconds from a failure to the next attempt. Example: ``retry_delay=30``."""
    retry_backoff: bool | None
    """Whether the delay doubles with each failure. Example: ``retry_backoff=True``."""
    retry_delay_max: Duration | None
    """The longest delay with ``retry_backoff``, in seconds. Example: ``retry_delay_max=3600``."""
    retry_jitter: float | None
    """The part of a delay that is random. Example: ``retry_jitter=0.2``."""
    retry_multiplier: float | None
    """The factor by which the delay grows with ``retry_backoff``, from 1 to 100. Example: ``retry_multiplier=3``."""
    retry_window: Duration | None
    """Seconds after which a failure starts the backoff again. Example: ``retry_window=86400``."""
    expire_in: Duration | None
    """Seconds that an attempt may run. Example: ``expire_in=60``."""
    heartbeat: Duration | None
    """Seconds within which a running job has to send a heartbeat. Example: ``heartbeat=30``."""
    auto_heartbeat: bool | None
    """Whether the worker sends the heartbeats. Example: ``auto_heartbeat=False``."""
    max_lease_extensions: int | None
    """How often an attempt may be extended. Example: ``max_lease_extensions=10``."""
    retention: Duration | None
    """Seconds that the job may be queued, from the time when it may start; then it is deleted. Example:
    ``retention=3600``.
    """
    delete_after: Duration | None
    """Seconds that it is kept after its end. 0: for ever. Example: ``delete_after=86400``."""
    trace: Mapping[str, str] | None
    """The trace context of the sender, as W3C headers; `trioboss.otel` sets it. Example: ``trace={"traceparent":
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}``.
    """


class UpdateOptions(TypedDict, total=False):
    """The parts of a queued job that `update_job` can change: its data, priority and start, and the options that it
    overrides, which are those of `SendOptions`. A part that is left out stays as it is.
    """

    data: JsonInput
    """Other data; None: none."""
    priority: int
    """Another priority."""
    start_after: Start
    """When it may start: it waits until then, or can run at once."""
    dead_letter: str
    retry_limit: int
    retry_delay: Duration
    retry_backoff: bool
    retry_delay_max: Duration
    retry_jitter: float
    retry_multiplier: float
    retry_window: Duration
    expire_in: Duration
    heartbeat: Duration
    auto_heartbeat: bool
    max_lease_extensions: int
    retention: Duration
    delete_after: Duration


class FetchOptions(TypedDict, total=False):
    """The options of `fetch` and `fetch_completed`, besides ``batch_size``."""

    priority: bool
    """False: in the order of sending alone (True)."""
    ignore_start_after: bool
    """Also deferred jobs whose time has not come (False)."""
    min_priority: int | None
    """Only jobs of at least this priority."""
    max_priority: int | None
    """Only jobs of at most this priority."""


class FindOptions(TypedDict, total=False):
    """The filters of `find_jobs`."""

    id: UUID | str
    state: JobState | str
    """created, retry, active, completed, cancelled or failed."""
    queued: bool
    """True: only jobs that wait, created or retry (False)."""
    singleton_key: str
    data: JsonInput
    """The value in the job's data."""
    source_id: UUID | str
    """Of dead letter jobs: the job that failed."""
    since: datetime | str
    """Live jobs that were sent, and ended ones that ended, at that time or later."""
    until: datetime | str
    newest: bool
    """True: the newest first (False)."""
    after: UUID | str
    """The id of the last job of the page before."""
    limit: int
    """The length of a page (1000)."""


@checks_init_keywords
@attrs.frozen
class NewJob:
    """A job to be sent. Options are checked and kept as seconds and instants; None: that of the queue."""

    data: JsonInput = None
    id: UUID | str | None = checked(check_uuid)
    priority: int | None = checked(check_priority)
    start_after: Start | None = checked(check_start)
    singleton_key: str | None = checked(check_key)
    singleton_seconds: Duration | None = checked(check_duration, above=True)
    singleton_next_slot: bool | None = checked(check_flag)
    dead_letter: str | None = checked(check_name)
    retry_limit: int | None = checked(check_count)
    retry_delay: Duration | None = checked(check_duration)
    retry_backoff: bool | None = checked(check_flag)
    retry_delay_max: Duration | None = checked(check_duration)
    retry_jitter: float | None = checked(check_fraction)
    retry_multiplier: float | None = checked(check_factor)
    retry_window: Duration | None = checked(check_duration, above=True)
    expire_in: Duration | None = checked(check_duration, above=True)
    heartbeat: Duration | None = checked(check_duration, low=1.0)
    auto_heartbeat: bool | None = checked(check_flag)
    max_lease_extensions: int | None = checked(check_count)
    retention: Duration | None = checked(check_duration, above=True)
    delete_after: Duration | None = checked(check_duration)
    trace: Mapping[str, str] | None = checked(check_trace)

    def __attrs_post_init__(self) -> None:
        # The only rule between two options; all others are checked field by field.
        if self.singleton_next_slot and self.singleton_seconds is None:
            raise UsageError("singleton_next_slot: needs singleton_seconds, the length of a throttle slot")

    @classmethod
    def from_options(
        cls,
        data: JsonInput,
        options: Mapping[str, Any],
        keywords: Iterable[str] = (),
        call: str = "send",
    ) -> "NewJob":
        """A job from the keyword arguments of a call. ``keywords``: others that it has, for its errors."""
        check_known(call, options, _NEW_JOB_FIELDS, keywords, _OTHER_NAMES)
        return cls(data, **options)


NO_GROUPS: Final = "not there: the policy singleton runs one job of a singleton_key at a time"
# Names that pg-boss has, or had, for these options, and ours.
_OTHER_NAMES: Final = {
    "db": "conn, a connection in a transaction",
    "keepUntil": "retention, in seconds or as a timedelta",
    "keep_until": "retention, in seconds or as a timedelta",
    "name": "queue, the first argument: one queue a call",
    "maxAttempts": "retry_limit, which does not count the first attempt",
    "visibilityTimeoutMs": "expire_in, in seconds or as a timedelta",
    "traceContext": "trace",
    "group": NO_GROUPS,
    "policy": "an option of the queue",
    "onComplete": "on_complete, a method of the boss",
    "useSingletonQueue": "the method send_singleton, or the policy of the queue",
}
_NEW_JOB_FIELDS: Final = frozenset(field.name for field in attrs.fields(NewJob))


@attrs.frozen
class Lease:
    """The right to settle one attempt of one job. No other attempt ever has the same lease."""

    # With the start, too: after a crash of the server that lost a claim, the same number is issued again.
    id: UUID
    attempt: int
    started_on: datetime


OPTIONS: Final = (
    "retry_limit",
    "retry_delay",
    "retry_backoff",
    "retry_delay_max",
    "retry_jitter",
    "retry_multiplier",
    "retry_window",
    "expire_in",
    "heartbeat",
    "auto_heartbeat",
    "max_lease_extensions",
    "retention",
    "delete_after",
    "dead_letter",
)
"""The options of a queue that a job can override. All others of a job are its own."""


SHARED: Final = "_shared"
"""The name under which a claimed job has the values that it shares with the others of its claim."""


@attrs.frozen(slots=False)  # with slots, and frozen, reading a claim would take twice as long
class Job:
    """A job as it was when it was read. A claimed one carries its lease. Durations are seconds.

    Options that the job does not override are those of its queue at the time of reading.
    """

    id: UUID
    queue: str
    data: Any
    """The data that was sent, as JSON."""
    state: JobState
    """Where it is in its life."""
    readiness: Readiness
    """The thing it waits for; ENDED if it has ended."""
    priority: int
    attempt: int
    retry_count: int
    retry_limit: int
    retry_delay: float
    retry_backoff: bool
    retry_delay_max: float | None
    retry_jitter: float
    retry_multiplier: float
    retry_window: float | None
    singleton_key: str | None
    singleton_on: datetime | None
    """The throttle slot that it occupies."""
    created_on: datetime
    start_after: datetime
    started_on: datetime | None
    """When its last attempt was claimed, by the clock of the database."""
    completed_on: datetime | None
    """When it ended: completed, failed or cancelled."""
    expire_in: float
    heartbeat: float | None
    heartbeat_on: datetime | None
    """When its last heartbeat came; None before the first."""
    auto_heartbeat: bool
    max_lease_extensions: int
    lease_extensions: int
    retention: float
    delete_after: float
    output: Any
    """Its output if it is completed; the error of its last attempt if that has failed."""
    progress: Any
    """The value that its handler has last reported with `job.progress`."""
    dead_letter: str | None
    """The queue that gets a copy if it fails for good."""
    policy: str | None
    worker: UUID | None
    source_queue: str | None
    source_id: UUID | None
    source_created_on: datetime | None
    source_retry_count: int | None
    seq: int
    trace: Mapping[str, str] | None = None
    """The trace context of its sender, if there is one."""

    if not TYPE_CHECKING:  # a type checker would accept any name

        def __getattr__(self, name: str) -> Any:
            # Called for a field that this job has no value of its own for: store/claiming.py.
            shared = self.__dict__.get(SHARED, {})
            if name in shared:
                return shared[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __hash__(self) -> int:
        # Its data may be a dict or a list, which have no hash.
        return hash((self.id, self.attempt))

    @property
    def keep_until(self) -> datetime:
        """When the job is deleted if it is still queued then."""
        # A start in the past does not shorten it: retention counts time spent waiting.
        return max(self.start_after, self.created_on) + timedelta(seconds=self.retention)

    @property
    def lease(self) -> Lease | None:
        """The right to settle this attempt, if the job was active when it was read."""
        if self.state is JobState.ACTIVE and self.started_on is not None:
            return Lease(self.id, self.attempt, self.started_on)
        return None
