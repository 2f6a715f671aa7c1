"""psycopg's cursors, whose clean-up works in a cancelled scope."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncCopy, AsyncCursor, AsyncServerCursor
from psycopg.abc import Params, Query
from psycopg.copy import AsyncWriter
from psycopg.rows import Row

from trioboss.postgres.connection.cancellation import CancellationPolicy, apply_policies, with_policy

__all__ = ["Cursor", "ServerCursor"]


class Cursor(AsyncCursor[Row]):
    """The cursor of a `Connection`. To use another cursor class of psycopg under trio, inherit from this one first."""

    __slots__ = ()

    @asynccontextmanager
    async def copy(
        self, statement: Query, params: Params | None = None, *, writer: AsyncWriter | None = None
    ) -> AsyncIterator[AsyncCopy]:
        """As in psycopg. If the block is cancelled, the COPY is ended on the server too."""
        copy = super().copy(statement, params, writer=writer)
        # The exit is STARTED and not FINISH: the end of a COPY may take long, for instance if it waits for a lock, so a
        # cancellation sends a cancel request.
        async with apply_policies(
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
