"""How SyncBoss executes operations: on a connection of its own, or in the caller's transaction."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Self, TypeVar, Unpack

from trioboss.api.connecting import ConnectionOptions, check_connect, make_context, make_dsn
from trioboss.errors import BossClosed
from trioboss.model.described_error import Redact
from trioboss.model.option_names import keyword_names
from trioboss.model.payload import MAX_BYTES
from trioboss.model.queue import QueueOptions
from trioboss.postgres.blocking import (
    BlockingConnection,
    ConnectBlocking,
    ForeignConnection,
    ensure_transaction_blocking,
    execute_blocking,
    is_connected,
    open_blocking,
    unwrap_blocking,
)
from trioboss.postgres.dsn import hide_password
from trioboss.postgres.embedded import resolve_dsn
from trioboss.postgres.errors import refuse_aborted, translate_errors, wrap_driver_errors
from trioboss.postgres.migrate import check_version
from trioboss.postgres.migrate import migrate as migrate_schema
from trioboss.postgres.operation import Operation
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.store import Store, make_store

__all__ = ["AnyConn", "BlockingBase"]

T = TypeVar("T")
AnyConn = BlockingConnection | ForeignConnection | None
"""The ``conn`` of a call of `SyncBoss`: a blocking connection of psycopg, one of Django or SQLAlchemy on psycopg, or
None: then the call is a transaction of its own."""


class BlockingBase:
    """Executes operations of a store by blocking. Opens with the first operation, if not before; an opening that
    fails is tried again by the next one.

    Keeps a connection for each thread that executes something at the same time, and replaces broken ones. One
    connection with a lock could deadlock: the operation of one thread may wait for a row lock that another thread
    holds.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        schema: str = "trioboss",
        migrate: bool = True,
        create_schema: bool = True,
        max_payload: int = MAX_BYTES,
        redact: Redact | None = None,
        defaults: QueueOptions | None = None,
        connect: ConnectBlocking | None = None,
        **connection: Unpack[ConnectionOptions],
    ) -> None:
        self._store: Store = make_store(make_context(schema, max_payload, redact, defaults))
        self._named_dsn = make_dsn("SyncBoss", dsn, connection, keyword_names(type(self)))
        self._connect = check_connect(connect, autocommit=True)
        self._share = ExitStack()
        self._migrate = migrate
        self._create_schema = create_schema
        self._is_checked = False
        self._opening = threading.RLock()
        self._is_open = self._is_closed = False
        self._idle: list[BlockingConnection] = []
        self._spare: list[BlockingConnection] = []
        self.dsn: str = ""

    def __enter__(self) -> Self:
        with self._opening:
            if self._is_closed:
                raise BossClosed("this SyncBoss is closed: make another one")
            if self._is_open:
                return self
            # A failed opening leaves nothing behind, and the next call tries again: the database may be up by then.
            with ExitStack() as stack:
                self.dsn = stack.enter_context(resolve_dsn(self._named_dsn))
                self._prepare_schema()
                self._share = stack.pop_all()
            self._is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SyncBoss {hide_password(self.dsn)!r} schema={self.schema!r}>"

    @property
    def schema(self) -> str:
        """The schema in which everything is."""
        return self._store.context.catalog.schema

    def close(self) -> None:
        """Close the connections, and leave the embedded server if there is one. It cannot be opened again."""
        with self._opening:
            self._is_open, self._is_closed = False, True
            for connection in (*self._idle, *self._spare):
                connection.close()
            self._idle.clear()
            self._spare.clear()
            self._share.close()

    def _prepare_schema(self) -> None:
        """Migrate the schema if asked to. Otherwise the first operation checks it, so that `is_installed` can tell."""
        if not self._migrate:
            return
        catalog = self._store.context.catalog
        with wrap_driver_errors(), ExitStack() as stack:
            conn = stack.enter_context(closing(open_blocking(self.dsn, {}, self._connect)))
            with conn.transaction():
                execute_blocking(conn, migrate_schema(catalog, create_schema=self._create_schema), conn)
            stack.pop_all()
        self._spare.append(conn)
        self._is_checked = True

    def _check_schema(self) -> None:
        if not self._is_open:
            self.__enter__()
        if not self._is_checked:
            self._execute_unchecked(check_version(self._store.context.catalog))
            self._is_checked = True

    @contextmanager
    def transaction(self) -> Iterator[BlockingConnection]:
        """A transaction on a connection of ours, for your own statements and for ``conn=``.

        It commits when the block ends and rolls back when it raises. A block that ends although one of its statements
        has failed raises StatementFailed; OutcomeUnknown if the connection is lost during the commit. Errors of your
        own statements are psycopg's.
        """
        self._check_schema()
        with self.unchecked_transaction() as conn:
            yield conn

    @contextmanager
    def unchecked_transaction(self) -> Iterator[BlockingConnection]:
        """A transaction on a connection of ours, whatever the version of the schema is."""
        # Not a connection of the operations: one without `conn` has to commit by itself.
        with self._borrow(self._spare, {}) as conn, ExitStack() as stack:
            with wrap_driver_errors(), translate_errors(conn):
                stack.enter_context(conn.transaction())
            yield conn
            refuse_aborted(conn)
            with translate_errors(conn, commits=True):
                stack.close()

    @contextmanager
    def _borrow(
        self, store: list[BlockingConnection], settings: dict[str, str]
    ) -> Iterator[BlockingConnection]:
        if not self._is_open:
            self.__enter__()
        connection = None
        while store and connection is None:
            try:
                candidate = store.pop()
            except IndexError:  # another thread was faster
                break
            connection = candidate if is_connected(candidate) else None
        if connection is None:
            # Not under a lock: threads open their connections at the same time.
            connection = open_blocking(self.dsn, settings, self._connect)
        try:
            yield connection
        finally:
            if self._is_closed:
                connection.close()
            else:
                store.append(connection)

    def _execute_unchecked(self, operation: Operation[T]) -> T:
        """Execute an operation that needs no schema."""
        with wrap_driver_errors(), self._borrow(self._idle, OWN_SETTINGS) as own, translate_errors(own):
            return execute_blocking(own, operation, own)

    def _execute_with(self, make: Callable[[bool], Operation[T]], conn: AnyConn) -> T:
        self._check_schema()
        with self._borrow(self._idle, OWN_SETTINGS) as own:
            target = own if conn is None else unwrap_blocking(conn)
            with wrap_driver_errors(), translate_errors(target, commits=conn is None):
                return execute_blocking(target, make(conn is None), own)

    def _execute(self, operation: Operation[T], conn: AnyConn = None) -> T:
        return self._execute_with(lambda own: operation, conn)

    def _execute_atomically(self, operation: Operation[T], conn: AnyConn) -> T:
        self._check_schema()
        with self._borrow(self._idle, OWN_SETTINGS) as own:
            target = own if conn is None else unwrap_blocking(conn)
            with (
                wrap_driver_errors(),
                translate_errors(target, commits=conn is None),
                ensure_transaction_blocking(target),
            ):
                return execute_blocking(target, operation, own)
