"""How Boss executes operations: on its pool, or in the caller's transaction."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeVar

import attrs
import trio

from trioboss.errors import BossClosed
from trioboss.postgres import Connection, Pool
from trioboss.postgres.caller import CallerConnection, unwrap
from trioboss.postgres.errors import refuse_aborted, translate_errors, wrap_driver_errors
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
    _has_ended: bool = attrs.field(default=False, init=False)
    _waits: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """The calls that wait for something that will not come any more when the boss has ended."""

    def _check_open(self) -> None:
        if self._has_ended:
            raise BossClosed

    def _end(self) -> None:
        """From now on every call raises BossClosed, those that are waiting, too."""
        self._has_ended = True
        for scope in list(self._waits):
            scope.cancel()

    @contextmanager
    def _while_open(self) -> Iterator[None]:
        """A block that raises BossClosed when the boss ends."""
        self._check_open()
        with trio.CancelScope() as scope:
            self._waits.add(scope)
            try:
                yield
            finally:
                self._waits.discard(scope)
        if scope.cancelled_caught:
            raise BossClosed

    @property
    def _own_pool(self) -> Pool:
        """Where an operation does what must not become a part of the caller's transaction."""
        return self._pool

    async def _execute(self, operation: Operation[T], conn: CallerConnection | None = None) -> T:
        """Execute an operation that does the same in a transaction of the caller's, ``conn``, and in one of our own: it
        need not be told which it is in.
        """
        return await self._execute_with(lambda own: operation, conn)

    async def _execute_with(self, make: Callable[[bool], Operation[T]], conn: CallerConnection | None) -> T:
        """Execute the operation that ``make`` returns. Its argument is True without ``conn``: it runs in our own
        transactions.
        """
        self._check_open()
        if conn is None:
            return await execute(make(True), self._pool)
        return await execute_in(unwrap(conn), make(False), self._own_pool)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection[Any]]:
        """A transaction on a connection of the pool, for your own statements and for ``conn=``.

        It commits when the block ends and rolls back when it raises. A block that ends although one of its statements
        has failed raises StatementFailed; OutcomeUnknown if the connection is lost during the commit. Errors of your
        own statements are psycopg's.
        """
        self._check_open()
        async with self._pool.connection() as conn:
            try:
                async with AsyncExitStack() as stack:
                    with wrap_driver_errors(), translate_errors(conn):
                        await stack.enter_async_context(conn.transaction())
                        await conn.execute(_RESET_SETTINGS)
                    yield conn
                    refuse_aborted(conn)
                    with translate_errors(conn, commits=True):
                        await stack.aclose()
            finally:
                # A plain SET outlives the commit, an advisory lock also a rollback. Others use the session next.
                await conn.reset_session()
