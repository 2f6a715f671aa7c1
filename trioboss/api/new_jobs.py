"""The jobs of the sending methods, made from their arguments: for Boss and for SyncBoss."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_duration, check_key, check_start, shown
from trioboss.model.job import Duration, NewJob, Start
from trioboss.model.payload import JsonInput
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = [
    "OnDuplicate",
    "deferred",
    "make_job",
    "once",
    "published",
    "read_request",
    "send_or_update",
    "singleton",
    "throttled",
]

OnDuplicate: TypeAlias = Literal["refuse", "update"]
"""The action of `send` if a queued job has the same id or key already."""

_KEYWORDS = ("conn", "on_duplicate")  # of `send`, beside the options of a job
_QUEUE_NAMES = ("queue", "name")  # pg-boss calls it name


def _refuse(options: Mapping[str, Any], argument: str, *names: str) -> None:
    """Refuse options that would contradict an argument."""
    for name in names:
        if name in options:
            raise UsageError(f"{name}: the argument {argument!r} sets it; give one of the two")


def make_job(data: "JsonInput | NewJob", options: Mapping[str, Any]) -> NewJob:
    """The job of `send`: its data and options, or a NewJob with options that override its own."""
    if not isinstance(data, NewJob):
        return NewJob.from_options(data, options, _KEYWORDS)
    return NewJob.from_options(data.data, {**_options_of(data), **options}, _KEYWORDS) if options else data


def _options_of(job: NewJob) -> dict[str, Any]:
    """The options that a job has."""
    fields = attrs.asdict(job, recurse=False)
    return {name: value for name, value in fields.items() if value is not None and name != "data"}


def read_request(
    request: object, data: "JsonInput | NewJob", options: Mapping[str, Any]
) -> tuple[str, NewJob]:
    """The queue and the job of ``send(request)``: a mapping with queue (or name), data and options, or the options
    themselves.
    """
    if not isinstance(request, Mapping):
        raise UsageError(
            f"queue: {shown(request)} is not a name, nor a request: a mapping with queue and data"
        )
    if data is not None:
        raise UsageError("data: the request has it; give one of the two")
    given = dict(request)
    queues = [given.pop(name) for name in _QUEUE_NAMES if name in given]
    if len(queues) != 1:
        raise UsageError("queue: a request names its queue once, as queue or as name")
    data = given.pop("data", None)
    own = given.pop("options", None) or {}
    if not isinstance(own, Mapping):
        raise UsageError(f"options: {shown(own)} is not a mapping")
    return queues[0], make_job(data, {**given, **own, **options})


def send_or_update(
    store: Store, queue: str, job: NewJob, on_duplicate: object
) -> Callable[[bool], Operation[tuple[UUID | None, bool]]]:
    """The operation of ``send(on_duplicate="update")``, made when it is known whether the transaction is our own."""
    if on_duplicate != "update":
        raise UsageError(f"on_duplicate: {shown(on_duplicate)} is not one of refuse, update")
    id, key, changes = _updates_of(job)

    def make(own: bool) -> Operation[tuple[UUID | None, bool]]:
        def update() -> Operation[list[UUID]]:
            return store.changing.find_and_update(queue, id, key, "newest", changes, own=own)

        return store.sending.send_or_update(queue, job, update, own=own)

    return make


def _updates_of(job: NewJob) -> tuple[object, str | None, dict[str, Any]]:
    """The id or the key of the job to be changed, and what is changed."""
    if job.singleton_seconds is not None:
        raise UsageError("on_duplicate: a throttle refuses duplicates: singleton_seconds cannot be combined")
    if job.id is None and job.singleton_key is None:
        raise UsageError("on_duplicate: needs an id or a singleton_key, by which the job is found")
    changes = _options_of(job) | {"data": job.data}
    for name in ("id", "singleton_key", "singleton_next_slot", "trace"):
        changes.pop(name, None)
    return job.id, None if job.id is not None else job.singleton_key, changes


def deferred(data: JsonInput, after: Start, options: Mapping[str, Any]) -> NewJob:
    """The job of `send_after`."""
    _refuse(options, "after", "start_after")
    given = {**options, "start_after": check_start("after", after)}
    return NewJob.from_options(data, given, ("after", "conn"), "send_after")


def throttled(
    data: JsonInput, seconds: Duration, key: str | None, next_slot: bool, options: Mapping[str, Any]
) -> NewJob:
    """The job of `send_throttled` and `send_debounced`."""
    _refuse(options, "seconds", "singleton_seconds", "singleton_next_slot")
    slot: dict[str, Any] = {"singleton_seconds": check_duration("seconds", seconds, above=True)}
    if key is not None:
        _refuse(options, "key", "singleton_key")
        slot["singleton_key"] = check_key("key", key)
    given = {**options, **slot, "singleton_next_slot": next_slot}
    call = "send_debounced" if next_slot else "send_throttled"
    return NewJob.from_options(data, given, ("conn", "key", "seconds"), call)


def once(data: JsonInput, key: str, options: Mapping[str, Any]) -> NewJob:
    """The job of `send_once`."""
    _refuse(options, "key", "singleton_key")
    given = {**options, "singleton_key": check_key("key", key)}
    return NewJob.from_options(data, given, ("conn", "key"), "send_once")


def singleton(data: JsonInput, options: Mapping[str, Any]) -> NewJob:
    """The job of `send_singleton`."""
    return NewJob.from_options(data, options, ("conn",), "send_singleton")


def published(data: JsonInput, options: Mapping[str, Any]) -> NewJob:
    """The job of `publish`, for each queue."""
    return NewJob.from_options(data, options, ("conn", "event"), "publish")
