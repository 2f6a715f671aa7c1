"""A task of a load copies its rows into a stage, a table of its own, which no worker reads.

A task that fails, or runs twice, leaves a stage that is never released.
"""

from collections.abc import Iterator
from uuid import uuid4

import adbc_driver_postgresql.dbapi as adbc
import attrs
import pyarrow as pa

from trioboss.errors import DatabaseUnavailable
from trioboss.pipeline.arrow_connection import arrow_connection
from trioboss.pipeline.database import open_database
from trioboss.pipeline.ids import Ids
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.rows import Problems, Shape, judge_texts, reject, to_stage

__all__ = ["Staged", "stage_rows"]

_WORTH_A_COPY = 20_000  # rows


@attrs.frozen
class Staged:
    """A stage that is complete."""

    table: str
    rows: int


def stage_rows(options: WriteOptions, shape: Shape, batches: Iterator[pa.RecordBatch], ids: Ids) -> Staged:
    """Copy all rows into a new stage."""
    table = f"stage_{uuid4().hex}"
    with open_database(options.dsn, options.schema) as database:
        database.run("add_stage", load=options.load, table_name=table)
    rows = 0
    with arrow_connection(options.dsn) as connection:
        copier = _Copier(connection, options.schema, table)
        for batch in _merge(batches):
            copier.copy(to_stage(batch, shape, rows, ids), batch)
            rows += batch.num_rows
    return Staged(table, rows)


def _merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Small batches joined to larger ones."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(b.num_rows for b in held) >= _WORTH_A_COPY:
            yield _join(held)
            held = []
    if held:
        yield _join(held)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


@attrs.frozen
class _Copier:
    _connection: adbc.Connection
    _schema: str
    _table: str

    def copy(self, stage: pa.RecordBatch, batch: pa.RecordBatch) -> None:
        """Copy rows. Those that the database refuses are found and marked as bad, and the others are copied."""
        if self._try(stage) is None:
            return
        stage = reject(stage, batch, judge_texts(batch))
        if (problem := self._try(stage)) is not None:
            self._halve(stage, batch, problem)

    def _halve(self, stage: pa.RecordBatch, batch: pa.RecordBatch, problem: str) -> None:
        if stage.num_rows == 1:
            found: Problems = {0: f"data: {problem}"}
            if (still := self._try(reject(stage, batch, found))) is not None:
                raise DatabaseUnavailable(f"cannot stage a row: {still}")
            return
        middle = stage.num_rows // 2
        for first, length in ((0, middle), (middle, stage.num_rows - middle)):
            half = stage.slice(first, length)
            if (problem_of_half := self._try(half)) is not None:
                self._halve(half, batch.slice(first, length), problem_of_half)

    def _try(self, stage: pa.RecordBatch) -> str | None:
        """Copy all rows or none; why none."""
        if not stage.num_rows:
            return None
        try:
            with self._connection.cursor() as cursor:
                cursor.adbc_ingest(self._table, stage, mode="append", db_schema_name=self._schema)
            self._connection.commit()
        except adbc.Error as error:
            self._connection.rollback()
            if not (error.sqlstate or "").startswith(("22", "54")):  # a bad value, or too much of it
                raise
            return _first_line(error)
        return None


def _first_line(error: Exception) -> str:
    text = str(error)
    return text.partition("ERROR:")[2].strip().partition("\n")[0] or text.partition("\n")[0]
