"""Rows in the binary format of COPY."""

import struct
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

import attrs

from trioboss.model.job import NewJob
from trioboss.model.queue import Queue
from trioboss.model.states import Readiness
from trioboss.store.sending import overrides, start

__all__ = ["JobRows", "StagingRows", "blocks"]

_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
_TRAILER = struct.pack(">h", -1)
_BLOCK = 128 * 1024
_NULL = struct.pack(">i", -1)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)  # of Postgres: binary timestamps count microseconds from here
_MICROSECOND = timedelta(microseconds=1)

_pack_json_length = struct.Struct(">ib").pack
_UUID_LENGTH = struct.pack(">i", 16)
_ROW = b"\0\x09" + _UUID_LENGTH


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


def _int4(value: int | None) -> bytes:
    return _NULL if value is None else struct.pack(">ii", 4, value)


def _int8(value: int) -> bytes:
    return struct.pack(">iq", 8, value)


def _float8(value: float | None) -> bytes:
    return _NULL if value is None else struct.pack(">id", 8, value)


def _uuid(value: bytes) -> bytes:
    return _UUID_LENGTH + value


def _json(text: str | None) -> bytes:
    """jsonb: a version number, then the text."""
    return _NULL if text is None else _pack_json_length(len(text) + 1, 1) + text.encode()


def _instant(value: datetime | None) -> bytes:
    return _NULL if value is None else _int8((value - _EPOCH) // _MICROSECOND)


@attrs.define
class JobRows:
    """Rows for copy_jobs.sql: jobs of a standard queue."""

    _queue: Queue
    _now: datetime
    _plain: bytes = attrs.field(init=False)
    """Everything after id and data, for a job without options. Most rows of a bulk load end like this."""

    def __attrs_post_init__(self) -> None:
        self._plain = self._rest(NewJob())

    def write(self, id: bytes, data: str | None, job: NewJob | None) -> bytes:
        """One row; ``data`` is JSON text, in ASCII."""
        # The number of columns, as a 16-bit integer, begins each row. The columns are those of copy_jobs.sql, in order.
        rest = self._plain if job is None else self._rest(job)
        return b"".join((_ROW, id, _json(data), rest))

    def _rest(self, job: NewJob) -> bytes:
        # The trigger fill_in_job skips rows that have a readiness: it is computed here, as queued_readiness() does.
        starts = start(job)
        first: datetime = starts.get("start_after") or self._now + timedelta(seconds=starts.get("delay") or 0)
        return b"".join(
            (
                _text(self._queue.name),
                _int4(job.priority or 0),
                _instant(first),
                _text(job.singleton_key),
                _json(overrides(job)),
                _instant(self._now),
                _text(Readiness.DEFERRED if first > self._now else Readiness.READY),
            )
        )


@attrs.define
class StagingRows:
    """Rows for copy_staging.sql, of jobs of any queue; release_staged.sql places them."""

    _load: bytes
    _position: int = attrs.field(default=0, init=False)

    def write(self, id: bytes, data: str | None, job: NewJob) -> bytes:
        """One row; ``data`` is JSON text, in ASCII."""
        starts = start(job)
        self._position += 1
        return b"".join(
            (
                b"\0\x09",  # the columns of copy_staging.sql
                _uuid(self._load),
                _int8(self._position),
                _uuid(id),
                _json(data),
                _int4(job.priority),
                _instant(starts.get("start_after")),
                _float8(starts.get("delay")),
                _text(job.singleton_key),
                _json(overrides(job)),
            )
        )
