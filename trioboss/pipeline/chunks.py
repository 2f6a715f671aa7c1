"""Reads pieces in chunks, each a short statement in a transaction of its own.

A chunk is in memory before Spark gets to see the first row of it: however long Spark takes, no snapshot is held, and
vacuum goes on. A statement that reaches the timeout is cut in two. At most `concurrency` statements run at a time, of
all readers of the database together: each takes one of so many locks, and tries again later if none is free.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import adbc_driver_postgresql.dbapi as adbc
import attrs
import pyarrow as pa

from trioboss.errors import DatabaseUnavailable
from trioboss.pipeline.connecting import arrow_connection
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Blocks, Piece, Xids
from trioboss.pipeline.tables import Table

__all__ = ["ChunkReader", "Query", "open_chunks"]

_BATCH_BYTES = {"adbc.postgresql.batch_size_hint_bytes": str(16 << 20)}
_WAIT_AT_MOST = 0.2  # seconds between two looks for a free lock
_TIMED_OUT = "57014"


@attrs.frozen
class Query:
    """What to read: columns, conditions, and the transactions in question."""

    table: Table
    columns: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    first_xid: int | None = None
    end_xid: int | None = None

    def text(self, options: ReadOptions, relation: str, *conditions: str, order: str = "") -> str:
        """The statement that reads the rows of one table for which all conditions hold."""
        selected = ", ".join(self.table.get(name).selected for name in self.columns)
        everything = [*conditions, *self.conditions, *self._sealed()]
        where = f" WHERE {' AND '.join(everything)}" if everything else ""
        return f'SELECT {selected} FROM ONLY "{options.schema}"."{relation}"{where}{order}'

    def _sealed(self) -> Iterator[str]:
        if self.first_xid:
            yield f"xid >= '{self.first_xid}'::xid8"
        if self.end_xid is not None:
            yield f"xid < '{self.end_xid}'::xid8"


@attrs.define
class ChunkReader:
    """A connection that reads chunks."""

    _connection: adbc.Connection
    _options: ReadOptions
    _query: Query
    _schema: pa.Schema
    _between: Callable[[], None]
    """Called now and then, while no transaction is open."""

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""
        if isinstance(piece, Blocks):
            return self._read_blocks(piece)
        return self._read_xids(piece)

    def _read_blocks(self, piece: Blocks, *conditions: str) -> Iterator[pa.RecordBatch]:
        step = max(1, int(self._options.chunk_rows / max(piece.rows_a_block, 1.0)))
        first = piece.first
        while first < piece.end:
            upto = min(piece.end, first + step)
            blocks = (f"ctid >= '({first},0)'", f"ctid < '({upto},0)'")
            text = self._query.text(self._options, piece.relation, *blocks, *conditions)
            batches = self._fetch(text, piece.relation, piece.file)
            if batches is None:
                if upto - first == 1:
                    raise DatabaseUnavailable(f"statementTimeout: one block of {piece.relation} takes longer")
                step = (upto - first) // 2
                continue
            yield from batches
            first = upto

    def _read_xids(self, piece: Xids) -> Iterator[pa.RecordBatch]:
        """By transaction, cut where a chunk is full; a transaction larger than a chunk is read by its blocks."""
        first = piece.first
        rows = self._options.chunk_rows
        while first < piece.end:
            cut = self._find_cut(piece, first, rows)
            if cut == first and piece.by_block:
                yield from self._read_large(piece, first)
                first += 1
                continue
            upto = piece.end if cut is None else max(cut, first + 1)
            xids = (f"xid >= '{first}'::xid8", f"xid < '{upto}'::xid8")
            batches = self._fetch(
                self._query.text(self._options, piece.relation, *xids), piece.relation, None
            )
            if batches is None:
                if rows == 1:
                    raise DatabaseUnavailable(f"statementTimeout: transaction {first} takes longer")
                rows = max(1, rows // 2)
                continue
            yield from batches
            first = upto

    def _read_large(self, piece: Xids, xid: int) -> Iterator[pa.RecordBatch]:
        only = f"xid = '{xid}'::xid8"
        text = (
            "SELECT (min(ctid)::text::point)[0]::bigint AS low, (max(ctid)::text::point)[0]::bigint AS high"
            f' FROM ONLY "{self._options.schema}"."{piece.relation}" WHERE {only}'
        )
        with self._turn(piece.relation, piece.file):
            row = self._run(text).to_pylist()[0]
        if row["low"] is not None:
            blocks = Blocks(piece.relation, piece.file, row["low"], row["high"] + 1, piece.rows_a_block)
            yield from self._read_blocks(blocks, only)

    def _find_cut(self, piece: Xids, first: int, rows: int) -> int | None:
        """The transaction of the first row that is too many."""
        text = (
            f'SELECT xid::text::bigint AS xid FROM ONLY "{self._options.schema}"."{piece.relation}"'
            f" WHERE xid >= '{first}'::xid8 AND xid < '{piece.end}'::xid8 ORDER BY xid OFFSET {rows} LIMIT 1"
        )
        with self._turn(piece.relation, None):
            found = self._run(text).column(0).to_pylist()
        return found[0] if found else None

    def _fetch(self, text: str, relation: str, file: int | None) -> list[pa.RecordBatch] | None:
        """A chunk, or None if it took too long."""
        self._between()
        try:
            with self._turn(relation, file):
                table = self._run(text)
        except adbc.Error as error:
            if error.sqlstate == _TIMED_OUT:
                return None
            raise
        return [
            pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
            for batch in table.to_batches()
            if batch.num_rows
        ]

    def _run(self, text: str) -> pa.Table:
        with self._connection.cursor(adbc_stmt_kwargs=_BATCH_BYTES) as cursor:
            cursor.execute(text)
            return cursor.fetch_arrow_table()

    @contextmanager
    def _turn(self, relation: str, file: int | None) -> Iterator[None]:
        """A transaction with a time limit, begun when it is our turn, in which the table is the one we planned for."""
        pause = 0.002
        while not self._begin(relation, file):
            self._connection.rollback()
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, _WAIT_AT_MOST)
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    def _begin(self, relation: str, file: int | None) -> bool:
        options = self._options
        text = (
            f"SELECT set_config('statement_timeout', '{round(options.timeout * 1000)}', true),"
            " set_config('TimeZone', 'UTC', true), set_config('max_parallel_workers_per_gather', '0', true),"
            f' pg_relation_filenode(to_regclass(\'"{options.schema}"."{relation}"\'))::bigint AS file,'
            f" (SELECT s FROM generate_series(1, {options.concurrency}) s WHERE pg_try_advisory_xact_lock("
            f"hashtextextended('{options.schema} reader ' || s, 0)) LIMIT 1) AS turn"
        )
        row: dict[str, Any] = self._run(text).to_pylist()[0]
        if row["file"] is None or file not in (None, row["file"]):
            self._connection.rollback()
            raise DatabaseUnavailable(
                f"{relation} was dropped or rewritten while it was being read: read again"
            )
        return row["turn"] is not None


@contextmanager
def open_chunks(
    options: ReadOptions, query: Query, schema: pa.Schema, between: Callable[[], None] = lambda: None
) -> Iterator[ChunkReader]:
    """A connection for the length of a block."""
    with arrow_connection(options.dsn, f"read {query.table.name}") as connection:
        yield ChunkReader(connection, options, query, schema, between)
