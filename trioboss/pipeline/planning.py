"""Cuts a table into pieces for Spark's tasks: by day, then by range of blocks, or by range of transactions.

Blocks are for what is read as a whole: such a scan needs no index and no sort, and goes through the table as it lies on
the disk. Transactions are for the few new rows of a table that is large.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from math import ceil

import attrs
from pyspark.sql.datasource import InputPartition

from trioboss.pipeline.database import Database

__all__ = [
    "Blocks",
    "Days",
    "Horizon",
    "Leaf",
    "Part",
    "Piece",
    "Xids",
    "divide",
    "list_leaves",
    "plan",
    "read_horizon",
    "whole",
]

_ROWS_A_BLOCK = 20.0  # until the table has been analyzed
_MOST = 0.5  # of the transactions of a table: to read all blocks is faster than to look up that many rows
_TID_RANGES = 140_000  # the first server that reads a range of blocks without looking at the others


@attrs.frozen
class Horizon:
    """How far history is sealed: no row of a transaction before this one can still appear."""

    sealed: int
    next: int
    by_block: bool
    """Whether the server can read a range of blocks without looking at the others."""
    standby: bool


def read_horizon(database: Database) -> Horizon:
    """Where the horizon is now."""
    ((sealed, following, version, standby),) = database.run("read_horizon")
    return Horizon(sealed, following, version >= _TID_RANGES, standby)


@attrs.frozen
class Leaf:
    """A table with rows: one day of history, or one of the tables of jobs."""

    relation: str
    day: date | None
    blocks: int
    rows_a_block: float
    file: int


@attrs.frozen
class Blocks:
    """A range of blocks of a table."""

    relation: str
    file: int
    first: int
    end: int
    rows_a_block: float


@attrs.frozen
class Xids:
    """The rows of a history table that a range of transactions wrote."""

    relation: str
    file: int
    first: int
    end: int
    rows_a_block: float
    by_block: bool


Piece = Blocks | Xids


class Part(InputPartition):
    """What one task reads: the rows of some pieces that transactions from ``first`` on and before ``end`` wrote."""

    def __init__(self, number: int, pieces: Sequence[Piece], first: int = 0, end: int | None = None) -> None:
        super().__init__(number)
        self.pieces = tuple(pieces)
        self.first, self.end = first, end


@attrs.frozen
class Days:
    """A range of instants, of which either end may be open."""

    first: datetime | None = None
    last: datetime | None = None

    def narrowed(self, first: datetime | None, last: datetime | None) -> "Days":
        """This range and another one."""
        firsts = [x for x in (self.first, first) if x is not None]
        lasts = [x for x in (self.last, last) if x is not None]
        return Days(max(firsts, default=None), min(lasts, default=None))

    def touches(self, day: date | None) -> bool:
        """Whether a day has instants of the range. The table of no day may have any."""
        if day is None:
            return True
        return (self.first is None or self.first.date() <= day) and (
            self.last is None or day <= self.last.date()
        )


def list_leaves(database: Database, table: str, days: Days) -> list[Leaf]:
    """The tables in which the rows are, empty ones left out, in the order of days."""
    rows = database.run("list_history", history=table)
    leaves = [
        Leaf(rel, day, blocks, density or _ROWS_A_BLOCK, file) for rel, day, blocks, density, file in rows
    ]
    return [leaf for leaf in leaves if leaf.blocks and days.touches(leaf.day)]


def plan(database: Database, leaves: Sequence[Leaf], first: int, horizon: Horizon, parts: int) -> list[Piece]:
    """The pieces of history that were written by transactions from ``first`` on and are sealed."""
    pieces: list[Piece] = []
    for leaf in leaves:
        ((low, high),) = database.run("find_bounds", of={"archive": leaf.relation})
        if low is None or low >= horizon.sealed or high < first:
            continue
        begin, end = max(low, first), min(high + 1, horizon.sealed)
        if horizon.by_block and (end - begin) >= (high + 1 - low) * _MOST:
            pieces.append(whole(leaf))
        else:
            pieces += _by_xid(leaf, begin, end, parts, horizon.by_block)
    return pieces


def _by_xid(leaf: Leaf, begin: int, end: int, parts: int, by_block: bool) -> Iterator[Xids]:
    step = max(1, ceil((end - begin) / parts))
    for first in range(begin, end, step):
        yield Xids(leaf.relation, leaf.file, first, min(first + step, end), leaf.rows_a_block, by_block)


def whole(leaf: Leaf) -> Blocks:
    """All of a table."""
    return Blocks(leaf.relation, leaf.file, 0, leaf.blocks, leaf.rows_a_block)


def divide(pieces: Sequence[Piece], parts: int, first: int = 0, end: int | None = None) -> list[Part]:
    """Share the pieces among so many tasks, in order, each about the same number of blocks."""
    blocks = [piece for piece in pieces if isinstance(piece, Blocks)]
    share = max(1, ceil(sum(piece.end - piece.first for piece in blocks) / parts))
    shares = [[piece] for piece in pieces if isinstance(piece, Xids)] + list(_shares(blocks, share))
    return [Part(number, share, first, end) for number, share in enumerate(shares)]


def _shares(pieces: Iterable[Blocks], share: int) -> Iterator[list[Piece]]:
    taken: list[Piece] = []
    room = share
    for piece in pieces:
        first = piece.first
        while first < piece.end:
            end = min(piece.end, first + room)
            taken.append(attrs.evolve(piece, first=first, end=end))
            room -= end - first
            first = end
            if room == 0:
                yield taken
                taken, room = [], share
    if taken:
        yield taken
