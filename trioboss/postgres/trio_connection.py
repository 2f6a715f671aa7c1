"""psycopg's asynchronous connection, driven by trio.

What a cancelled scope means here:

- Cancelled before an operation starts: nothing is sent.
- Cancelled in mid-query: the query is cancelled on the server too, and the connection reads on until it is
  usable again. If the query completed all the same, its result is returned, and trio delivers the
  cancellation at the next checkpoint: nothing is ever "committed but reported cancelled".
- COMMIT, ROLLBACK and the end of a transaction, pipeline, COPY or cursor happen even in a cancelled scope.
- All this takes `cancel_grace` seconds at most. A server that does not answer by then loses the connection,
  and what became of the last statement stays unknown.
"""

import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, cast

import psycopg
import trio
from psycopg import AsyncConnection, AsyncPipeline, AsyncTransaction, Xid, capabilities, errors, pq
from psycopg.abc import RV, PQGen
from psycopg.pq.abc import PGconn
from psycopg.rows import AsyncRowFactory, Row, tuple_row
from trio.lowlevel import cancel_shielded_checkpoint, checkpoint_if_cancelled, notify_closing, wait_readable

from trioboss.postgres.cancellation import CancellationPolicy, current_policy, handled_with, with_policy
from trioboss.postgres.contract import check_contract
from trioboss.postgres.cursor import Cursor, ServerCursor
from trioboss.postgres.lock import ConnectionLock
from trioboss.postgres.waiting import Dialogue, abort, cancel_request

__all__ = ["TrioConnection"]

check_contract()

_OK = pq.ConnStatus.OK
_ACTIVE = pq.TransactionStatus.ACTIVE
_NO_PIPELINE = pq.PipelineStatus.OFF
_COPYING = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})


class Progress(Protocol):
    """What a dialogue of several transactions tells about itself, so that it is cancelled with sense."""

    def is_single(self) -> bool:
        """Tell whether there is only one transaction, which a cancel request hits or misses."""

    def is_committed(self) -> bool:
        """Tell whether the first transaction is committed: then the others are seen through."""


class TrioConnection(AsyncConnection[Row]):
    """A `psycopg.AsyncConnection` for trio: the same interface, with trio's cancellation."""

    cancel_retry: float = 0.25
    """A dialogue may consist of several statements: one that outlives a cancel request by this many
    seconds gets another."""

    lock: Any  # psycopg's is an asyncio.Lock

    def __init__(self, pgconn: PGconn, row_factory: AsyncRowFactory[Row] | None = None) -> None:
        super().__init__(pgconn, row_factory or cast("AsyncRowFactory[Row]", tuple_row))
        self.lock = ConnectionLock(pgconn, grace=5.0)
        self.cursor_factory = Cursor
        self.server_cursor_factory = ServerCursor
        self._unwaited = 0
        self._winding_up = False

    @property
    def cancel_grace(self) -> float:
        """How long a clean-up may take after a cancellation, before the connection is closed instead."""
        grace: float = self.lock.grace
        return grace

    @cancel_grace.setter
    def cancel_grace(self, seconds: float) -> None:
        self.lock.grace = seconds

    async def close(self) -> None:
        """Close the connection. A task that waits on it gets an OperationalError."""
        if self.pgconn.status == _OK:
            notify_closing(self.pgconn.socket)
        await super().close()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        # psycopg would not come to close() if the COMMIT before it were cancelled.
        try:
            await super().__aexit__(exc_type, exc_val, exc_tb)
        finally:
            await self.close()

    # -- waiting

    async def wait(self, gen: PQGen[RV], interval: float = 0.0, timeout: float | None = None) -> RV:
        """Drive one of psycopg's dialogues. Everything it does on a connection comes through here."""
        care = current_policy()
        if self._winding_up:
            self._winding_up = self.pgconn.transaction_status == _ACTIVE
            care = CancellationPolicy.FINISH if self._winding_up else care
        if care is CancellationPolicy.ORDINARY:
            await checkpoint_if_cancelled()
        if timeout is None:
            return await self.converse(gen, care)
        with trio.move_on_after(timeout):
            return await self.converse(gen, care)
        raise errors._WaitTimeout("wait timeout expired")

    async def converse(
        self, gen: PQGen[RV], care: CancellationPolicy, progress: Progress | None = None
    ) -> RV:
        """Drive a dialogue with this much care."""
        dialogue = Dialogue(gen, self.pgconn.socket)
        try:
            result = await dialogue.carry_on()
        except trio.Cancelled:
            completed = await self._see_through(dialogue, care, progress)
            if not completed:
                raise
            return completed[0]
        except (KeyboardInterrupt, SystemExit):
            if self.pgconn.transaction_status == _ACTIVE:
                abort(self.pgconn, "interrupted")
            raise
        if not dialogue.waited:
            await self._be_fair()
        return result

    async def _be_fair(self) -> None:
        # Many short dialogues without a wait (COPY data, a pipeline) must not starve the other tasks either.
        self._unwaited += 1
        if self._unwaited % 16 == 0:
            await cancel_shielded_checkpoint()

    # -- cancellation

    async def _see_through(
        self, dialogue: Dialogue[RV], care: CancellationPolicy, progress: Progress | None
    ) -> list[RV]:
        """After a cancellation: return [result] if the dialogue completed, [] if it did not happen."""
        if self.pgconn.status != _OK or self.pgconn.transaction_status != _ACTIVE:
            return []  # lost, or nothing is in flight
        with trio.move_on_after(self.cancel_grace, shield=True):
            try:
                if care is CancellationPolicy.FINISH:
                    return [await dialogue.carry_on()]
                return [await self._stop(dialogue, progress)]
            except errors.QueryCanceled:
                if progress is not None and progress.is_committed():
                    raise
                await self._drain()
                return []
        abort(self.pgconn, "the server did not finish in time after a cancellation")
        return []

    async def _stop(self, dialogue: Dialogue[RV], progress: Progress | None) -> RV:
        if progress is not None and not progress.is_single():
            # A request that arrives just after the first commit would hit the second transaction. Given a
            # moment, most flushes complete by themselves, and what is left is blocked for good.
            with trio.move_on_after(self.cancel_retry):
                return await dialogue.carry_on()
        while progress is None or not progress.is_committed():
            try:
                await self.cancel_safe(timeout=self.cancel_grace / 2)
            except psycopg.OperationalError as error:
                return await self._finish_and_close(dialogue, error)
            with trio.move_on_after(self.cancel_retry):
                return await dialogue.carry_on()
        return await dialogue.carry_on()

    async def _finish_and_close(self, dialogue: Dialogue[RV], error: Exception) -> RV:
        # A cancel request of unknown fate might hit the next statement: there must not be one.
        try:
            return await dialogue.carry_on()
        finally:
            abort(self.pgconn, f"a cancel request failed: {error}")

    async def _drain(self) -> None:
        """Read what a cancelled dialogue left unread."""
        pgconn = self.pgconn
        while pgconn.transaction_status == _ACTIVE and pgconn.pipeline_status == _NO_PIPELINE:
            while pgconn.is_busy():
                await wait_readable(pgconn.socket)
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is not None and result.status in _COPYING:
                return  # psycopg ends a COPY itself

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:
        """Cancel on the server what the connection is executing, as in psycopg."""
        if not self._should_cancel():
            return
        with trio.move_on_after(timeout or math.inf):
            if capabilities.has_cancel_safe():
                await cancel_request(self.pgconn)
            else:  # libpq before 17
                await trio.to_thread.run_sync(self.cancel, abandon_on_cancel=True)
            return
        raise errors.CancellationTimeout("cancellation timeout expired")

    async def _try_cancel(self, *, timeout: float = 5.0) -> None:
        # psycopg calls this, and nothing else, before it reads to the end of a stream or COPY that was left
        # early. That reading must not be refused in a cancelled scope.
        self._winding_up = True
        with trio.CancelScope(shield=True):
            await super()._try_cancel(timeout=min(timeout, self.cancel_grace))

    # -- what a cancellation must not tear

    async def commit(self) -> None:
        """Commit the pending transaction; in a cancelled scope nothing is sent."""
        await checkpoint_if_cancelled()
        with with_policy(CancellationPolicy.FINISH):
            await super().commit()

    async def rollback(self) -> None:
        """Roll back the pending transaction, in a cancelled scope too."""
        with with_policy(CancellationPolicy.FINISH):
            await super().rollback()

    async def tpc_prepare(self) -> None:
        """Prepare a two-phase transaction for its commit; in a cancelled scope nothing is sent."""
        await checkpoint_if_cancelled()
        with with_policy(CancellationPolicy.FINISH):
            await super().tpc_prepare()

    async def tpc_commit(self, xid: Xid | str | None = None) -> None:
        """Commit a prepared two-phase transaction; in a cancelled scope nothing is sent."""
        await checkpoint_if_cancelled()
        with with_policy(CancellationPolicy.FINISH):
            await super().tpc_commit(xid)

    async def tpc_rollback(self, xid: Xid | str | None = None) -> None:
        """Roll back a two-phase transaction, in a cancelled scope too."""
        with with_policy(CancellationPolicy.FINISH):
            await super().tpc_rollback(xid)

    @asynccontextmanager
    async def transaction(
        self, savepoint_name: str | None = None, force_rollback: bool = False
    ) -> AsyncIterator[AsyncTransaction]:
        """A transaction or savepoint, as in psycopg. Left in a cancelled scope it is rolled back."""
        block = super().transaction(savepoint_name, force_rollback)
        async with handled_with(
            block, enter=CancellationPolicy.FINISH, exit=CancellationPolicy.FINISH
        ) as transaction:
            yield transaction

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[AsyncPipeline]:
        """A pipeline, as in psycopg."""
        async with self._careful_pipeline(super().pipeline()) as pipeline:
            yield pipeline

    @asynccontextmanager
    async def _pipeline_nolock(self) -> AsyncIterator[AsyncPipeline]:
        async with self._careful_pipeline(super()._pipeline_nolock()) as pipeline:
            yield pipeline

    @asynccontextmanager
    async def _careful_pipeline(
        self, block: AbstractAsyncContextManager[AsyncPipeline]
    ) -> AsyncIterator[AsyncPipeline]:
        try:
            async with handled_with(
                block, enter=CancellationPolicy.STARTED, exit=CancellationPolicy.STARTED
            ) as pipeline:
                yield pipeline
        finally:
            # psycopg logs that it could not leave a pipeline, and leaves the connection in it.
            if self._pipeline is None:
                self.close_unless_settled()

    def close_unless_settled(self) -> None:
        """Close the connection if the last dialogue on it was left half-way."""
        pgconn = self.pgconn
        if pgconn.status == _OK and (pgconn.transaction_status == _ACTIVE or pgconn.pipeline_status):
            abort(pgconn, "it was left in the middle of a dialogue")
