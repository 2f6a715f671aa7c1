"""A queue: its options as they are given, its row as it is read, and its numbers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypedDict

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import (
    check_count,
    check_duration,
    check_factor,
    check_flag,
    check_fraction,
    check_name,
    checked,
)
from trioboss.model.job import Duration
from trioboss.model.option_names import check_known
from trioboss.model.policy import Policy, PolicyName

__all__ = [
    "Queue",
    "QueueOptions",
    "QueueSettings",
    "QueueStats",
    "changed_settings",
    "check_defaults",
    "make_settings",
]

_DAY = 86400.0


class QueueOptions(TypedDict, total=False):
    """The options of `create_queue` and `update_queue`. Durations are seconds or timedeltas, of less than 100 years.

    A job has the options of its queue, except those that `send` gave it. They are read when they are used, so a change
    reaches jobs that wait already. An attempt that is running keeps its expire_in and heartbeat.

    - ``policy`` (standard): which jobs may exist at the same time, see `Policy`. Cannot be changed later.
    - ``partition`` (False): whether its live jobs have a table of their own. Cannot be changed later.
    - ``dead_letter`` (None): the queue, which must exist, that gets a copy of each job that has failed for good.
    - ``warning_queue_size`` (None): warn while more jobs are queued; 1 to 1,000,000,000.
    - ``retry_limit`` (2): how often a job is tried again; 0 to 1,000,000,000.
    - ``retry_delay`` (0 seconds): from a failure to the next attempt; 0 or more.
    - ``retry_backoff`` (False): whether the delay grows with each failure.
    - ``retry_delay_max`` (None: no limit): the longest delay of a backoff, in seconds; 0 or more.
    - ``retry_jitter`` (0.5 with backoff, else 0): the part of a delay that is random; 0 to 1.
    - ``retry_multiplier`` (2): the factor by which a backoff grows; 1 to 100.
    - ``retry_window`` (None: never): a failure more than so many seconds after the last one starts the backoff again;
      more than 0.
    - ``expire_in`` (900 seconds): how long an attempt may take, more than 0. Set it to an upper bound.
    - ``heartbeat`` (None): seconds without a heartbeat after which an attempt is lost; at least 1. 20 to 60 are good.
    - ``auto_heartbeat`` (True): whether the worker sends the heartbeats.
    - ``max_lease_extensions`` (3): how often an attempt may be extended; 0 to 1,000,000,000.
    - ``commit_order`` (True): under key_strict_fifo, whether the order of a key is that of commits.
    - ``retention`` (14 days): how long a job may be queued before it is deleted; more than 0.
    - ``delete_after`` (7 days): how long an ended job is kept; 0 or more, 0: for ever.
    - ``keep_completed`` (True): whether completed jobs are kept at all.
    """

    policy: PolicyName | Policy
    """Which jobs may exist at the same time, in the whole queue or for each ``singleton_key``: see `Policy`. It cannot
    be changed later. Example: ``policy="key_strict_fifo"``.
    """
    partition: bool
    """True: the live jobs of the queue have a table of their own; else they share one with those of other queues. It
    cannot be changed later. Example: ``partition=True``.
    """
    dead_letter: str | None
    """The queue, which must exist, that gets a copy of each job that has failed for good. Example:
    ``dead_letter="failed-payments"``.
    """
    warning_queue_size: int | None
    """Warn while more jobs than that are queued: see `QueueWarning` and `get_warnings`. Example:
    ``warning_queue_size=10_000``.
    """
    retry_limit: int
    """How often a job is tried again after an attempt that failed, expired or was lost. Example: ``retry_limit=5``."""
    retry_delay: Duration
    """Seconds from a failure to the next attempt; with ``retry_backoff`` the delay that is doubled. Example:
    ``retry_delay=30``.
    """
    retry_backoff: bool
    """True: the delay doubles with each failure: it is twice ``retry_delay`` (or twice one second, if that is 0) after
    the first, four times after the second, and at most 65,536 times; ``retry_multiplier`` is another factor.
    Example: ``retry_backoff=True``.
    """
    retry_delay_max: Duration | None
    """The longest delay with ``retry_backoff``, in seconds. Example: ``retry_delay_max=3600``."""
    retry_jitter: float | None
    """The part of a delay that is random: with 0.5 a delay of 10 s is one of 5 to 10 s. None: 0.5 with
    ``retry_backoff``, else 0. Example: ``retry_jitter=0.2``.
    """
    retry_multiplier: float
    """The factor by which the delay grows with each failure under ``retry_backoff``, from 1 to 100. Example:
    ``retry_multiplier=3``.
    """
    retry_window: Duration | None
    """The backoff starts again with a failure that is more than so many seconds after the one before. Example:
    ``retry_window=86400``.
    """
    expire_in: Duration
    """Seconds that an attempt may run. After that its handler is cancelled, and the attempt has failed. Set it to an
    upper bound of what a job may ever need. Example: ``expire_in=60``.
    """
    heartbeat: Duration | None
    """Seconds within which a running job has to send a heartbeat. Without one the attempt is lost: a process that is
    connected and stuck is found by that. None: no heartbeats are needed; workers that are gone are found without.
    20 to 60 are good values. Example: ``heartbeat=30``.
    """
    auto_heartbeat: bool
    """True: the worker sends the heartbeats, four of them in each period. False: the handler does, by `job.touch`,
    `job.progress` or `job.extend`. Example: ``auto_heartbeat=False``.
    """
    max_lease_extensions: int
    """How often an attempt may be extended with `job.extend`. Example: ``max_lease_extensions=10``."""
    commit_order: bool
    """Only for key_strict_fifo. True: senders of one key wait for each other's commit, so that the order of a key is
    that of commits. False: no sender waits, and the order is that of sending. Example: ``commit_order=False``.
    """
    retention: Duration
    """Seconds that a job may be queued, from the time when it may start; then it is deleted. Example:
    ``retention=3600``.
    """
    delete_after: Duration
    """Seconds that an ended job is kept. 0: for ever. Example: ``delete_after=86400``."""
    keep_completed: bool
    """False: completed jobs leave no row, so that `wait_for` and `get_job_by_id` do not find them. Example:
    ``keep_completed=False``.
    """


def _parse_policy(_: str, value: object) -> Policy:
    return Policy.parse(value)


@attrs.frozen
class QueueSettings:
    """The options of a queue, checked, with every default filled in. Durations are seconds."""

    policy: Policy = checked(_parse_policy, default=Policy.STANDARD, optional=False)
    partition: bool = checked(check_flag, default=False, optional=False)
    dead_letter: str | None = checked(check_name)
    warning_queue_size: int | None = checked(check_count, low=1)
    retry_limit: int = checked(check_count, default=2, optional=False)
    retry_delay: float = checked(check_duration, default=0.0, optional=False)
    retry_backoff: bool = checked(check_flag, default=False, optional=False)
    retry_delay_max: float | None = checked(check_duration)
    retry_jitter: float | None = checked(check_fraction)
    retry_multiplier: float = checked(check_factor, default=2.0, optional=False)
    retry_window: float | None = checked(check_duration, above=True)
    expire_in: float = checked(check_duration, default=900.0, optional=False, above=True)
    heartbeat: float | None = checked(check_duration, low=1.0)
    auto_heartbeat: bool = checked(check_flag, default=True, optional=False)
    max_lease_extensions: int = checked(check_count, default=3, optional=False)
    commit_order: bool = checked(check_flag, default=True, optional=False)
    retention: float = checked(check_duration, default=14 * _DAY, optional=False, above=True)
    delete_after: float = checked(check_duration, default=7 * _DAY, optional=False)
    keep_completed: bool = checked(check_flag, default=True, optional=False)

    def __attrs_post_init__(self) -> None:
        # Without jitter, jobs that failed together are retried together, each time.
        if self.retry_jitter is None:
            object.__setattr__(self, "retry_jitter", 0.5 if self.retry_backoff else 0.0)


# The name in pg-boss, or in the chapter on the internals of queues, and the name here.
_OTHER_NAMES: Final = {
    "notify": "not needed: workers are always notified",
    "visibilityTimeoutMs": "expire_in, in seconds or as a timedelta",
    "heartbeatIntervalMs": "heartbeat, of which workers send four in each period",
    "maxAttempts": "retry_limit, which does not count the first attempt",
    "retryStrategy": "retry_backoff, with retry_delay, retry_delay_max, retry_multiplier and retry_jitter",
    "initialDelayMs": "retry_delay, in seconds or as a timedelta",
    "maxDelayMs": "retry_delay_max, in seconds or as a timedelta",
    "jitterFactor": "retry_jitter",
    "concurrency": "an option of work",
}
_OPTION_NAMES: Final = frozenset(field.name for field in attrs.fields(QueueSettings))


def make_settings(options: Mapping[str, Any]) -> QueueSettings:
    """The options of `create_queue`, checked, with defaults for the rest."""
    check_known("create_queue", options, _OPTION_NAMES, ("conn",), _OTHER_NAMES)
    return QueueSettings(**options)


def check_defaults(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of `open_boss(defaults=…)`, checked as those of a queue; as they were given."""
    check_known("defaults", options or {}, _OPTION_NAMES, other=_OTHER_NAMES)
    QueueSettings(**(options or {}))
    return dict(options or {})


def changed_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `update_queue`, checked; policy and partition cannot change."""
    # Rows of live jobs depend on both: their policy slots, backlogs and owners on the policy, their table on partition.
    for fixed in ("policy", "partition"):
        if fixed in options:
            raise UsageError(f"{fixed}: cannot be changed once the queue exists: create another queue")
    check_known("update_queue", options, _OPTION_NAMES, ("conn",), _OTHER_NAMES)
    # Checked as a whole, with defaults for the rest; only the options that were given are changed.
    settings = QueueSettings(**options)
    changed = {name: getattr(settings, name) for name in options}
    if "retry_backoff" in options and options.get("retry_jitter") is None:
        changed["retry_jitter"] = settings.retry_jitter
    return changed


@attrs.frozen
class Queue:
    """A queue as it was when it was read. Durations are seconds."""

    name: str
    policy: Policy = attrs.field(converter=Policy)
    partition: bool
    table_name: str
    revision: int
    """Another one after every change, unique in the schema."""
    paused: bool
    on_complete: bool
    dead_letter: str | None
    warning_queue_size: int | None
    retry_limit: int
    retry_delay: float
    retry_backoff: bool
    retry_delay_max: float | None
    retry_jitter: float
    retry_multiplier: float
    retry_window: float | None
    expire_in: float
    heartbeat: float | None
    auto_heartbeat: bool
    max_lease_extensions: int
    commit_order: bool
    retention: float
    delete_after: float
    keep_completed: bool
    created_on: datetime
    updated_on: datetime

    def differences(self, settings: QueueSettings) -> dict[str, tuple[object, object]]:
        """The options in which this queue differs from the settings: name → (its value, that of the settings)."""
        pairs = {name: (getattr(self, name), value) for name, value in attrs.asdict(settings).items()}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def require_strict_fifo(self) -> None:
        """Raise UsageError if no key of this queue can be blocked."""
        if self.policy is not Policy.KEY_STRICT_FIFO:
            raise UsageError(
                f"queue: {self.name!r} has policy {self.policy}: only key_strict_fifo blocks keys"
            )


@attrs.frozen
class QueueStats:
    """The numbers of a queue. Ended jobs are those of the last 24 hours."""

    deferred: int
    """Queued, but not before their time."""
    queued: int
    """All queued jobs: created or retry."""
    ready: int
    """Queued and due, except those behind a failed job that blocks their key (``blocked``)."""
    active: int
    failed: int
    """Of the last 24 hours, and all failed jobs that block a key."""
    completed: int
    """Of the last 24 hours; jobs that left no row (keep_completed=False) are not counted."""
    cancelled: int
    dead_letter: int
    """Queued dead letter jobs whose source is this queue."""
    retries: int
    """Jobs that wait for another try."""
    oldest_age: float
    """Seconds since the oldest ready job became due; 0 if none is ready."""
    paused: bool
    blocked: int = 0
    """Queued and due, behind a failed job that blocks their key: only under key_strict_fifo."""

    @property
    def pending(self) -> int:
        """Another name of queued."""
        return self.queued

    @property
    def inflight(self) -> int:
        """Another name of active."""
        return self.active
