"""The ids of jobs."""

import os
import struct
import time
from collections.abc import Iterator
from uuid import UUID

__all__ = ["make_id", "make_ids"]

_RANDOM_BLOCK = 4096  # bytes, for 512 ids: to ask the system for each would cost as much as the rest of an id
_pack_id = struct.Struct(">QQ").pack


def make_id() -> UUID:
    """Return a new UUIDv7.

    Ids that a process makes one after the other are nearly in order (within 244 ns they are not): find_jobs reads in
    that order, and new index entries are next to each other.
    """
    high, low = _halves(int.from_bytes(os.urandom(8), "big"))
    return UUID(int=high << 64 | low)


def make_ids() -> Iterator[bytes]:
    """New UUIDv7s without end, as bytes: a bulk load needs no objects."""
    while True:
        for random in memoryview(os.urandom(_RANDOM_BLOCK)).cast("Q"):
            yield _pack_id(*_halves(random))


def _halves(random: int) -> tuple[int, int]:
    """A UUIDv7 of this moment, as two numbers of 64 bits."""
    millis, nanos = divmod(time.time_ns(), 1_000_000)
    # The 12 bits after the version are a fraction of a millisecond, 244 ns each (RFC 9562, section 6.2, method 3).
    high = (millis & (1 << 48) - 1) << 16 | 0x7 << 12 | nanos * 4096 // 1_000_000
    return high, 0b10 << 62 | random & (1 << 62) - 1
