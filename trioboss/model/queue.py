"""A queue: its options as they are given, its row as it is read, and its numbers."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypedDict

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import (
    check_count,
    check_duration,
    check_flag,
    check_fraction,
    check_known,
    check_name,
    checked,
)
from trioboss.model.job import Duration
from trioboss.model.policy import Policy, PolicyName

__all__ = ["Queue", "QueueOptions", "QueueSettings", "QueueStats", "changed_settings", "make_settings"]

_DAY = 86400.0


class QueueOptions(TypedDict, total=False):
    """The options of `create_queue`."""

    policy: PolicyName | Policy
    partition: bool
    dead_letter: str | None
    warning_queue_size: int | None
    retry_limit: int
    retry_delay: Duration
    retry_backoff: bool
    retry_delay_max: Duration | None
    retry_jitter: float | None
    retry_window: Duration | None
    expire_in: Duration
    heartbeat: Duration | None
    auto_heartbeat: bool
    max_lease_extensions: int
    commit_order: bool
    retention: Duration
    delete_after: Duration
    keep_completed: bool


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


_OPTION_NAMES: Final = frozenset(field.name for field in attrs.fields(QueueSettings))


def make_settings(options: Mapping[str, Any]) -> QueueSettings:
    """The options of `create_queue`, checked, with defaults for the rest."""
    check_known("create_queue", options, _OPTION_NAMES)
    return QueueSettings(**options)


def changed_settings(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `update_queue`, checked; policy and partition cannot change."""
    # The rows of live jobs depend on both: their slots, backlogs and owners on the policy, their table on partition.
    for fixed in ("policy", "partition"):
        if fixed in options:
            raise UsageError(f"{fixed}: cannot be changed once the queue exists: create another queue")
    check_known("update_queue", options, _OPTION_NAMES)
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


@attrs.frozen
class QueueStats:
    """The numbers of a queue. Ended jobs are those of the last 24 hours."""

    deferred: int
    """Queued, but not before their time."""
    queued: int
    """All queued jobs: created or retry."""
    ready: int
    """Queued and due."""
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
    """Seconds since the oldest due job became due; 0 if none waits."""
    paused: bool

    @property
    def pending(self) -> int:
        """Another name of queued."""
        return self.queued

    @property
    def inflight(self) -> int:
        """Another name of active."""
        return self.active
