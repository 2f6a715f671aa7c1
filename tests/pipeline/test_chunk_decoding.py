"""The output of COPY, as Arrow. No server takes part."""

import struct
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioboss.pipeline.decoding import decode
from trioboss.postgres.wire.copy_out import CopiedRows

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
INSTANT = pa.timestamp("us", "UTC")


def send_instant(value):
    return struct.pack(">q", (value - EPOCH) // timedelta(microseconds=1))


SEND = {
    pa.bool_(): lambda value: struct.pack(">?", value),
    pa.int32(): lambda value: struct.pack(">i", value),
    pa.int64(): lambda value: struct.pack(">q", value),
    pa.float64(): lambda value: struct.pack(">d", value),
    pa.string(): lambda value: value.encode(),
    INSTANT: send_instant,
}
VALUES = {
    pa.bool_(): st.booleans(),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    INSTANT: st.datetimes(datetime(1, 1, 2), datetime(8999, 12, 31), timezones=st.just(UTC)),
}


UUID_TYPE = "uuid"
SEND[UUID_TYPE] = lambda value: UUID(value).bytes
VALUES[UUID_TYPE] = st.uuids().map(str)


def send_field(value, type):
    if value is None:
        return struct.pack(">i", -1)
    data = SEND[type](value)
    return struct.pack(">i", len(data)) + data


def copied(types, rows):
    messages = [struct.pack(">h", len(row)) + b"".join(map(send_field, row, types)) for row in rows]
    return CopiedRows(bytearray(b"".join(messages)), [len(message) for message in messages])


@st.composite
def tables(draw):
    types = draw(st.lists(st.sampled_from(list(SEND)), min_size=1, max_size=8))
    row = st.tuples(*(st.none() | VALUES[type] for type in types))
    return types, draw(st.lists(row, min_size=1, max_size=20))


@given(tables())
def test_rows_of_any_columns_come_back_as_they_were(table):
    types, rows = table
    uuids = {f"column{n}" for n, type in enumerate(types) if type == UUID_TYPE}
    schema = pa.schema(
        [(f"column{n}", pa.string() if type == UUID_TYPE else type) for n, type in enumerate(types)]
    )

    batch = decode(copied(types, rows), schema, uuids)

    batch.validate(full=True)
    assert batch.schema == schema
    assert [tuple(row.values()) for row in batch.to_pylist()] == rows


def test_a_column_of_another_width_is_refused_and_not_misread():
    rows = copied([pa.int64()], [(1,), (None,)])

    with pytest.raises(ValueError, match="the server sent 8 bytes for a value of type int32"):
        decode(rows, pa.schema([("n", pa.int32())]))
    with pytest.raises(ValueError, match="the server sent 8 bytes for a uuid"):
        decode(rows, pa.schema([("n", pa.string())]), {"n"})


@pytest.mark.parametrize("names", ["a", "abc"])
def test_fewer_or_more_columns_than_were_sent_are_refused(names):
    rows = copied([pa.int32(), pa.int32()], [(1, 2), (3, 4)])

    with pytest.raises(ValueError, match=f"the server sent 2 columns, where {len(names)} were asked for"):
        decode(rows, pa.schema([(name, pa.int32()) for name in names]))
