"""The connection that trioboss works with, and hands to users for their own transactions."""

import math
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
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

from trioboss.postgres.cancellation import CancellationPolicy
from trioboss.postgres.connecting import open_pgconn
from trioboss.postgres.settings import RESET, settings_step
from trioboss.postgres.trio_connection import TrioConnection
from trioboss.postgres.waiting import Dialogue, is_readable
from trioboss.postgres.wire import BoundStatement, Pipeline, PreparedStatements, Results, Transactions

__all__ = ["Connection"]

_OK = pq.ConnStatus.OK
_IDLE = pq.TransactionStatus.IDLE


@attrs.define(eq=False)
class _LastWords:
    """Hears the server say good-bye to an idle connection, which may be well before it hangs up."""

    said: bool = False

    def hear(self, notice: errors.Diagnostic) -> None:
        self.said = self.said or notice.severity_nonlocalized in ("FATAL", "PANIC")


class Connection(TrioConnection[Row]):
    """psycopg under trio, and besides: `run`, `wait_notifies`, `ping` and `is_stale`."""

    def __init__(self, pgconn: PGconn, row_factory: AsyncRowFactory[Row] | None = None) -> None:
        super().__init__(pgconn, row_factory)
        self._statements: PreparedStatements | None = None
        self._unread: Pipeline | None = None  # whose follow_up has not been read yet
        self._first_step: BoundStatement | None = None
        self._last_words = _LastWords()
        self.add_notice_handler(self._last_words.hear)

    @classmethod
    async def connect(  # type: ignore[override]  # psycopg would take `settings` for a word of the conninfo
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
        """Connect as psycopg does, then apply the run-time `settings` in one round trip.

        `prepare=False` is for transaction poolers: nothing is prepared under a name, by `run` or by psycopg.
        """
        connection = cls(await open_pgconn(conninfo_to_dict(conninfo, **kwargs)))
        if settings:
            await connection.begin_session(settings_step(settings))
        connection._autocommit = autocommit
        connection._statements = PreparedStatements() if prepare else None
        connection.prepare_threshold = prepare_threshold if prepare else None
        if row_factory is not None:
            connection.row_factory = row_factory
        if cursor_factory is not None:
            connection.cursor_factory = cursor_factory
        if context is not None:
            connection._adapters = AdaptersMap(context.adapters)
        return connection

    async def begin_session(self, step: BoundStatement) -> None:
        """Execute the first statement of a new session, or close the connection."""
        delivery = Pipeline(self.pgconn, [[step]], None)
        self._first_step = step
        try:
            await self.converse(delivery.converse(), CancellationPolicy.ORDINARY)
        except BaseException:
            await self.close()
            raise

    async def begin_anew(self) -> None:
        """Take back the settings and locks that somebody left in the session, which is then as it was at first.

        Behind a transaction pooler there is no session that would be ours.
        """
        if self._statements is not None and self._first_step is not None:
            await self.run([[*RESET, self._first_step]])

    # -- the hot path

    async def run(self, transactions: Transactions, follow_up: Sequence[BoundStatement] = ()) -> Results:
        """Send these transactions in one flush; return the results of their steps, in binary format.

        In autocommit, outside a transaction block, each commits by itself: after an error the others ran.
        Otherwise all of them are part of the transaction that is open, or that psycopg would open now.
        The first error is raised when everything has been read, so that the connection stays usable.
        A cancellation stops the flush on the server, unless its first transaction is committed already: the
        others are taken for its follow_up.

        An explicit `follow_up` is one more transaction that is sent along and not waited for: it must not matter to
        the caller whether it succeeds. Until `read_follow_up` the connection is good for `run` only.
        """
        await self.lock.acquire()
        try:
            await checkpoint_if_cancelled()
            if self._unread is not None and not self._autocommit:
                await self._read_follow_up(self._unread)
            if self._pipeline is not None:
                raise errors.ProgrammingError("run() cannot be used inside pipeline(): see run_in_caller()")
            return await self._run(transactions, follow_up)
        finally:
            self.lock.release()

    async def _run(self, transactions: Transactions, follow_up: Sequence[BoundStatement]) -> Results:
        delivery = self._new_delivery(transactions, follow_up)
        try:
            return await self._deliver(delivery)
        except psycopg.Error as error:
            if self._statements is None or not delivery.repeatable(error):
                raise
            self._statements.forget_all()
        if self._unread is not None:
            await self._read_follow_up(self._unread)
        return await self._deliver(self._new_delivery(transactions, follow_up))

    def _new_delivery(self, transactions: Transactions, follow_up: Sequence[BoundStatement]) -> Pipeline:
        earlier, self._unread = self._unread, None
        idle = earlier is not None or self.pgconn.transaction_status == _IDLE
        begin = None if self._autocommit or not idle else self._get_tx_start_command()
        in_block = not (idle and self._autocommit)
        return Pipeline(self.pgconn, transactions, self._statements, begin, in_block, follow_up, earlier)

    async def _deliver(self, delivery: Pipeline) -> Results:
        try:
            return await self.converse(delivery.converse(), CancellationPolicy.STARTED, delivery)
        finally:
            if delivery.awaits_follow_up():
                self._unread = delivery
            else:
                self.close_unless_settled()

    @property
    def awaits_follow_up(self) -> bool:
        """Whether the follow_up of the last `run` has not been read yet."""
        return self._unread is not None and self.pgconn.status == _OK

    async def read_follow_up(self) -> None:
        """Wait for the end of the follow_up of the last `run`, if any."""
        async with self.lock:
            if self._unread is not None:
                await self._read_follow_up(self._unread)

    async def _read_follow_up(self, delivery: Pipeline) -> None:
        try:
            await self.converse(delivery.finish(), CancellationPolicy.FINISH)
        finally:
            self._unread = None
            self.close_unless_settled()

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        # psycopg drops every prepared statement of the session after a ROLLBACK or DDL, ours among them.
        if name is None and self._statements is not None:
            self._statements.forget_all()
        return super()._deallocate(name)

    # -- notifications and health

    async def wait_notifies(self, timeout: float | None = None) -> list[Notify]:
        """Return the notifications that came since the last call, waiting for one if there are none.

        Returns an empty list after `timeout` seconds. A cancelled call loses nothing: what it has read is
        returned by the next one. Notifications go to the handlers instead if there are any, as in psycopg.
        """
        if timeout is None:
            await self._receive_notifies()
        else:
            await checkpoint_if_cancelled()
            with trio.move_on_after(timeout):
                await self._receive_notifies(at_once=True)
        backlog = self._backlog()
        received = list(backlog)
        backlog.clear()
        return received

    async def _receive_notifies(self, *, at_once: bool = False) -> None:
        # `at_once`: also what could be read without waiting, since there may be no time to wait.
        async with self.lock:
            pgconn = self.pgconn
            self._collect_notifies()
            if at_once and not self._backlog() and is_readable(pgconn.socket):
                pgconn.consume_input()
                self._collect_notifies()
            if self._backlog():
                await checkpoint()  # who hears a flood must let others run, too
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
        # psycopg keeps here what arrives during any operation.
        assert self._notifies_backlog is not None
        return self._notifies_backlog

    async def notifies(
        self, *, timeout: float | None = None, stop_after: int | None = None
    ) -> AsyncGenerator[Notify]:
        """As in psycopg, but other tasks may use the connection while the caller looks at a notification."""
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

    async def ping(self, timeout: float = 5.0) -> None:
        """Prove that the server answers on this connection, or close it and raise OperationalError.

        A bare Sync goes there and back: no statement is executed, so none is counted or logged. It is
        not interrupted by a cancellation, but it never takes longer than the timeout. The end of a follow_up is
        as good a proof.
        """
        async with self.lock:
            await checkpoint_if_cancelled()
            if self._pipeline is not None:
                raise errors.ProgrammingError("ping() cannot be used inside pipeline()")
            unread, self._unread = self._unread, None
            dialogue = Dialogue(unread.finish() if unread else self._sync_gen(), self.pgconn.socket)
            try:
                with trio.move_on_after(timeout, shield=True):
                    await dialogue.carry_on()
                    return
            finally:
                self.close_unless_settled()
            raise errors.OperationalError(f"the server did not answer within {timeout} s")

    def _sync_gen(self) -> PQGen[None]:
        self.pgconn.enter_pipeline_mode()
        self.pgconn.pipeline_sync()
        yield from generators.send(self.pgconn)
        yield from generators.fetch_many(self.pgconn)
        self.pgconn.exit_pipeline_mode()

    def is_stale(self) -> bool:
        """Tell, without a round trip, whether the server has closed this idle connection."""
        # An idle server has nothing to say but notices, notifications and good-bye.
        try:
            while self.pgconn.status == _OK and is_readable(self.pgconn.socket):
                self.pgconn.consume_input()
                self._collect_notifies()
        except (psycopg.Error, OSError):
            return True
        return self.pgconn.status != _OK or self._last_words.said
