"""How Boss executes operations: on its pool, or in the caller's transaction."""

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

# Our sessions have settings for our statements; the caller's statements get those of the server.
_RESET_SETTINGS = "; ".join(f"SET LOCAL {name} TO DEFAULT" for name in OWN_SETTINGS).encode()


@attrs.define(eq=False)
class ApiBase:
    """Executes operations of a store."""

    _pool: Pool
    _store: Store

    @property
    def _own_pool(self) -> Pool:
        """Where an operation does what must not become a part of the caller's transaction."""
        return self._pool

    async def _execute(self, operation: Operation[T], conn: AnyConnection | None = None) -> T:
        """Execute an operation that is the same in the caller's transaction and in our own."""
        return await self._execute_with(lambda own: operation, conn)

    async def _execute_with(self, make: Callable[[bool], Operation[T]], conn: AnyConnection | None) -> T:
        """Execute the operation that ``make`` returns when it is told whether the transaction is our own."""
        if conn is None:
            return await execute(make(True), self._pool)
        return await execute_in(conn, make(False), self._own_pool)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection[Any]]:
        """A transaction on a connection of the pool, for your own statements and for ``conn=``.

        It commits when the block ends and rolls back when it raises.
        """
        async with self._pool.connection() as conn:
            async with conn.transaction():
                await conn.execute(_RESET_SETTINGS)
                yield conn
            # A plain SET within the transaction outlives its commit, and the session is used by others next.
            await conn.reset_session()
