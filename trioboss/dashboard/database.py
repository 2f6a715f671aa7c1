"""How the dashboard reaches the database: it reads with limits, and acts only with a connection of its own.

Everything blocks, in threads, so that it runs under trio and asyncio alike. Nothing is opened before the first request.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import attrs

from trioboss.api.sync import SyncBoss
from trioboss.errors import TriobossError, UsageError
from trioboss.postgres.blocking import BlockingConnection, execute_blocking, is_connected, open_blocking
from trioboss.postgres.embedded import resolve_dsn
from trioboss.postgres.errors import is_database_error, translate_errors
from trioboss.postgres.migrate import check_version
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.postgres.wire import BoundStatement
from trioboss.sql import Catalog, check_schema
from trioboss.store import Context, Store, make_store
from trioboss.store.rows import read_first

__all__ = ["Actor", "Reader", "Rights"]

T = TypeVar("T")

_CONNECTIONS = 4  # at most, whatever the number of people


class Reader:
    """Reads as the role of its dsn, for which the rights of a reader are enough. It changes nothing, and no statement
    takes longer than two seconds.
    """

    def __init__(self, dsn: str | None, schema: str) -> None:
        self.store: Store = make_store(Context(Catalog(check_schema(schema))))
        self._share: AbstractContextManager[str] = resolve_dsn(dsn)
        self._dsn: str | None = None
        self._checked = False
        self._opening = threading.Lock()
        self._idle: list[BlockingConnection] = []
        self._limiter: anyio.CapacityLimiter | None = None

    async def read(self, operation: Callable[[Store], Operation[T]]) -> T:
        """Execute an operation that only reads, in a thread."""
        if self._limiter is None:  # it belongs to the event loop of the first request
            self._limiter = anyio.CapacityLimiter(_CONNECTIONS)
        return await anyio.to_thread.run_sync(self.read_blocking, operation, limiter=self._limiter)

    def read_blocking(self, operation: Callable[[Store], Operation[T]]) -> T:
        """Execute an operation that only reads."""
        with self._connection() as connection, translate_errors(connection):
            if not self._checked:
                execute_blocking(connection, check_version(self.store.context.catalog), connection)
                self._checked = True
            limit = self.store.context.bind("limit_transaction")
            return execute_blocking(connection, _limited(operation(self.store), limit), connection)

    @contextmanager
    def _connection(self) -> Iterator[BlockingConnection]:
        with self._opening:
            if self._dsn is None:
                self._dsn = self._share.__enter__()
            connection = next((found for found in self._take_idle() if is_connected(found)), None)
        if connection is None:
            connection = open_blocking(self._dsn, OWN_SETTINGS)
        try:
            yield connection
        finally:
            with self._opening:
                self._idle.append(connection)

    def _take_idle(self) -> Iterator[BlockingConnection]:
        while self._idle:
            yield self._idle.pop()

    def close(self) -> None:
        """Close the connections. A request that comes later opens them again."""
        with self._opening:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
            if self._dsn is not None:
                self._dsn = None
                self._share.__exit__(None, None, None)


def _limited(operation: Operation[T], limit: BoundStatement) -> Operation[T]:
    """The operation, with the limits as the first statement of each of its transactions."""
    try:
        request = next(operation)
        while True:
            if not isinstance(request, Batch):
                raise UsageError("the dashboard reads with plain batches only")
            batch = Batch(*((limit, *transaction) for transaction in request.transactions))
            try:
                results = yield batch
            except Exception as error:
                request = operation.throw(error)
            else:
                request = operation.send([transaction[1:] for transaction in results])
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


@attrs.frozen
class Rights:
    """The actions that the role of the actor may do: buttons of others are not shown."""

    jobs: bool = False
    send: bool = False
    queues: bool = False
    schedules: bool = False

    @property
    def any(self) -> bool:
        """Whether there is any action."""
        return self.jobs or self.send or self.queues or self.schedules


class Actor:
    """Acts as the role of its own dsn. Without one there are no actions."""

    def __init__(self, dsn: str | None, schema: str) -> None:
        self.boss: SyncBoss | None = None if dsn is None else SyncBoss(dsn, schema=schema, migrate=False)
        self._rights: Rights | None = None
        self._limiter: anyio.CapacityLimiter | None = None

    async def get_rights(self, store: Store) -> Rights:
        """The actions that the role may do. They are read once: a changed grant needs a restart."""
        if self.boss is None:
            return Rights()
        if self._rights is None:
            try:
                self._rights = await self.act(lambda boss: _read_rights(boss, store))
            except Exception as error:
                if not isinstance(error, TriobossError) and not is_database_error(error):
                    raise
                # The database does not answer: the page that asks shows that, or an action does.
                return Rights(True, True, True, True)
        return self._rights

    async def act(self, action: Callable[[SyncBoss], T]) -> T:
        """Run an action in a thread. It is not cut off when the person leaves: its transaction ends first."""
        if self.boss is None:
            raise UsageError("this dashboard only reads: start it with act_dsn to act")
        if (
            self._limiter is None
        ):  # its own: actions that wait for locks take no thread of pages, nor of the program
            self._limiter = anyio.CapacityLimiter(_CONNECTIONS)
        return await anyio.to_thread.run_sync(action, self.boss, limiter=self._limiter)

    def close(self) -> None:
        """Close the connections."""
        if self.boss is not None:
            self.boss.close()


def _read_rights(boss: SyncBoss, store: Store) -> Rights:
    def read() -> Operation[list[tuple[Any, ...]]]:
        return read_first((yield Batch((store.context.bind("show_rights"),))))

    with boss.transaction() as conn:
        ((audit, *actions),) = execute_blocking(conn, read(), conn)
    return Rights(*actions) if audit else Rights()
