"""Divides a history table among Spark's tasks.

Spark plans a DataFrame once and keeps the plan for all its queries, and it may compute a lost part of a cached result
again much later. So a part of the plan must not name rows or sizes: it is a `Share`, a rule by which a row belongs to
exactly one task, whenever that task runs. By default the rule is the row's block: blocks are numbered in stripes, and
task k of n reads every n-th stripe of every table. A scan of a range of blocks needs neither an index nor a sort.

Tables of which a small range of transactions is wanted are read through the index on `xid` instead, and each task
has a part of that range.
"""

from collections.abc import Collection, Iterator, Mapping
from math import ceil

import attrs

from trioboss.pipeline.database import Database
from trioboss.pipeline.days import Days

__all__ = [
    "BlockRange",
    "DayTable",
    "Horizon",
    "Piece",
    "Share",
    "XidRange",
    "has_tid_ranges",
    "list_day_tables",
    "pieces_of",
    "plan_shares",
    "read_horizon",
]

_ROWS_PER_BLOCK = 20.0  # until the table has been analyzed
_FEW = 0.5  # of the transactions of a table: below that, the index is faster than a scan of all blocks
_TID_RANGES = 140_000  # the first server version that scans a range of blocks without reading the others


@attrs.frozen
class Horizon:
    """How far history is sealed."""

    sealed: int
    """All transactions before this one have ended, so no row of theirs can still appear."""
    next: int
    """The first id that no transaction has had yet."""


def read_horizon(database: Database) -> Horizon:
    """How far history is sealed now."""
    ((sealed, following),) = database.run("read_horizon")
    return Horizon(sealed, following)


def has_tid_ranges(database: Database) -> bool:
    """Whether the server can scan a range of blocks without reading the others."""
    return database.connection.info.server_version >= _TID_RANGES


@attrs.frozen
class DayTable:
    """A table that holds rows: one day of history."""

    relation: str
    blocks: int
    rows_per_block: float
    file: int
    """The number of its file. It changes when the table is rewritten, and rows are then in other blocks."""


def list_day_tables(database: Database, table: str, days: Days) -> list[DayTable]:
    """The tables that hold the rows of a history table, in the order of days."""
    rows = database.run("list_history", history=table)
    return [
        DayTable(relation, blocks, density or _ROWS_PER_BLOCK, file)
        for relation, blocks, density, file in rows
        if days.touch(relation)
    ]


@attrs.frozen
class BlockRange:
    """A range of blocks of a table."""

    relation: str
    file: int
    first: int
    end: int
    rows_per_block: float


@attrs.frozen
class XidRange:
    """The rows of a history table that a range of transactions wrote."""

    relation: str
    file: int
    first: int
    end: int
    rows_per_block: float


Piece = BlockRange | XidRange


@attrs.frozen
class Share:
    """The rows that one task reads."""

    number: int
    count: int
    """How many shares there are."""
    stripe: int
    """How many blocks a stripe has."""
    xids: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    """For each table that is read by transaction: the first transaction of this task, and the first of the next."""

    @classmethod
    def everything(cls) -> "Share":
        """The share of a task that is alone."""
        return cls(0, 1, 1)

    def block_ranges(self, blocks: int) -> Iterator[tuple[int, int]]:
        """The ranges of blocks of this share, in a table that has so many."""
        if self.count == 1:
            yield 0, blocks
            return
        for first in range(self.number * self.stripe, blocks, self.count * self.stripe):
            yield first, min(first + self.stripe, blocks)


def plan_shares(
    database: Database,
    tables: Collection[DayTable],
    wanted: int,
    chunk_rows: int,
    xids: tuple[int, int] | None,
) -> list[Share]:
    """At most ``wanted`` shares of all rows, or of those that a range of transactions (``xids``) wrote.

    A stripe is as large as a chunk, so that a task that reads chunk by chunk reads stripe by stripe.
    """
    rows_per_block = max((table.rows_per_block for table in tables), default=_ROWS_PER_BLOCK)
    stripe = max(1, int(chunk_rows / rows_per_block))
    if xids is None and not has_tid_ranges(database):
        return [Share.everything()]  # `pieces_of` reads it by transaction
    ranges = _xid_ranges(database, tables, *xids) if xids is not None else {}
    stripes = max(
        (ceil(table.blocks / stripe) for table in tables if table.relation not in ranges), default=0
    )
    # Once all transactions that are asked for have ended, no row of theirs can appear.
    later = xids if xids is not None and read_horizon(database).sealed < xids[1] else None
    count = max(1, wanted if ranges else min(wanted, stripes))
    return [
        Share(
            number,
            count,
            stripe,
            {name: _part(found, later or found, number, count) for name, found in ranges.items()},
        )
        for number in range(count)
    ]


def _xid_ranges(
    database: Database, tables: Collection[DayTable], first: int, end: int
) -> dict[str, tuple[int, int]]:
    """The tables that are read by transaction, each with those of the transactions in question that it has now."""
    ranges = {}
    for table in tables:
        ((low, high),) = database.run("find_bounds", of={"archive": table.relation})
        if low is None:  # it may have rows when it is read
            low, high = first, first - 1
        begin, stop = min(max(low, first), end), min(high + 1, end)
        if stop - begin < (high + 1 - low) * _FEW or not has_tid_ranges(database):
            ranges[table.relation] = (begin, max(begin, stop))
    return ranges


def _part(found: tuple[int, int], asked: tuple[int, int], number: int, count: int) -> tuple[int, int]:
    """One of so many parts of the transactions that a table has now. The outer parts have all others that are ``asked``
    for: the plan is used for later queries, too, and the table may have more rows then.
    """
    begin, end = found
    step = ceil((end - begin) / count)
    first = asked[0] if number == 0 else min(end, begin + number * step)
    last = asked[1] if number == count - 1 else min(end, begin + (number + 1) * step)
    return first, last


def pieces_of(database: Database, share: Share, tables: Collection[DayTable], newest: int) -> Iterator[Piece]:
    """The pieces of these tables that a task reads, in which no transaction from ``newest`` on is of interest."""
    for table in tables:
        if table.relation in share.xids or not has_tid_ranges(database):
            # A table that was made after the plan is read by one task.
            alone = (0, newest) if share.number == 0 else (0, 0)
            first, end = share.xids.get(table.relation, alone)
            yield XidRange(table.relation, table.file, first, end, table.rows_per_block)
            continue
        for first, end in share.block_ranges(table.blocks):
            yield BlockRange(table.relation, table.file, first, end, table.rows_per_block)
