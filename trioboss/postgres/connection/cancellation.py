"""The meaning of a cancelled scope for an operation on a connection.

trio's cancellation is level triggered: in a cancelled scope every further wait is cancelled as well. Clean-up code
that has to wait for the server (ROLLBACK, leaving a pipeline, the end of a COPY) therefore needs another policy than a
query. psycopg's clean-up code cannot pass one along, so the policy is kept in a context variable, which
`TrioConnection.wait` reads.
"""

import contextlib
import enum
import math
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TypeVar

import attrs
import trio
from psycopg import errors, pq
from psycopg.pq.abc import PGconn
from trio.lowlevel import checkpoint_if_cancelled

from trioboss.postgres.connection.waiting import wait_polling

__all__ = [
    "CancelGrace",
    "CancellationPolicy",
    "apply_policies",
    "cancel_request",
    "current_policy",
    "with_policy",
]

T = TypeVar("T")


class CancellationPolicy(enum.IntEnum):
    """The meaning of a cancelled scope for the generator that is about to run. A higher value protects more."""

    ORDINARY = 0
    """Do not start. If already started: send a cancel request, and read on until the server has answered."""
    STARTED = 1
    """Start nevertheless, because it is part of something that has started. Then as ORDINARY."""
    FINISH = 2
    """Start and run to the end: for COMMIT and ROLLBACK, whose interruption would leave the outcome unknown."""


@attrs.define(eq=False)
class CancelGrace:
    """The time that clean-up may take after a cancellation. A change applies to clean-up that is under way, too."""

    _seconds: float
    _scopes: set[trio.CancelScope] = attrs.field(factory=set, init=False)
    """Of the clean-up that is under way."""

    @property
    def seconds(self) -> float:
        """How long clean-up may take."""
        return self._seconds

    @seconds.setter
    def seconds(self, seconds: float) -> None:
        self._seconds = seconds
        if self._scopes:
            latest = trio.current_time() + seconds
            for scope in self._scopes:
                scope.deadline = min(scope.deadline, latest)

    @contextlib.contextmanager
    def shield(self, at_most: float = math.inf) -> Iterator[None]:
        """A block of clean-up: shielded from cancellations, and interrupted when the grace is over."""
        with trio.move_on_after(min(self._seconds, at_most), shield=True) as scope:
            self._scopes.add(scope)
            try:
                yield
            finally:
                self._scopes.discard(scope)


_policy: ContextVar[CancellationPolicy] = ContextVar("trioboss_policy", default=CancellationPolicy.ORDINARY)
current_policy: Callable[[], CancellationPolicy] = _policy.get


@contextlib.contextmanager
def with_policy(policy: CancellationPolicy) -> Iterator[None]:
    """Apply at least this policy to everything that the task does in the block."""
    # The maximum, because clean-up code may contain operations with a weaker policy of their own: a ROLLBACK inside the
    # end of a pipeline.
    token = _policy.set(max(policy, _policy.get()))
    try:
        yield
    finally:
        _policy.reset(token)


@contextlib.asynccontextmanager
async def apply_policies(
    manager: AbstractAsyncContextManager[T], *, enter: CancellationPolicy, exit: CancellationPolicy
) -> AsyncGenerator[T]:
    """Enter and leave a context manager of psycopg under the given policies. The block itself is ordinary.

    If the scope is cancelled when the block ends without an error, the manager is left as if the block had raised
    Cancelled: a transaction is rolled back, and never "committed but reported as cancelled". Inside another manager
    that is being left this has been decided before.
    """
    if current_policy() is CancellationPolicy.ORDINARY:
        await checkpoint_if_cancelled()
    with with_policy(enter):
        value = await manager.__aenter__()
    try:
        yield value
        if current_policy() is CancellationPolicy.ORDINARY:
            await checkpoint_if_cancelled()
    except BaseException as error:
        with with_policy(exit):
            if not await manager.__aexit__(type(error), error, error.__traceback__):
                raise  # the only exception that psycopg suppresses is its own Rollback
    else:
        with with_policy(exit):
            await manager.__aexit__(None, None, None)


async def cancel_request(pgconn: PGconn) -> None:
    """Ask the server to cancel the statement that this connection is executing.

    Returns when the server has closed the connection of the request, which it does after it has signalled the backend.
    Anything that is sent after that cannot be hit by the signal.
    """
    request = pgconn.cancel_conn()
    try:
        request.start()
        while (status := request.poll()) != pq.PollingStatus.OK:
            if status == pq.PollingStatus.FAILED:
                raise errors.OperationalError(f"cancellation failed: {request.get_error_message()}")
            await wait_polling(request.socket, status)
    finally:
        request.finish()
