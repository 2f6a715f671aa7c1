"""Reads pieces in chunks, each a short statement in a transaction of its own.

A chunk is in memory before Spark gets to see the first row of it: however long Spark takes, no snapshot is held, and
vacuum goes on. A statement that reaches the timeout is cut in two. At most `concurrency` statements run at a time, of
all readers of the database together: each takes one of so many locks, and tries again later if none is free.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from trioboss.errors import DatabaseUnavailable
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Blocks, Piece, Xids
from trioboss.pipeline.tables import Table
from trioboss.postgres.errors import is_query_canceled
from trioboss.postgres.wire.copy_out import CopiedRows, copy_out

__all__ = ["Chunk", "ChunkReader", "Query", "open_chunks"]

Chunk = list[CopiedRows]

_BATCH_BYTES = 4 << 20  # as much as a core keeps at hand: rows are gone through once for each column
_WAIT_AT_MOST = 0.2  # seconds between two looks for a free lock


@attrs.frozen
class Query:
    """What to read: columns, conditions, and the transactions in question."""

    table: Table
    columns: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    first_xid: int | None = None
    end_xid: int | None = None

    def text(self, options: ReadOptions, relation: str, *conditions: str) -> str:
        """The statement that reads the rows of one table for which all conditions hold."""
        selected = ", ".join(self.table.get(name).selected for name in self.columns)
        everything = [*conditions, *self.conditions, *self._sealed()]
        where = f" WHERE {' AND '.join(everything)}" if everything else ""
        return f'SELECT {selected} FROM ONLY "{options.schema}"."{relation}"{where}'

    def _sealed(self) -> Iterator[str]:
        if self.first_xid:
            yield f"xid >= '{self.first_xid}'::xid8"
        if self.end_xid is not None:
            yield f"xid < '{self.end_xid}'::xid8"


@attrs.define
class ChunkReader:
    """A connection that reads chunks."""

    _database: Database
    _options: ReadOptions
    _query: Query
    _between: Callable[[], None]
    """Called now and then, while no transaction is open."""

    def read(self, piece: Piece) -> Iterator[Chunk]:
        """The rows of a piece."""
        if isinstance(piece, Blocks):
            return self._read_blocks(piece)
        return self._read_xids(piece)

    def _read_blocks(self, piece: Blocks, *conditions: str) -> Iterator[Chunk]:
        step = max(1, int(self._options.chunk_rows / max(piece.rows_a_block, 1.0)))
        first = piece.first
        while first < piece.end:
            upto = min(piece.end, first + step)
            blocks = (f"ctid >= '({first},0)'", f"ctid < '({upto},0)'")
            text = self._query.text(self._options, piece.relation, *blocks, *conditions)
            chunk = self._fetch(text, piece.relation, piece.file)
            if chunk is None:
                if upto - first == 1:
                    raise DatabaseUnavailable(f"statementTimeout: one block of {piece.relation} takes longer")
                step = (upto - first) // 2
                continue
            yield chunk
            first = upto

    def _read_xids(self, piece: Xids) -> Iterator[Chunk]:
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
            text = self._query.text(self._options, piece.relation, *xids)
            chunk = self._fetch(text, piece.relation, None)
            if chunk is None:
                if rows == 1:
                    raise DatabaseUnavailable(f"statementTimeout: transaction {first} takes longer")
                rows = max(1, rows // 2)
                continue
            yield chunk
            first = upto

    def _read_large(self, piece: Xids, xid: int) -> Iterator[Chunk]:
        with self._in_time(f"transaction {xid}"), self._turn(piece.relation, piece.file):
            ((low, high),) = self._database.run("find_blocks", of={"archive": piece.relation}, xid=xid)
        if low is not None:
            blocks = Blocks(piece.relation, piece.file, low, high + 1, piece.rows_a_block)
            yield from self._read_blocks(blocks, f"xid = '{xid}'::xid8")

    def _find_cut(self, piece: Xids, first: int, rows: int) -> int | None:
        """The transaction of the first row that is too many."""
        history = {"archive": piece.relation}
        with self._in_time("the next transactions"), self._turn(piece.relation, None):
            found = self._database.run("find_cut", of=history, first=first, sealed=piece.end, limit=rows)
        return found[0][0] if found else None

    def _fetch(self, text: str, relation: str, file: int | None) -> Chunk | None:
        """A chunk, or None if it took too long."""
        self._between()
        try:
            with self._turn(relation, file):
                return copy_out(self._database.connection, text, _BATCH_BYTES)
        except Exception as error:
            if not is_query_canceled(error):
                raise
            return None

    @contextmanager
    def _in_time(self, what: str) -> Iterator[None]:
        """A statement that cannot be cut in two."""
        try:
            yield
        except Exception as error:
            if not is_query_canceled(error):
                raise
            raise DatabaseUnavailable(
                f"statementTimeout: to look for {what} takes longer: give it more time"
            ) from error

    @contextmanager
    def _turn(self, relation: str, file: int | None) -> Iterator[None]:
        """A transaction with a time limit, begun when it is our turn, in which the table is the one we planned for."""
        pause = 0.002
        while True:
            with self._database.transaction(writes=False):
                if self._take_turn(relation, file):
                    yield
                    return
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, _WAIT_AT_MOST)

    def _take_turn(self, relation: str, planned: int | None) -> bool:
        options = self._options
        timeout = round(options.timeout * 1000)
        ((*_, file, turn),) = self._database.run(
            "take_reading_turn", timeout=timeout, relation=relation, concurrency=options.concurrency
        )
        if file is None or planned not in (None, file):
            raise DatabaseUnavailable(
                f"{relation} was dropped or rewritten while it was being read: read again"
            )
        return turn is not None


@contextmanager
def open_chunks(
    options: ReadOptions, query: Query, between: Callable[[], None] = lambda: None
) -> Iterator[ChunkReader]:
    """A connection for the length of a block."""
    with open_database(options.dsn, options.schema) as database:
        yield ChunkReader(database, options, query, between)
