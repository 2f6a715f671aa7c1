"""Is COPY with our own decoding faster than ADBC, for the same statements on the same table?

Both read all columns of the history in chunks, as tasks do, on one connection, without Spark, and make the same Arrow
columns. `trioboss/pipeline/decoding.py` stays only as long as it is.
"""

import resource
from collections.abc import Callable, Iterator
from contextlib import closing

import adbc_driver_postgresql.dbapi as adbc
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from benchmarks.harness.percentiles import median
from benchmarks.harness.progress import log
from benchmarks.harness.tables import Spread, Table
from benchmarks.pipelines.context import PipelineContext, timed
from benchmarks.pipelines.reading import fill_history
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import open_database
from trioboss.pipeline.decoding import decode
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import list_day_tables
from trioboss.pipeline.query import Query
from trioboss.postgres.wire.copy_out import copy_out

__all__ = ["measure_decoding"]

_TABLE = TABLES["archive"]
_SCHEMA = to_arrow_schema(_TABLE.schema(), timezone="UTC")
_UUIDS = {column.name for column in _TABLE.columns if column.kind == "uuid"}
_BATCH_BYTES = 4 << 20  # as `trioboss.pipeline.chunks`


def measure_decoding(context: PipelineContext) -> Table:
    """Read the whole history by each, in turns."""
    template = context.server.template(
        f"{context.rows:,} archived", fill_history(context.rows), context.server.migrated()
    )
    table = Table(
        f"Decoding {context.rows:,} archived jobs on one connection",
        ("by", "s", "CPU of the reader, s", "rows/s", "times as fast as ADBC"),
    )
    with context.server.database(template.name) as dsn:
        ways: dict[str, Callable[[str, list[str]], Iterator[pa.RecordBatch]]] = {
            "COPY": _by_copy,
            "ADBC": _by_adbc,
        }
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        texts = {name: _statements(dsn, for_adbc=name == "ADBC") for name in ways}
        for number in range(context.repeats + 1):
            for name, read in ways.items():
                measured = _measure(context, lambda read=read, name=name: read(dsn, texts[name]))  # type: ignore[misc]
                log(f"{number}/{context.repeats} decode by {name}: {measured[0]:.2f} s")
                if number:  # the first round is the warm-up
                    found[name].append(measured)
    theirs = median(took for took, _ in found["ADBC"])
    for name, measured_all in found.items():
        took, reader = (Spread.of(each) for each in zip(*measured_all, strict=True))
        table.add(name, took, reader, context.rows / took.median, theirs / took.median)
    return table


def _measure(context: PipelineContext, read: Callable[[], Iterator[pa.RecordBatch]]) -> tuple[float, float]:
    """Return the seconds, and the seconds of CPU of this process."""

    def consume() -> None:
        rows = sum(batch.num_rows for batch in read())
        if rows != context.rows:
            raise AssertionError(f"{rows} of {context.rows} rows were read")

    before = _cpu()
    took = timed(consume)
    return took, _cpu() - before


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _statements(dsn: str, *, for_adbc: bool) -> list[str]:
    """The statements of one task that reads everything, chunk by chunk."""
    options = ReadOptions.parse({"dsn": dsn, "table": _TABLE.name})
    query = Query.of(options, _TABLE, tuple(_TABLE.schema().names))
    with open_database(dsn) as database:
        tables = list_day_tables(database, _TABLE.name, options.days)
    texts = []
    for day in tables:
        width = max(1, int(options.chunk_rows / max(day.rows_per_block, 1.0)))
        for first in range(0, day.blocks, width):
            where = (f"t.ctid >= '({first},0)'", f"t.ctid < '({first + width},0)'")
            texts.append(query.text(day.relation, *where))
    return [_for_adbc(text) for text in texts] if for_adbc else texts


def _for_adbc(text: str) -> str:
    """ADBC supports neither the types that trioboss has defined nor transaction ids."""
    casts = {"enum": "::text", "uuid": "::text", "xid": "::text::bigint"}
    columns = ", ".join(f'"{column.name}"{casts.get(column.kind, "")}' for column in _TABLE.columns)
    return f"SELECT {columns} FROM ({text}) r"


def _by_copy(dsn: str, texts: list[str]) -> Iterator[pa.RecordBatch]:
    with open_database(dsn) as database:
        for text in texts:
            for chunk in copy_out(database.connection, text, _BATCH_BYTES):
                yield decode(chunk, _SCHEMA, _UUIDS)


def _by_adbc(dsn: str, texts: list[str]) -> Iterator[pa.RecordBatch]:
    with closing(adbc.connect(dsn)) as connection, closing(connection.cursor()) as cursor:
        for text in texts:
            cursor.execute(text)
            for batch in cursor.fetch_record_batch():
                yield batch.rename_columns(_SCHEMA.names).cast(_SCHEMA)
