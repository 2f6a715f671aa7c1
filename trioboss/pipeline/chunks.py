"""Reads pieces in chunks, each by a short statement in a transaction of its own.

A chunk is in memory before Spark sees its first row. So no snapshot is held while Spark works, and vacuum goes on. A
statement that reaches the timeout, or brings more bytes than a chunk may have, is ended, and its range is cut in two.
At most `concurrency` statements run at a time, of all readers of the database together: each takes one of so many
locks (a read permit), and tries again later if none is free.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from trioboss.errors import DatabaseUnavailable
from trioboss.pipeline.database import Database
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import BlockRange, Piece, XidRange
from trioboss.pipeline.query import Query
from trioboss.postgres.errors import is_query_canceled
from trioboss.postgres.wire.copy_out import CopiedRows, copy_out

__all__ = ["Chunk", "ChunkReader"]

Chunk = list[CopiedRows]

_BATCH_BYTES = 4 << 20  # about what a core's cache holds: decoding goes over the rows once for each column
_LONGEST_PAUSE = 0.2  # seconds between two tries to get a permit

# A position in a table is a number: the block, then 16 bits for the row in it.
_BLOCK = 1 << 16
_ROWS_IN_BLOCK = 2048  # more than the largest block that Postgres can be built with has room for


@attrs.define
class ChunkReader:
    """Reads chunks on one connection."""

    _database: Database
    _options: ReadOptions
    _query: Query
    _between: Callable[[], None] = lambda: None
    """Called before each statement, when no transaction is open."""
    _block_bytes: float = 0.0
    """How many bytes the rows of a block had, on average, in the last chunk; 0: not known."""

    def read(self, piece: Piece) -> Iterator[Chunk]:
        """The rows of a piece."""
        return self._read_blocks(piece) if isinstance(piece, BlockRange) else self._read_xids(piece)

    def read_whole(self) -> Chunk:
        """All rows of a table by one statement. For tables whose rows change: two statements could see two versions."""
        self._between()
        with self._in_time(f"all of {self._query.table.name}"), self._permit(self._query.table.name, None):
            return copy_out(self._database.connection, self._query.text(), _BATCH_BYTES)

    # -- by block

    def _read_blocks(self, piece: BlockRange, *conditions: str) -> Iterator[Chunk]:
        position, end = piece.first * _BLOCK, piece.end * _BLOCK
        width = self._first_width(piece)
        while position < end:
            upto = min(end, position + width)
            chunk = self._fetch(
                self._query.text(piece.relation, *_between_positions(position, upto), *conditions),
                piece,
                limited=width > 1,
            )
            if chunk is None:
                if width == 1:
                    raise DatabaseUnavailable(f"statementTimeout: one row of {piece.relation} takes longer")
                width = _halve(min(width, upto - position))
                continue
            yield chunk
            position = upto
            if width >= _BLOCK:
                self._block_bytes = sum(len(rows.data) for rows in chunk) / max(1, width // _BLOCK)
                width = self._first_width(piece)
            elif position % _BLOCK >= _ROWS_IN_BLOCK:
                position, width = (position // _BLOCK + 1) * _BLOCK, _BLOCK

    def _first_width(self, piece: Piece) -> int:
        """How many blocks have about as many rows and bytes as a chunk may have."""
        blocks = self._options.chunk_rows / max(piece.rows_per_block, 1.0)
        if self._block_bytes:
            blocks = min(blocks, self._options.chunk_bytes / 2 / self._block_bytes)
        return max(1, int(blocks)) * _BLOCK

    # -- by transaction

    def _read_xids(self, piece: XidRange) -> Iterator[Chunk]:
        """Chunks end between transactions; a transaction larger than a chunk is read by its blocks."""
        first, rows = piece.first, self._options.chunk_rows
        while first < piece.end:
            cut = self._find_cut(piece, first, rows)
            if cut == first:
                yield from self._read_large(piece, first)
                first += 1
                continue
            upto = piece.end if cut is None else cut
            xids = (f"t.xid >= '{first}'::xid8", f"t.xid < '{upto}'::xid8")
            chunk = self._fetch(self._query.text(piece.relation, *xids), piece, limited=True)
            if chunk is not None:
                yield chunk
                first = upto
            elif rows > 1:
                rows //= 2
            else:
                yield from self._read_large(piece, first)
                first, rows = first + 1, self._options.chunk_rows

    def _read_large(self, piece: XidRange, xid: int) -> Iterator[Chunk]:
        with self._in_time(f"the rows of transaction {xid}"), self._permit(piece.relation, piece.file):
            ((low, high),) = self._database.run("find_blocks", of={"archive": piece.relation}, xid=xid)
        if low is not None:
            blocks = BlockRange(piece.relation, piece.file, low, high + 1, piece.rows_per_block)
            yield from self._read_blocks(blocks, f"t.xid = '{xid}'::xid8")

    def _find_cut(self, piece: XidRange, first: int, rows: int) -> int | None:
        """The transaction of the first row that is too many."""
        history = {"archive": piece.relation}
        with self._in_time("the next transactions"), self._permit(piece.relation, piece.file):
            found = self._database.run("find_cut", of=history, first=first, sealed=piece.end, limit=rows)
        return found[0][0] if found else None

    # -- statements

    def _fetch(self, text: str, piece: Piece, *, limited: bool) -> Chunk | None:
        """A chunk; None if it took too long or, where it is ``limited``, brought too many bytes."""
        self._between()
        limit = self._options.chunk_bytes if limited else None
        try:
            with self._permit(piece.relation, piece.file):
                return copy_out(self._database.connection, text, _BATCH_BYTES, limit)
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
                f"statementTimeout: {self._options.timeout:g} s are not enough to read {what}: raise it"
            ) from error

    @contextmanager
    def _permit(self, relation: str, file: int | None) -> Iterator[None]:
        """A transaction with a time limit, once there is a permit, in which the table still has the planned file."""
        pause = 0.002
        while True:
            with self._database.transaction(writes=False):
                if self._take_permit(relation, file):
                    yield
                    return
            # There is no notification for a free lock. The pauses differ, so that readers do not all try at once.
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _take_permit(self, relation: str, planned: int | None) -> bool:
        options = self._options
        timeout = round(options.timeout * 1000)
        ((*_, file, permit),) = self._database.run(
            "take_read_permit", timeout=timeout, relation=relation, concurrency=options.concurrency
        )
        if planned is not None and planned != file:
            raise DatabaseUnavailable(
                f"{relation} was dropped or rewritten while it was being read: read again"
            )
        return permit is not None


def _between_positions(first: int, end: int) -> tuple[str, str]:
    (block, row), (end_block, end_row) = divmod(first, _BLOCK), divmod(end, _BLOCK)
    return f"t.ctid >= '({block},{row})'", f"t.ctid < '({end_block},{end_row})'"


def _halve(width: int) -> int:
    """Half as many blocks; of one block, half of its rows."""
    if width >= 2 * _BLOCK:
        return width // _BLOCK // 2 * _BLOCK
    return min(width, _ROWS_IN_BLOCK) // 2
