"""Turns the output of COPY into Arrow, by columns.

All rows are read at the same time: where each of them has its next field is an array of offsets, and a column is what
is found there.
"""

from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from trioboss.postgres.wire.copy_out import CopiedRows

__all__ = ["decode"]

Numbers = np.ndarray[Any, np.dtype[Any]]

_INSTANT = pa.timestamp("us", "UTC")
_ON_THE_WIRE = {
    pa.bool_(): ">u1",
    pa.int32(): ">i4",
    pa.int64(): ">i8",
    pa.float64(): ">f8",
    _INSTANT: ">i8",
}
_EPOCH = 946_684_800_000_000  # microseconds from 1970 to 2000, where Postgres begins to count
_PADDING = bytes(8)


def decode(rows: CopiedRows, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as a batch of Arrow, or ValueError if they have other columns than the schema."""
    if len(rows.data) >= 2**31:
        raise ValueError(
            f"{len(rows.data)} bytes are more than an array of texts can have: use a smaller chunkRows"
        )
    sizes = np.array(rows.sizes, np.int64)
    # Where a field is null a number is read all the same, for the last row from beyond its end.
    fields = _Fields(rows.data + _PADDING, np.cumsum(sizes) - sizes)
    fields.skip_count(len(schema))
    return pa.RecordBatch.from_arrays([fields.take(type) for type in schema.types], schema=schema)


@attrs.define
class _Fields:
    """The next field of each row."""

    _data: bytearray
    _offsets: Numbers

    def skip_count(self, expected: int) -> None:
        """Go from the beginning of each row, which is the number of its fields, to its first field."""
        found = self._read(">i2")
        if (found != expected).any():
            raise ValueError(f"the server sent {found[0]} columns, where {expected} were asked for")
        self._offsets += 2

    def take(self, type: pa.DataType) -> pa.Array:
        """These fields as a column; then the next are next."""
        lengths = self._read(">i4").astype(np.int32)
        self._offsets += 4
        null = lengths < 0
        if null.all():
            return pa.nulls(len(null), type)
        valid = _bits(~null) if null.any() else None
        lengths[null] = 0
        make = self._make_texts if pa.types.is_string(type) else self._make_numbers
        column = make(type, lengths, valid)
        self._offsets += lengths
        return column

    def _read(self, wire: str) -> Numbers:
        """A number of each row. Numbers begin anywhere, so the data is seen as numbers that overlap."""
        one = np.dtype(wire)
        all = np.ndarray((len(self._data) - one.itemsize + 1,), one, self._data, strides=(1,))
        return all[self._offsets]

    def _make_numbers(self, type: pa.DataType, lengths: Numbers, valid: pa.Buffer | None) -> pa.Array:
        found = self._read(_ON_THE_WIRE[type])
        if lengths.max() != found.itemsize:
            raise ValueError(f"the server sent {lengths.max()} bytes for a value of type {type}")
        numbers = found.astype(found.dtype.newbyteorder("="))
        if type == _INSTANT:
            numbers += _EPOCH
        data = _bits(numbers) if pa.types.is_boolean(type) else pa.py_buffer(numbers)
        return pa.Array.from_buffers(type, len(numbers), [valid, data])

    def _make_texts(self, type: pa.DataType, lengths: Numbers, valid: pa.Buffer | None) -> pa.Array:
        """All bytes are divided into texts and the gaps between them, and every other part is taken."""
        count = len(lengths)
        bounds = np.empty(2 * count, np.int32)
        bounds[::2], bounds[1::2] = self._offsets, self._offsets + lengths
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self._data)]
        texts = pa.Array.from_buffers(type, 2 * count - 1, buffers)
        chosen = pa.py_buffer(np.arange(0, 2 * count, 2, dtype=np.int32))
        return texts.take(pa.Array.from_buffers(pa.int32(), count, [valid, chosen]))


def _bits(flags: Numbers) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
