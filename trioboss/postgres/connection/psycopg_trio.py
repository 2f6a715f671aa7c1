"""psycopg's AsyncConnection with trio's waiting and cancellation, and the lock that lets one task at a time use it.

A cancelled scope means for an operation on a connection:

- Cancelled before the operation starts: nothing is sent.
- Cancelled during a query: the query is cancelled on the server too, and the connection reads on until it is usable
  again. If the query completed nevertheless, its result is returned, and trio delivers the cancellation at the next
  checkpoint: nothing is ever "committed but reported as cancelled".
- COMMIT, ROLLBACK and the end of a transaction, pipeline, COPY or cursor run even in a cancelled scope.
- All this takes `cancel_grace` seconds at most. If the server has not answered by then, the connection is closed, and
  the outcome of the last statement stays unknown.
"""

import math
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Protocol, cast

import attrs
import psycopg
import trio
from psycopg import (
    AsyncConnection,
    AsyncCursor,
    AsyncPipeline,
    AsyncServerCursor,
    AsyncTransaction,
    Xid,
    capabilities,
    errors,
    pq,
)
from psycopg.abc import RV, PQGen
from psycopg.pq.abc import PGconn
from psycopg.rows import AsyncRowFactory, Row, tuple_row
from trio.lowlevel import (
    ParkingLot,
    Task,
    cancel_shielded_checkpoint,
    checkpoint_if_cancelled,
    current_task,
    notify_closing,
    wait_readable,
)

from trioboss.postgres.connection.cancellation import (
    CancelGrace,
    CancellationPolicy,
    apply_policies,
    cancel_request,
    current_policy,
    with_policy,
)
from trioboss.postgres.connection.cursor import Cursor, ServerCursor
from trioboss.postgres.connection.waiting import GeneratorRun, abort
from trioboss.postgres.contract import check_contract

__all__ = ["TrioConnection"]

check_contract()

_OK = pq.ConnStatus.OK
_ACTIVE = pq.TransactionStatus.ACTIVE
_NO_PIPELINE = pq.PipelineStatus.OFF
_COPYING = frozenset({pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH})


@attrs.define(eq=False)
class ConnectionLock:
    """A FIFO lock with three differences from `trio.Lock`.

    Acquiring it when it is free is not a checkpoint: the operation that follows has one, and a second one would cost a
    fifth of a round trip. Any task may release it, because trio finalizes an abandoned async generator (`stream()`) in
    another task. A task that already holds it gets an error instead of a deadlock.
    """

    pgconn: PGconn
    grace: CancelGrace
    """How long clean-up code waits for the lock in a cancelled scope. After that the connection is closed, because
    without its clean-up it cannot be used any more."""
    # Two fields, because `release` clears the owner before the next task, which has not run yet, becomes it.
    _locked: bool = attrs.field(default=False, init=False)
    _owner: Task | None = attrs.field(default=None, init=False)
    _waiting: ParkingLot = attrs.field(factory=ParkingLot, init=False)

    def locked(self) -> bool:
        """Tell whether some task is using the connection."""
        return self._locked

    async def acquire(self) -> None:
        """Wait until the connection is free, and take it."""
        if self._locked:
            await self._wait()
        self._locked = True
        self._owner = current_task()

    def release(self) -> None:
        """Hand the connection to the task that has waited longest, if any."""
        self._owner = None
        # Invariant: it stays locked during the handover, so no other task can acquire it in between.
        if self._waiting:
            self._waiting.unpark()
        else:
            self._locked = False

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc_info: object) -> None:
        self.release()

    async def _wait(self) -> None:
        if self._owner is current_task():
            raise RuntimeError(
                "deadlock: this task is in the middle of an operation on this connection already, for "
                "instance inside `async for row in cursor.stream(...)` or `async with cursor.copy(...)`"
            )
        try:
            await self._waiting.park()
        except trio.Cancelled:
            if current_policy() is CancellationPolicy.ORDINARY:
                raise
            # Clean-up code waits again, at the end of the queue: parking is not resumable.
            with self.grace.shield():
                await self._waiting.park()
                return
            abort(self.pgconn, "its clean-up could not acquire the connection's lock in time")
            raise


class Progress(Protocol):
    """How far a generator has come that runs several transactions; decides how it is cancelled."""

    def is_single(self) -> bool:
        """Tell whether only one transaction is in flight, so that a cancel request can hit no other one."""

    def is_committed(self) -> bool:
        """Tell whether the first transaction is committed: then the others are not cancelled any more."""


class TrioConnection(AsyncConnection[Row]):
    """A `psycopg.AsyncConnection` for trio: the same interface, with trio's cancellation."""

    cancel_retry: float = 0.25
    """Seconds after which a cancel request is repeated. A generator may consist of several statements, and a request
    that arrives between two of them has no effect."""

    lock: Any  # psycopg's is an asyncio.Lock

    def __init__(self, pgconn: PGconn, row_factory: AsyncRowFactory[Row] | None = None) -> None:
        super().__init__(pgconn, row_factory or cast("AsyncRowFactory[Row]", tuple_row))
        self._cancel_grace = CancelGrace(5.0)
        self.lock = ConnectionLock(pgconn, self._cancel_grace)
        self.cursor_factory: type[AsyncCursor[Row]] = Cursor
        self.server_cursor_factory: type[AsyncServerCursor[Row]] = ServerCursor
        self._runs_without_wait = 0
        self._reading_to_end = False  # of a stream or COPY that was left early

    @property
    def cancel_grace(self) -> float:
        """The seconds that clean-up may take after a cancellation, before the connection is closed instead."""
        return self._cancel_grace.seconds

    @cancel_grace.setter
    def cancel_grace(self, seconds: float) -> None:
        self._cancel_grace.seconds = seconds

    def shield_cleanup(self, at_most: float = math.inf) -> AbstractContextManager[None]:
        """A block of clean-up: shielded from cancellations, and interrupted after `cancel_grace` seconds."""
        return self._cancel_grace.shield(at_most)

    async def close(self) -> None:
        """Close the connection. A task that waits on it gets an OperationalError."""
        if self.pgconn.status == _OK:
            notify_closing(self.pgconn.socket)
        await super().close()

    def close_if_unfinished(self) -> None:
        """Close the connection if the last generator on it stopped half-way, and its results stay unread."""
        pgconn = self.pgconn
        if pgconn.status == _OK and (pgconn.transaction_status == _ACTIVE or pgconn.pipeline_status):
            abort(pgconn, "an operation on it was left unfinished")

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        # If the COMMIT in psycopg's __aexit__ is cancelled, the close() after it is not reached.
        try:
            await super().__aexit__(exc_type, exc_val, exc_tb)
        finally:
            await self.close()

    # -- waiting

    async def wait(self, gen: PQGen[RV], interval: float = 0.0, timeout: float | None = None) -> RV:
        """Run a generator. psycopg calls this for everything it does on the connection."""
        policy = current_policy()
        if self._reading_to_end:
            self._reading_to_end = self.pgconn.transaction_status == _ACTIVE
            policy = CancellationPolicy.FINISH if self._reading_to_end else policy
        if policy is CancellationPolicy.ORDINARY:
            await checkpoint_if_cancelled()
        if timeout is None:
            return await self.run_gen(gen, policy)
        with trio.move_on_after(timeout):
            return await self.run_gen(gen, policy)
        raise errors._WaitTimeout("wait timeout expired")

    async def run_gen(
        self, gen: PQGen[RV], policy: CancellationPolicy, progress: Progress | None = None
    ) -> RV:
        """Run a generator under this cancellation policy."""
        run = GeneratorRun(gen, self.pgconn.socket)
        try:
            result = await run.run_to_end()
        except trio.Cancelled:
            completed = await self._finish_cancelled(run, policy, progress)
            if not completed:
                raise
            return completed[0]
        except (KeyboardInterrupt, SystemExit):
            # The program ends: there is no time to cancel the statement and to read its result.
            if self.pgconn.transaction_status == _ACTIVE:
                abort(self.pgconn, "interrupted")
            raise
        if not run.waited:
            await self._yield_sometimes()
        return result

    async def _yield_sometimes(self) -> None:
        # Many short runs without a wait (COPY data, statements in a pipeline) must not starve the other tasks.
        self._runs_without_wait += 1
        if self._runs_without_wait % 16 == 0:
            await cancel_shielded_checkpoint()

    # -- cancellation

    async def _finish_cancelled(
        self, run: GeneratorRun[RV], policy: CancellationPolicy, progress: Progress | None
    ) -> list[RV]:
        """Bring a cancelled run to an end; return [result] if it completed, [] if it had no effect.

        A list, because the result itself may be None.
        """
        if self.pgconn.status != _OK or self.pgconn.transaction_status != _ACTIVE:
            return []  # the connection is lost, or no statement is in flight
        with self.shield_cleanup():
            try:
                if policy is CancellationPolicy.FINISH:
                    return [await run.run_to_end()]
                return [await self._cancel(run, progress)]
            except errors.QueryCanceled:
                # The cancel request hit a later transaction: Cancelled would hide that the first one is committed.
                if progress is not None and progress.is_committed():
                    raise
                await self._drain()
                return []
        abort(self.pgconn, f"the server did not finish within {self.cancel_grace:g} s after a cancellation")
        return []

    async def _cancel(self, run: GeneratorRun[RV], progress: Progress | None) -> RV:
        """Send cancel requests until the run ends; return its result if it completed nevertheless."""
        if progress is not None and not progress.is_single():
            # A request that arrives just after the first commit would hit the second transaction. Most pipelines end by
            # themselves within `cancel_retry`; one that does not is blocked in a transaction, and a request hits that.
            with trio.move_on_after(self.cancel_retry):
                return await run.run_to_end()
        while progress is None or not progress.is_committed():
            try:
                # The other half of the grace is for reading the results.
                await self.cancel_safe(timeout=self.cancel_grace / 2)
            except psycopg.OperationalError as error:
                return await self._finish_and_close(run, error)
            with trio.move_on_after(self.cancel_retry):
                return await run.run_to_end()
        return await run.run_to_end()

    async def _finish_and_close(self, run: GeneratorRun[RV], error: Exception) -> RV:
        # The cancel request may still arrive, and would hit the next statement: there must not be one.
        try:
            return await run.run_to_end()
        finally:
            abort(self.pgconn, f"a cancel request failed: {error}")

    async def _drain(self) -> None:
        """Read the results that a cancelled run left unread."""
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
        # psycopg calls this, and nothing else, before it reads to the end of a stream or COPY that was left early. That
        # reading has to work in a cancelled scope.
        self._reading_to_end = True
        with self.shield_cleanup(timeout):
            await super()._try_cancel(timeout=min(timeout, self.cancel_grace))

    # -- operations that a cancellation must not interrupt
    #
    # An interrupted COMMIT would leave its outcome unknown, an interrupted ROLLBACK the connection in a transaction.
    # A COMMIT that has not started is not sent in a cancelled scope: its caller is about to see Cancelled, and must not
    # find the transaction committed.

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
        async with apply_policies(
            block, enter=CancellationPolicy.FINISH, exit=CancellationPolicy.FINISH
        ) as transaction:
            yield transaction

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[AsyncPipeline]:
        """A pipeline, as in psycopg."""
        async with self._leave_cleanly(super().pipeline()) as pipeline:
            yield pipeline

    @asynccontextmanager
    async def _pipeline_nolock(self) -> AsyncIterator[AsyncPipeline]:
        async with self._leave_cleanly(super()._pipeline_nolock()) as pipeline:
            yield pipeline

    @asynccontextmanager
    async def _leave_cleanly(
        self, block: AbstractAsyncContextManager[AsyncPipeline]
    ) -> AsyncIterator[AsyncPipeline]:
        try:
            async with apply_policies(
                block, enter=CancellationPolicy.STARTED, exit=CancellationPolicy.STARTED
            ) as pipeline:
                yield pipeline
        finally:
            # If psycopg cannot leave pipeline mode, it only logs that, and the connection stays in it.
            if self._pipeline is None:
                self.close_if_unfinished()
