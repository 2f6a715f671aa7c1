"""The connection that trioboss uses itself, and gives to users for their own transactions."""

import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Self

import attrs
import psycopg
import trio
from psycopg import AsyncCursor, Notify, errors, generators, pq
from psycopg.abc import AdaptContext, ConnParam, PQGen
from psycopg.adapt import AdaptersMap
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq.abc import PGconn
from psycopg.rows import AsyncRowFactory, Row
from trio.lowlevel import checkpoint, checkpoint_if_cancelled, wait_readable

from trioboss.postgres.connection.cancellation import CancellationPolicy
from trioboss.postgres.connection.hosts import open_pgconn
from trioboss.postgres.connection.psycopg_trio import TrioConnection
from trioboss.postgres.connection.waiting import GeneratorRun, is_readable
from trioboss.postgres.settings import RESET, settings_statement
from trioboss.postgres.wire import BoundStatement, Pipeline, PreparedStatements, Results, Transactions

__all__ = ["Connection"]

_OK = pq.ConnStatus.OK
_IDLE = pq.TransactionStatus.IDLE
_NO_PIPELINE = pq.PipelineStatus.OFF


@attrs.define(eq=False)
class _FatalNotices:
    """Records the FATAL message with which the server ends an idle session.

    It may arrive well before the end of the TCP connection, for instance through a proxy.
    """

    received: bool = False

    def check(self, notice: errors.Diagnostic) -> None:
        self.received = self.received or notice.severity_nonlocalized in ("FATAL", "PANIC")


class Connection(TrioConnection[Row]):
    """psycopg's ``AsyncConnection`` under trio, with the same methods and `wait_notifies`, `ping` and `is_stale`.

    Programs get one from `boss.transaction`. ``run`` is for the prepared statements of trioboss.
    """

    def __init__(self, pgconn: PGconn, row_factory: AsyncRowFactory[Row] | None = None) -> None:
        super().__init__(pgconn, row_factory)
        self._prepared_statements: PreparedStatements | None = None
        self._unread: Pipeline | None = None  # the pipeline whose follow-up has not been read yet
        self._session_statement: BoundStatement | None = None
        self.is_returned = False
        """Whether it is in its pool again, and no longer the caller's."""
        self._fatal_notices = _FatalNotices()
        self.add_notice_handler(self._fatal_notices.check)

    @classmethod
    async def connect(  # type: ignore[override]  # psycopg would treat `settings` as a parameter of the conninfo
        cls,
        conninfo: str = "",
        *,
        autocommit: bool = False,
        prepare_threshold: int | None = 5,
        context: AdaptContext | None = None,
        row_factory: AsyncRowFactory[Row] | None = None,
        cursor_factory: type[AsyncCursor[Row]] | None = None,
        prepare: bool = True,
        settings: Mapping[str, str] | None = None,
        **kwargs: ConnParam,
    ) -> Self:
        """Connect as psycopg does, then apply the run-time ``settings`` in one round trip.

        ``prepare=False`` is for transaction poolers: nothing is prepared under a name, by `run` or by psycopg.
        """
        connection = cls(await open_pgconn(conninfo_to_dict(conninfo, **kwargs)))
        # Before any transaction, also without autocommit: a rollback would undo settings that were made inside it.
        if settings:
            await connection.begin_session(settings_statement(settings))
        connection._autocommit = autocommit
        connection._prepared_statements = PreparedStatements() if prepare else None
        connection.prepare_threshold = prepare_threshold if prepare else None
        if row_factory is not None:
            connection.row_factory = row_factory
        if cursor_factory is not None:
            connection.cursor_factory = cursor_factory
        if context is not None:
            connection._adapters = AdaptersMap(context.adapters)
        return connection

    async def begin_session(self, statement: BoundStatement) -> None:
        """Execute the first statement of a new session, which sets it up. If it fails, the connection is closed."""
        # Unnamed (None): a statement that runs once is not worth a prepared statement on the server.
        pipeline = Pipeline(self.pgconn, [[statement]], None)
        self._session_statement = statement
        try:
            # Not `run_gen`: nothing is worth a clean-up after a cancellation, because nobody has the connection yet. A
            # server that does not answer would prolong it by `cancel_grace`, which nobody can shorten yet either.
            await checkpoint_if_cancelled()
            await GeneratorRun(pipeline.execute_gen(), self.pgconn.socket).run_to_end()
        except BaseException:
            await self.close()
            raise

    async def reset_session(self) -> None:
        """Remove the settings and locks that a user left in the session, and set it up as at its beginning.

        If that fails (a ``statement_timeout`` of the user may be too short for it), the connection is closed: the next
        user must not get it, and the caller has no part in the failure. Behind a transaction pooler this does nothing:
        there no session belongs to us.
        """
        if self._prepared_statements is None or self._session_statement is None:
            return
        with self.shield_cleanup(), suppress(psycopg.Error):
            await self.run([[*RESET, self._session_statement]])
            return
        await self.close()

    # -- transactions of prepared statements: the path of every job

    async def run(self, transactions: Transactions, follow_up: Sequence[BoundStatement] = ()) -> Results:
        """Run these transactions in one round trip; return the results of their statements, in binary format.

        In autocommit, outside a transaction block, each commits by itself: after an error in one the others still run.
        Otherwise all of them are part of the transaction that is open, or that psycopg would open now. The first error
        is raised after everything has been read, so that the connection stays usable. A cancellation stops the
        transactions on the server, unless the first one is committed already: then the others run to their end.

        The ``follow_up`` is one more transaction that is sent along and not waited for: the caller must not depend on
        its success. Until `read_follow_up` the connection can be used for `run` only.
        """
        # Not `async with self.lock`, which would add two coroutine calls to every statement.
        await self.lock.acquire()
        try:
            # The policy STARTED below does not check this: in a cancelled scope nothing may be sent.
            await checkpoint_if_cancelled()
            # The implicit BEGIN depends on the transaction status, which is not known while a follow-up is unread.
            if self._unread is not None and not self._autocommit:
                await self._read_follow_up(self._unread)
            if self._pipeline is not None:
                raise errors.ProgrammingError("run() cannot be used inside pipeline(): see run_in_caller()")
            return await self._run(transactions, follow_up)
        finally:
            self.lock.release()

    async def _run(self, transactions: Transactions, follow_up: Sequence[BoundStatement]) -> Results:
        pipeline = self._new_pipeline(transactions, follow_up)
        try:
            return await self._run_pipeline(pipeline)
        except psycopg.Error as error:
            if self._prepared_statements is None or not pipeline.is_repeatable(error):
                raise
            # The change that made one statement stale has most likely done so to all: each is prepared again when used.
            self._prepared_statements.clear()
        if self._unread is not None:
            await self._read_follow_up(self._unread)
        return await self._run_pipeline(self._new_pipeline(transactions, follow_up))

    def _new_pipeline(self, transactions: Transactions, follow_up: Sequence[BoundStatement]) -> Pipeline:
        previous, self._unread = self._unread, None
        # libpq reports ACTIVE while a follow-up is in flight. Only the pool sends follow-ups, in autocommit and outside
        # transaction blocks, so the connection is idle after it.
        idle = previous is not None or self.pgconn.transaction_status == _IDLE
        begin = None if self._autocommit or not idle else self._get_tx_start_command()
        in_block = not (idle and self._autocommit)
        return Pipeline(
            self.pgconn, transactions, self._prepared_statements, begin, in_block, follow_up, previous
        )

    async def _run_pipeline(self, pipeline: Pipeline) -> Results:
        try:
            return await self.run_gen(pipeline.execute_gen(), CancellationPolicy.STARTED, pipeline)
        finally:
            # In a finally: after an error of a transaction, too, the result of the follow-up has to be read some time.
            if pipeline.has_unread_follow_up():
                self._unread = pipeline
            else:
                self.close_if_unfinished()

    @property
    def has_unread_follow_up(self) -> bool:
        """Whether the follow-up of the last `run` has not been read yet."""
        return self._unread is not None and self.pgconn.status == _OK

    async def read_follow_up(self) -> None:
        """Wait for the end of the follow-up of the last `run`, if any."""
        async with self.lock:
            if self._unread is not None:
                await self._read_follow_up(self._unread)

    async def _read_follow_up(self, pipeline: Pipeline) -> None:
        try:
            await self.run_gen(pipeline.finish_gen(), CancellationPolicy.FINISH)
        finally:
            self._unread = None
            self.close_if_unfinished()

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        # After a ROLLBACK or DDL psycopg deallocates every prepared statement of the session (name is None), also ours.
        if name is None and self._prepared_statements is not None:
            self._prepared_statements.clear()
        return super()._deallocate(name)

    # -- notifications

    async def wait_notifies(self, timeout: float | None = None) -> list[Notify]:
        """Return the notifications received since the last call, waiting for one if there are none.

        Returns an empty list after ``timeout`` seconds. A cancelled call loses nothing: notifications that it has read
        are returned by the next one. If there are notify handlers, they get the notifications instead, as in psycopg.
        """
        if timeout is None:
            await self._receive_notifies()
        else:
            await checkpoint_if_cancelled()
            with trio.move_on_after(timeout):
                await self._receive_notifies(read_first=True)
        # No checkpoint from here to the return, so a cancellation cannot lose notifications.
        unread = self._backlog()
        received = list(unread)
        unread.clear()
        return received

    async def _receive_notifies(self, *, read_first: bool = False) -> None:
        # `read_first`: read what has arrived before waiting. With a timeout of 0 the wait would be cancelled at once,
        # and notifications in the socket's buffer would not be seen.
        async with self.lock:
            pgconn = self.pgconn
            self._collect_notifies()
            if read_first and not self._backlog() and is_readable(pgconn.socket):
                pgconn.consume_input()
                self._collect_notifies()
            if self._backlog():
                await checkpoint()  # a task that receives a flood of notifications must let other tasks run
            while not self._backlog():
                try:
                    await wait_readable(pgconn.socket)
                except (OSError, trio.ClosedResourceError) as error:
                    raise errors.OperationalError("the connection is closed") from error
                pgconn.consume_input()
                self._collect_notifies()

    def _collect_notifies(self) -> None:
        handler = self.pgconn.notify_handler
        while (notify := self.pgconn.notifies()) is not None:
            if handler is not None:
                handler(notify)

    def _backlog(self) -> deque[Notify]:
        # psycopg's own notify handler puts the notifications here that arrive during any operation.
        assert self._notifies_backlog is not None
        return self._notifies_backlog

    async def notifies(
        self, *, timeout: float | None = None, stop_after: int | None = None
    ) -> AsyncGenerator[Notify]:
        """As in psycopg, but the connection is not locked while the caller handles a notification."""
        deadline = trio.current_time() + (math.inf if timeout is None else timeout)
        count = 0
        while stop_after is None or count < stop_after:
            remaining = max(0.0, deadline - trio.current_time())
            received = await self.wait_notifies(remaining)
            for notify in received:
                yield notify
            count += len(received)
            if trio.current_time() >= deadline:
                return

    # -- health

    async def ping(self, timeout: float = 5.0) -> None:
        """Check that the server answers on this connection; if not, close it and raise OperationalError.

        Sends a bare Sync: the server executes no statement, so nothing is counted or logged. A cancellation interrupts
        it only after `cancel_grace` seconds. If a follow-up is unread, reading it is the check.
        """
        async with self.lock:
            await checkpoint_if_cancelled()
            if self._pipeline is not None:
                raise errors.ProgrammingError("ping() cannot be used inside pipeline()")
            # If reading it fails, the connection is closed: the follow-up is not unread any more in either case.
            unread, self._unread = self._unread, None
            run = GeneratorRun(unread.finish_gen() if unread else self._sync_gen(), self.pgconn.socket)
            try:
                with trio.move_on_after(timeout):
                    await run.run_to_end()
                    return
            except trio.Cancelled:
                with self.shield_cleanup(timeout):
                    await run.run_to_end()
                    return
                raise
            finally:
                self.close_if_unfinished()
            raise errors.OperationalError(f"the server did not answer within {timeout} s")

    def _sync_gen(self) -> PQGen[None]:
        self.pgconn.enter_pipeline_mode()
        self.pgconn.pipeline_sync()
        yield from generators.send(self.pgconn)
        yield from generators.fetch_many(self.pgconn)
        self.pgconn.exit_pipeline_mode()

    def is_clean(self) -> bool:
        """Tell whether the connection is good, outside any transaction and pipeline, and in autocommit."""
        pgconn = self.pgconn
        return (
            pgconn.status == _OK
            and pgconn.transaction_status == _IDLE
            and pgconn.pipeline_status == _NO_PIPELINE
            and self._autocommit
        )

    def is_stale(self) -> bool:
        """Tell, without a round trip, whether the server has closed this idle connection."""
        # On an idle connection the server sends nothing but notices, notifications and the FATAL error that ends it.
        try:
            while self.pgconn.status == _OK and is_readable(self.pgconn.socket):
                self.pgconn.consume_input()
                self._collect_notifies()
        except (psycopg.Error, OSError):
            return True
        return self.pgconn.status != _OK or self._fatal_notices.received
