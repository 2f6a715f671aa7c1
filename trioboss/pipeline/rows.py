"""Turns the rows of a DataFrame into rows of a stage, a batch of Arrow at a time.

A row that cannot be a job keeps its position, with its problem and its original values. JSON text is left to the
database to judge, because it reads it anyway; see `judge_texts` for when it does not like what it reads.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import IntegralType, StringType, StructType, TimestampType

from trioboss.errors import UsageError
from trioboss.model.check import EARLIEST, LATEST, check_key, check_priority, check_start, check_uuid
from trioboss.model.job import NewJob, SendOptions
from trioboss.model.payload import MAX_BYTES, encode
from trioboss.pipeline.ids import Ids
from trioboss.pipeline.json_values import as_came, to_json_value
from trioboss.store.sending import overrides

__all__ = ["JOB_COLUMNS", "STAGE", "Problems", "Shape", "judge_texts", "reject", "to_stage"]

STAGE = pa.schema(
    [
        ("position", pa.int64()),
        ("id", pa.binary(16)),
        ("data", pa.binary()),
        ("priority", pa.int32()),
        ("start_after", pa.timestamp("us", "UTC")),
        ("singleton_key", pa.string()),
        ("options", pa.binary()),
        ("problem", pa.string()),
    ]
)
"""The columns of a stage, each in the bytes that COPY sends."""

_OWN = ("id", "data", "priority", "start_after", "singleton_key")
_NOT_IN_BULK = {"singleton_seconds", "singleton_next_slot"}
_OPTIONS = frozenset(SendOptions.__annotations__) - set(_OWN) - _NOT_IN_BULK
JOB_COLUMNS = (*_OWN, *sorted(_OPTIONS))
"""The names that mean something; other columns are the payload."""
_JSONB = pa.scalar(b"\x01")  # the version with which its binary form begins
_KEY_BYTES = 1000

Problems = dict[int, str]


@attrs.frozen
class Shape:
    """Which columns of a DataFrame mean what."""

    payload: tuple[str, ...] | None
    """The columns that become the fields of `data`; None: there is a column `data`."""
    options: tuple[str, ...]
    needs_key: bool
    has_ids: bool

    @classmethod
    def of(cls, schema: StructType, needs_key: bool) -> "Shape":
        """Read the columns of a DataFrame, or raise UsageError."""
        names = schema.fieldNames()
        others = tuple(name for name in names if name not in _OWN and name not in _OPTIONS)
        for name in _NOT_IN_BULK & set(names):
            raise UsageError(f"{name}: throttled jobs cannot be loaded in bulk: send them")
        if "data" in names and others:
            raise UsageError(f"{others[0]}: no such option of a job, and `data` has its own column")
        for name, types in _TYPES.items():
            if name in names and not isinstance(schema[name].dataType, types):
                raise UsageError(f"{name}: {schema[name].dataType.simpleString()} is of the wrong type")
        options = tuple(name for name in names if name in _OPTIONS)
        return cls(None if "data" in names else others, options, needs_key, "id" in names)


_TYPES: dict[str, tuple[type, ...]] = {
    "id": (StringType,),
    "priority": (IntegralType, StringType),
    "start_after": (TimestampType, StringType),
    "singleton_key": (StringType,),
}


def to_stage(batch: pa.RecordBatch, shape: Shape, first: int, ids: Ids) -> pa.RecordBatch:
    """The rows of a batch as rows of a stage, counted from ``first`` on."""
    problems: Problems = {}
    columns = [
        pa.array(range(first, first + batch.num_rows), pa.int64()),
        _ids(batch, ids.make(first, batch.num_rows), problems),
        _data(batch, shape, problems),
        _parsed(batch, "priority", pa.int32(), _parse_priority, problems),
        _parsed(batch, "start_after", pa.timestamp("us", "UTC"), _parse_start, problems),
        _keys(batch, shape, problems),
        _options(batch, shape, problems),
        pa.nulls(batch.num_rows, pa.string()),
    ]
    return reject(pa.RecordBatch.from_arrays(columns, schema=STAGE), batch, problems)


def reject(stage: pa.RecordBatch, batch: pa.RecordBatch, problems: Problems) -> pa.RecordBatch:
    """The stage with some rows marked as bad; they keep nothing but how they came."""
    if not problems:
        return stage
    indices = sorted(problems)
    mask = pa.array([index in problems for index in range(batch.num_rows)])
    came = [b"\x01" + as_came(row).encode() for row in batch.take(pa.array(indices)).to_pylist()]
    columns = dict(zip(STAGE.names, stage.columns, strict=True))
    for name in ("priority", "start_after", "singleton_key", "options"):
        columns[name] = pc.if_else(mask, pa.scalar(None, STAGE.field(name).type), columns[name])
    columns["data"] = pc.replace_with_mask(columns["data"], mask, pa.array(came, pa.binary()))
    texts = pa.array([problems[index] for index in indices], pa.string())
    columns["problem"] = pc.replace_with_mask(columns["problem"], mask, texts)
    return pa.RecordBatch.from_arrays([columns[name] for name in STAGE.names], schema=STAGE)


def judge_texts(batch: pa.RecordBatch) -> Problems:
    """The rows whose `data` is no JSON, and why: for when the database refused one of them."""
    problems: Problems = {}
    if "data" in batch.schema.names and pa.types.is_string(batch.column("data").type):
        for index, text in enumerate(batch.column("data").to_pylist()):
            try:
                json.loads(text or "0", parse_constant=_refuse)
            except RecursionError:
                problems[index] = "data: nested too deep"
            except ValueError as error:
                problems[index] = f"data: not JSON: {error}"
    return problems


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


# -- one column each


def _ids(batch: pa.RecordBatch, made: list[bytes], problems: Problems) -> pa.Array:
    """The ids that were given; else those that were made."""
    if "id" in batch.schema.names:
        given = batch.column("id").to_pylist()
        made = [
            own if text is None else _parse("id", text, check_uuid, index, problems, own)
            for index, (text, own) in enumerate(zip(given, made, strict=True))
        ]
    raw = pa.py_buffer(b"".join(made))
    return pa.Array.from_buffers(pa.binary(16), batch.num_rows, [None, raw])


def _parse(
    name: str, value: Any, check: Callable[[str, Any], Any], index: int, problems: Problems, otherwise: Any
) -> Any:
    try:
        checked = check(name, value)
    except UsageError as error:
        problems.setdefault(index, str(error))
        return otherwise
    return checked.bytes if check is check_uuid else checked


def _data(batch: pa.RecordBatch, shape: Shape, problems: Problems) -> pa.Array:
    if shape.payload is not None:
        rows: Iterable[Any] = batch.select(list(shape.payload)).to_pylist(maps_as_pydicts="strict")
        return _encoded(rows, problems)
    given = batch.column("data")
    if not pa.types.is_string(given.type):
        return _encoded(given.to_pylist(maps_as_pydicts="strict"), problems)
    too_long = pc.greater(pc.binary_length(given), MAX_BYTES)
    for index in _indices(too_long):
        problems[index] = f"data: {pc.binary_length(given[index])} bytes of JSON, {MAX_BYTES} are allowed"
    return pc.binary_join_element_wise(_JSONB, given.cast(pa.binary()), pa.scalar(b""))


def _encoded(values: Iterable[Any], problems: Problems) -> pa.Array:
    texts: list[bytes | None] = []
    for index, value in enumerate(values):
        try:
            texts.append(None if value is None else b"\x01" + encode(to_json_value(value)).encode())
        except UsageError as error:
            problems.setdefault(index, str(error))
            texts.append(None)
    return pa.array(texts, pa.binary())


def _parsed(
    batch: pa.RecordBatch, name: str, type: pa.DataType, check: Callable[[str, Any], Any], problems: Problems
) -> pa.Array:
    """A column as it came if it has the type, else value by value."""
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, type)
    given = batch.column(name)
    if given.type == type:
        for index in _indices(_is_no_instant(given)):
            _parse(name, given[index].as_py(), check, index, problems, None)
        return given
    values = [
        None if value is None else _parse(name, value, check, index, problems, None)
        for index, value in enumerate(given.to_pylist())
    ]
    return pa.array(values, type)


def _is_no_instant(given: pa.Array) -> pa.Array:
    """Which of them a job cannot have: data warehouses write the year 9999 where there is no end."""
    if not pa.types.is_timestamp(given.type):
        return pa.nulls(len(given), pa.bool_())
    first, end = (pa.scalar(bound, given.type) for bound in (EARLIEST, LATEST))
    return pc.or_(pc.less(given, first), pc.greater_equal(given, end))


def _parse_priority(name: str, value: Any) -> int:
    text = value.strip() if isinstance(value, str) else value
    if isinstance(text, str) and text.removeprefix("-").isdecimal():
        text = int(text)
    return check_priority(name, text)


def _parse_start(name: str, value: Any) -> Any:
    start = check_start(name, value)
    if isinstance(start, float):
        raise UsageError(f"{name}: {value!r} is not an instant")
    return start


def _keys(batch: pa.RecordBatch, shape: Shape, problems: Problems) -> pa.Array:
    if "singleton_key" in batch.schema.names:
        keys = batch.column("singleton_key")
    else:
        keys = pa.nulls(batch.num_rows, pa.string())
    length = pc.binary_length(keys)
    odd = pc.or_(pc.or_(pc.equal(length, 0), pc.greater(length, _KEY_BYTES)), pc.match_substring(keys, "\0"))
    for index in _indices(odd):
        _parse("singleton_key", keys[index].as_py(), check_key, index, problems, None)
    if shape.needs_key:
        for index in _indices(pc.is_null(keys)):
            problems.setdefault(index, "singleton_key: key_strict_fifo queues require one")
    return keys


def _options(batch: pa.RecordBatch, shape: Shape, problems: Problems) -> pa.Array:
    if not shape.options:
        return pa.nulls(batch.num_rows, pa.binary())
    texts: list[bytes | None] = []
    columns = [batch.column(name).to_pylist() for name in shape.options]
    for index, values in enumerate(zip(*columns, strict=True)):
        text, problem = _encode_options(shape.options, values)
        texts.append(text)
        if problem is not None:
            problems.setdefault(index, problem)
    return pa.array(texts, pa.binary())


@lru_cache(4096)  # of a million rows, most have the same options
def _encode_options(names: Sequence[str], values: Sequence[Any]) -> tuple[bytes | None, str | None]:
    given = {name: _read(name, value) for name, value in zip(names, values, strict=True) if value is not None}
    try:
        options = overrides(NewJob.from_options(None, given))
    except UsageError as error:
        return None, str(error)
    return (None if options is None else b"\x01" + options.encode()), None


def _read(name: str, value: Any) -> Any:
    """The value of a text in a file, for options that are not text."""
    if not isinstance(value, str) or name == "dead_letter":
        return value
    try:
        return json.loads(value.lower())
    except ValueError:
        return value


def _indices(mask: pa.Array) -> list[int]:
    indices: list[int] = pc.indices_nonzero(pc.fill_null(mask, False)).to_pylist()
    return indices
