"""Rows in the binary format of COPY."""

import json
import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import attrs

from trioboss.model.job import NewJob
from trioboss.model.queue import Queue
from trioboss.store.sending import job_options

__all__ = ["JobRows", "StagingRows", "blocks"]

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_BLOCK = 128 * 1024
_NULL = struct.pack(">i", -1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_INHERITED = (
    "retry_limit",
    "retry_delay",
    "retry_backoff",
    "retry_delay_max",
    "retry_jitter",
    "retry_window",
    "expire_in",
    "heartbeat",
    "auto_heartbeat",
    "max_lease_extensions",
    "retention",
    "delete_after",
    "dead_letter",
)

_pack_json_length = struct.Struct(">ib").pack
_UUID_LENGTH = struct.pack(">i", 16)


def blocks(rows: Iterable[bytes]) -> Iterator[bytes]:
    """Join rows to blocks worth a system call, with the header and trailer of the format."""
    block = [_HEADER]
    size = 0
    for row in rows:
        block.append(row)
        size += len(row)
        if size > _BLOCK:
            yield b"".join(block)
            block, size = [], 0
    block.append(_TRAILER)
    yield b"".join(block)


def _bytes(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def _text(value: str | None) -> bytes:
    return _NULL if value is None else _bytes(value.encode())


def _int2(value: int) -> bytes:
    return struct.pack(">ih", 2, value)


def _int4(value: int | None) -> bytes:
    return _NULL if value is None else struct.pack(">ii", 4, value)


def _int8(value: int) -> bytes:
    return struct.pack(">iq", 8, value)


def _float8(value: float | None) -> bytes:
    return _NULL if value is None else struct.pack(">id", 8, value)


def _bool(value: bool) -> bytes:
    return struct.pack(">i?", 1, value)


def _uuid(value: UUID) -> bytes:
    return _UUID_LENGTH + value.bytes


def _json(text: str | None) -> bytes:
    """jsonb: a version number, then the text."""
    return _NULL if text is None else _pack_json_length(len(text) + 1, 1) + text.encode()


def _interval(seconds: float | None) -> bytes:
    return _NULL if seconds is None else struct.pack(">iqii", 16, round(seconds * 1_000_000), 0, 0)


def _instant(value: datetime | None) -> bytes:
    return _NULL if value is None else _int8((value - _EPOCH) // _MICROSECOND)


@attrs.define
class JobRows:
    """Rows for copy_jobs.sql: what a job leaves open is filled in from its queue here."""

    _queue: Queue
    _now: datetime
    _plain: bytes = attrs.field(init=False)
    """Everything after id and data, for a job without options. Most rows of a bulk load end like this."""

    def __attrs_post_init__(self) -> None:
        self._plain = self._rest(NewJob())

    def write(self, id: UUID, data: str | None, job: NewJob | None) -> bytes:
        """One row; ``data`` is JSON text, in ASCII."""
        rest = self._plain if job is None else self._rest(job)
        return b"".join((b"\0\x16", _UUID_LENGTH, id.bytes, _json(data), rest))

    def _rest(self, job: NewJob) -> bytes:
        queue, options = self._queue, job_options(job)
        own = {name: getattr(queue, name) if options[name] is None else options[name] for name in _INHERITED}
        start: datetime = options.get("start_after") or self._now + timedelta(
            seconds=options.get("delay") or 0
        )
        return b"".join(
            (
                _text(queue.name),
                _int4(job.priority or 0),
                _int4(own["retry_limit"]),
                _float8(own["retry_delay"]),
                _bool(own["retry_backoff"]),
                _float8(own["retry_delay_max"]),
                _float8(own["retry_jitter"]),
                _interval(own["retry_window"]),
                _instant(start),
                _text(job.singleton_key),
                _interval(own["expire_in"]),
                _interval(own["heartbeat"]),
                _bool(own["auto_heartbeat"]),
                _int4(own["max_lease_extensions"]),
                _instant(self._now),
                _instant(max(start, self._now) + timedelta(seconds=own["retention"])),
                _interval(own["delete_after"]),
                _text(own["dead_letter"]),
                _text(queue.policy),
                _int2(3 if start > self._now else 0),
            )
        )


@attrs.define
class StagingRows:
    """Rows for copy_staging.sql: only what the job says; release_staged.sql fills in the rest."""

    _load: UUID
    _position: int = attrs.field(default=0, init=False)

    def write(self, id: UUID, data: str | None, job: NewJob) -> bytes:
        """One row; ``data`` is JSON text, in ASCII."""
        options = {name: value for name, value in job_options(job).items() if value is not None}
        start, delay = options.pop("start_after", None), options.pop("delay", None)
        priority, key = options.pop("priority", None), options.pop("singleton_key", None)
        self._position += 1
        return b"".join(
            (
                b"\0\x09",
                _uuid(self._load),
                _int8(self._position),
                _uuid(id),
                _json(data),
                _int4(priority),
                _instant(start),
                _float8(delay),
                _text(key),
                _json(json.dumps(options) if options else None),
            )
        )
