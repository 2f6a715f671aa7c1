"""psycopg's cursors, with clean-up that works in a cancelled scope."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncCopy, AsyncCursor, AsyncServerCursor
from psycopg.abc import Params, Query
from psycopg.copy import AsyncWriter
from psycopg.rows import Row

from trioboss.postgres.cancellation import CancellationPolicy, handled_with, with_policy

__all__ = ["Cursor", "ServerCursor"]


class Cursor(AsyncCursor[Row]):
    """The cursor of a `Connection`. To use another cursor of psycopg's under trio, mix this one in first."""

    __slots__ = ()

    @asynccontextmanager
    async def copy(
        self, statement: Query, params: Params | None = None, *, writer: AsyncWriter | None = None
    ) -> AsyncIterator[AsyncCopy]:
        """As in psycopg. A block left by a cancellation ends the COPY on the server too."""
        copy = super().copy(statement, params, writer=writer)
        async with handled_with(
            copy, enter=CancellationPolicy.ORDINARY, exit=CancellationPolicy.STARTED
        ) as handle:
            yield handle


class ServerCursor(AsyncServerCursor[Row]):
    """The server-side cursor of a `Connection`."""

    __slots__ = ()

    async def close(self) -> None:
        """Close the cursor on the server too, even in a cancelled scope."""
        with with_policy(CancellationPolicy.FINISH):
            await super().close()
