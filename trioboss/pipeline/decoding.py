"""Turns the output of COPY into Arrow, by columns.

All rows are read at the same time: where each of them has its next field is an array of offsets, and a column is what
is found there. To gather that is what takes the time, so a value of a fixed width is gathered with its length.

A uuid comes as 16 bytes and becomes text here. To convert it there would cost the server more than to read the rest of
a column costs us, and more than twice as many bytes would be sent.
"""

from collections.abc import Collection
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from trioboss.postgres.wire.copy_out import CopiedRows

__all__ = ["decode"]

Numbers = np.ndarray[Any, np.dtype[Any]]

_INSTANT = pa.timestamp("us", "UTC")
_UUID = "V16"
_ON_THE_WIRE = {
    pa.bool_(): ">u1",
    pa.int32(): ">i4",
    pa.int64(): ">i8",
    pa.float64(): ">f8",
    _INSTANT: ">i8",
}
_EPOCH = 946_684_800_000_000  # microseconds from 1970 to 2000, where Postgres begins to count
_PADDING = bytes(np.dtype(_UUID).itemsize)
_DIGITS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)
"""The two hexadecimal digits of each byte."""
_GROUPS = ((0, 0, 8), (9, 8, 12), (14, 12, 16), (19, 16, 20), (24, 20, 32))
"""The groups of digits of a uuid: where each begins in its text, and which of the digits it has."""
_UUID_LENGTH = 36


def decode(rows: CopiedRows, schema: pa.Schema, uuids: Collection[str] = ()) -> pa.RecordBatch:
    """The rows as a batch of Arrow, or ValueError if they have other columns than the schema.

    ``uuids`` are the columns that are text in the schema, and that the server sent as uuid.
    """
    if len(rows.data) >= 2**31:
        raise ValueError(
            f"{len(rows.data)} bytes are more than an array of texts can have: use a smaller chunkRows"
        )
    sizes = np.array(rows.sizes, np.int64)
    # Where a field is null a value is read all the same, for the last row from beyond its end.
    fields = _Fields(rows.data + _PADDING, np.cumsum(sizes) - sizes)
    fields.skip_count(len(schema))
    columns = [fields.take(field.type, is_uuid=field.name in uuids) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@attrs.define
class _Fields:
    """The next field of each row."""

    _data: bytearray
    _offsets: Numbers

    def skip_count(self, expected: int) -> None:
        """Go from the beginning of each row, which is the number of its fields, to its first field."""
        found = self._read([("count", ">i2")])["count"]
        if (found != expected).any():
            raise ValueError(f"the server sent {found[0]} columns, where {expected} were asked for")
        self._offsets += 2

    def take(self, type: pa.DataType, *, is_uuid: bool = False) -> pa.Array:
        """These fields as a column; then the next are next."""
        wire = _UUID if is_uuid else _ON_THE_WIRE.get(type)
        found = self._read([("length", ">i4"), *([] if wire is None else [("value", wire)])])
        lengths = found["length"].astype(np.int32)
        self._offsets += 4
        null = lengths < 0
        if null.all():
            return pa.nulls(len(null), type)
        valid = _bits(~null) if null.any() else None
        lengths[null] = 0
        if wire is None:
            column = self._make_texts(type, lengths, valid)
        else:
            values = found["value"]
            if lengths.max() != values.itemsize:
                sent = "a uuid" if is_uuid else f"a value of type {type}"
                raise ValueError(f"the server sent {lengths.max()} bytes for {sent}")
            make = _make_uuids if is_uuid else _make_numbers
            column = make(type, values, valid)
        self._offsets += lengths
        return column

    def _read(self, fields: list[tuple[str, str]]) -> Numbers:
        """These fields of each row. They begin anywhere, so the data is seen as items that overlap.

        They are gathered as bytes, which numpy copies as a whole, and only then seen as numbers.
        """
        item = np.dtype(fields)
        all = np.ndarray(
            (len(self._data) - item.itemsize + 1,), f"V{item.itemsize}", self._data, strides=(1,)
        )
        return all[self._offsets].view(item)

    def _make_texts(self, type: pa.DataType, lengths: Numbers, valid: pa.Buffer | None) -> pa.Array:
        """All bytes are divided into texts and the gaps between them, and every other part is taken."""
        count = len(lengths)
        bounds = np.empty(2 * count, np.int32)
        bounds[::2], bounds[1::2] = self._offsets, self._offsets + lengths
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self._data)]
        texts = pa.Array.from_buffers(type, 2 * count - 1, buffers)
        chosen = pa.py_buffer(np.arange(0, 2 * count, 2, dtype=np.int32))
        return texts.take(pa.Array.from_buffers(pa.int32(), count, [valid, chosen]))


def _make_numbers(type: pa.DataType, values: Numbers, valid: pa.Buffer | None) -> pa.Array:
    numbers = values.astype(values.dtype.newbyteorder("="))
    if type == _INSTANT:
        numbers += _EPOCH
    data = _bits(numbers) if pa.types.is_boolean(type) else pa.py_buffer(numbers)
    return pa.Array.from_buffers(type, len(numbers), [valid, data])


def _make_uuids(type: pa.DataType, values: Numbers, valid: pa.Buffer | None) -> pa.Array:
    """The texts of all, one after the other: each has the same length."""
    raw = np.frombuffer(values.tobytes(), np.uint8).reshape(len(values), -1)
    digits = _DIGITS[raw].view(np.uint8)
    texts = np.full((len(values), _UUID_LENGTH), ord("-"), np.uint8)
    for place, first, end in _GROUPS:
        texts[:, place : place + end - first] = digits[:, first:end]
    bounds = np.arange(len(values) + 1, dtype=np.int32) * np.int32(_UUID_LENGTH)
    return pa.Array.from_buffers(type, len(values), [valid, pa.py_buffer(bounds), pa.py_buffer(texts)])


def _bits(flags: Numbers) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
