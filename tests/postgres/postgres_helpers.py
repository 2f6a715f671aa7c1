"""Helpers for the tests of the package postgres."""

import attrs
import trio

from benchmarks.harness.proxy import open_proxy as open_proxy
from trioboss.postgres import BoundStatement, Connection
from trioboss.sql import Statement

ONE = Statement("one", "select 1", ())
ADD = Statement("add", "select $1::int4 + $2::int4", ("a", "b"))
SLEEP = Statement("sleep", "select pg_sleep($1::float8)", ("seconds",))
ECHO = Statement("echo", "select $1::text", ("value",))


def bind(statement: Statement, *values: object) -> BoundStatement:
    return BoundStatement(statement, [None if value is None else str(value).encode() for value in values])


def as_int(result) -> int:
    """Return the single binary integer of a result."""
    return int.from_bytes(result.get_value(0, 0), "big", signed=True)


@attrs.frozen
class Table:
    name: str
    admin: Connection

    @property
    def insert(self) -> Statement:
        return Statement(
            f"insert_{self.name}", f"insert into {self.name} values ($1, $2) returning i", ("i", "s")
        )

    async def rows(self, where: str = "true") -> list[int]:
        cursor = await self.admin.execute(f"select i from {self.name} where {where} order by i, s")
        return [i for (i,) in await cursor.fetchall()]


async def scalar(connection, query, params=None):
    cursor = await connection.execute(query, params)
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def until_blocked(admin, pid: int, on: str = "Lock") -> None:
    """Return when that backend waits for a lock, or on the given wait_event_type."""
    with trio.fail_after(60):
        while await scalar(admin, "select wait_event_type from pg_stat_activity where pid = %s", [pid]) != on:
            pass


async def until_gone(admin, pid: int) -> None:
    """Return when that backend has ended."""
    with trio.fail_after(60):
        while await scalar(admin, "select 1 from pg_stat_activity where pid = %s", [pid]) is not None:
            pass


async def is_usable(connection) -> bool:
    """Tell whether the connection returns the result of this statement, and not that of another one."""
    return as_int((await connection.run([[bind(ADD, 20, 22)]]))[0][0]) == 42
