"""How a door runs a verb: on our pool, or in the caller's transaction."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs

from trioboss.postgres import Connection, Pool
from trioboss.postgres.caller import AnyConnection
from trioboss.postgres.executor import execute, execute_in
from trioboss.postgres.operation import Operation
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.store import Store

__all__ = ["ApiBase"]

T = TypeVar("T")

_AS_USUAL = "; ".join(f"SET LOCAL {name} TO DEFAULT" for name in OWN_SETTINGS).encode()


@attrs.define(eq=False)
class ApiBase:
    """Runs verbs of a store."""

    _pool: Pool
    _store: Store

    @property
    def _asides(self) -> Pool:
        """Where a verb does what must not become a part of the caller's transaction."""
        return self._pool

    async def _execute_with(self, verb: Callable[[bool], Operation[T]], conn: AnyConnection | None) -> T:
        """Run a verb, telling it whether the transaction is our own."""
        if conn is None:
            return await execute(verb(True), self._pool)
        return await execute_in(conn, verb(False), self._asides)

    async def _execute(self, conversation: Operation[T], conn: AnyConnection | None = None) -> T:
        """Run a verb that does the same in anybody's transaction."""
        return await self._execute_with(lambda own: conversation, conn)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection[Any]]:
        """A transaction on a connection of the pool, for your own statements and for ``conn=``.

        It commits when the block ends and rolls back when it raises.
        """
        async with self._pool.connection() as conn:
            async with conn.transaction():
                await conn.execute(_AS_USUAL)
                yield conn
            # What was SET in the transaction outlives its commit, and others use the session next.
            await conn.reset_session()
