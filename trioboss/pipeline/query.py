"""The statement that reads rows of a table, with the conditions that the options ask for."""

from collections.abc import Iterator, Mapping
from datetime import datetime

import attrs

from trioboss.errors import UsageError
from trioboss.pipeline.columns import Column, Table
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.redaction import literal, parse_redact, without_field

__all__ = ["Query"]


def _literal(value: str | datetime) -> str:
    """A value in SQL."""
    if isinstance(value, datetime):
        return f"'{value.isoformat()}'::timestamptz"
    return literal(value)


@attrs.frozen
class Query:
    """Columns of a table, and conditions on its rows."""

    schema: str
    table: Table
    columns: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    redact: Mapping[str, tuple[tuple[str, ...], ...]] = attrs.field(factory=dict)
    """For each column that is redacted: the paths of the fields that are left out; the empty path is all of it."""

    @classmethod
    def of(cls, options: ReadOptions, table: Table, columns: tuple[str, ...]) -> "Query":
        """The query for these columns with the conditions of the options, or raise UsageError."""
        conditions = tuple(_conditions(options, table))
        return cls(options.schema, table, columns, conditions, parse_redact(options.redact, table))

    def within(self, first_xid: int | None, end_xid: int | None) -> "Query":
        """The same query, for rows of transactions from ``first_xid`` on and before ``end_xid``."""
        conditions = [f"t.xid >= '{first_xid}'::xid8"] if first_xid else []
        conditions += [f"t.xid < '{end_xid}'::xid8"] if end_xid is not None else []
        return attrs.evolve(self, conditions=(*self.conditions, *conditions))

    def as_of(self, snapshot: str) -> "Query":
        """The same query, for rows of transactions that had committed when the snapshot was taken.

        The first comparison is true for nearly all rows, and costs less than the function.
        """
        oldest = snapshot.partition(":")[0]
        visible = f"(t.xid < '{oldest}'::xid8 OR pg_visible_in_snapshot(t.xid, '{snapshot}'::pg_snapshot))"
        return attrs.evolve(self, conditions=(*self.conditions, visible))

    @property
    def uuids(self) -> frozenset[str]:
        """The columns that the server sends as uuid."""
        return frozenset(name for name in self.columns if self.table.get(name).kind == "uuid")

    def _select(self, column: Column) -> str:
        """A column in the list of SELECT, without the redacted parts, which do not leave the server."""
        paths = self.redact.get(column.name)
        if paths is None:
            return column.selected
        if () in paths:
            return attrs.evolve(column, value=f"(CASE WHEN false THEN {column.value} END)").selected
        value = column.value
        for path in paths:
            value = without_field(value, path)
        return attrs.evolve(column, value=value).selected

    def text(self, relation: str | None = None, *conditions: str) -> str:
        """The statement that reads the whole table, or one of the tables that hold its rows."""
        selected = ", ".join(self._select(self.table.get(name)) for name in self.columns)
        source = (
            f'"{self.schema}"."{self.table.name}"'
            if relation is None
            else f'ONLY "{self.schema}"."{relation}"'
        )
        where = " AND ".join([*conditions, *self.conditions])
        return f"SELECT {selected} FROM {source} t" + (f" WHERE {where}" if where else "")


def _conditions(options: ReadOptions, table: Table) -> Iterator[str]:
    if options.queues:
        queue = table.find("queue")
        if queue is None:
            raise UsageError(f"queue: {table.name} has no queues")
        yield f"{queue.value} IN ({', '.join(map(_literal, options.queues))})"
    for name, instant, operator in (("since", options.since, ">="), ("until", options.until, "<")):
        if instant is not None:
            if table.time is None:
                raise UsageError(f"{name}: {table.name} is not history")
            yield f"{table.get(table.time).value} {operator} {_literal(instant)}"
    if not table.is_history and (options.snapshot or options.first_xid or options.end_xid):
        raise UsageError(f"snapshot, fromXid, toXid: {table.name} is not history")
