"""Parameters in the server's binary format: long arrays. All other parameters are text.

Of the instructions with which the server completes a job in a batch, a third were those that read its id, attempt and
start from text.
"""

import struct
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

__all__ = [
    "EPOCH",
    "BinaryParameter",
    "formats_of",
    "instant_array",
    "int4_array",
    "microseconds",
    "uuid_array",
]

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
"""Binary timestamps count microseconds from here."""
_MICROSECOND = timedelta(microseconds=1)

_UUID, _INT4, _TIMESTAMPTZ = 2950, 23, 1184  # numbers of types, the same on every server
_LENGTH_16 = struct.pack(">i", 16)
_pack_int4 = struct.Struct(">ii").pack
_pack_int8 = struct.Struct(">iq").pack


class BinaryParameter(bytes):
    """A value of a parameter in the binary format."""

    __slots__ = ()


def formats_of(parameters: Sequence[bytes | None]) -> list[int] | None:
    """The format of each parameter, as the protocol numbers them; None if all are text."""
    if BinaryParameter not in map(type, parameters):
        return None
    return [int(type(value) is BinaryParameter) for value in parameters]


def microseconds(value: datetime) -> int:
    """An instant as the server counts it."""
    return (value - EPOCH) // _MICROSECOND


def uuid_array(ids: Iterable[UUID]) -> BinaryParameter:
    """An array of ids."""
    return _array(_UUID, [_LENGTH_16 + id.bytes for id in ids])


def int4_array(numbers: Iterable[int]) -> BinaryParameter:
    """An array of integers."""
    return _array(_INT4, [_pack_int4(4, number) for number in numbers])


def instant_array(instants: Iterable[datetime]) -> BinaryParameter:
    """An array of instants; most of them may be the same."""
    known: dict[datetime, bytes] = {}
    return _array(
        _TIMESTAMPTZ,
        [
            known.get(instant) or known.setdefault(instant, _pack_int8(8, microseconds(instant)))
            for instant in instants
        ],
    )


def _array(type_number: int, elements: list[bytes]) -> BinaryParameter:
    if not elements:
        return BinaryParameter(struct.pack(">iii", 0, 0, type_number))
    # One dimension, no nulls; the first index is 1.
    header = struct.pack(">iiiii", 1, 0, type_number, len(elements), 1)
    return BinaryParameter(header + b"".join(elements))
