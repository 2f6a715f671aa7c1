"""The jobs of the sending methods, made from their arguments: for Boss and for SyncBoss."""

from collections.abc import Mapping
from typing import Any

from trioboss.errors import UsageError
from trioboss.model.check import check_duration, check_key, check_start
from trioboss.model.job import Duration, NewJob, Start
from trioboss.model.payload import JsonInput

__all__ = ["deferred", "once", "throttled"]


def _refuse(options: Mapping[str, Any], argument: str, *names: str) -> None:
    """Refuse options that would contradict an argument."""
    for name in names:
        if name in options:
            raise UsageError(f"{name}: the argument {argument!r} sets it; give one of the two")


def deferred(data: JsonInput, after: Start, options: Mapping[str, Any]) -> NewJob:
    """The job of `send_after`."""
    _refuse(options, "after", "start_after")
    return NewJob.from_options(data, {**options, "start_after": check_start("after", after)})


def throttled(
    data: JsonInput, seconds: Duration, key: str | None, next_slot: bool, options: Mapping[str, Any]
) -> NewJob:
    """The job of `send_throttled` and `send_debounced`."""
    _refuse(options, "seconds", "singleton_seconds", "singleton_next_slot")
    slot: dict[str, Any] = {"singleton_seconds": check_duration("seconds", seconds, above=True)}
    if key is not None:
        _refuse(options, "key", "singleton_key")
        slot["singleton_key"] = check_key("key", key)
    return NewJob.from_options(data, {**options, **slot, "singleton_next_slot": next_slot})


def once(data: JsonInput, key: str, options: Mapping[str, Any]) -> NewJob:
    """The job of `send_once`."""
    _refuse(options, "key", "singleton_key")
    return NewJob.from_options(data, {**options, "singleton_key": check_key("key", key)})
