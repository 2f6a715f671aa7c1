"""How carefully an operation on a connection treats cancellation.

trio's cancellation is level triggered: in a cancelled scope every further wait is cancelled too, so a
clean-up that has to wait (ROLLBACK, leaving a pipeline, the end of a COPY) must say that it is one. psycopg's
own clean-up code cannot say so, hence this note, which the task carries down to `Connection.wait`.
"""

import contextlib
import enum
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import TypeVar

from trio.lowlevel import checkpoint_if_cancelled

__all__ = ["CancellationPolicy", "current_policy", "handled_with", "with_policy"]

T = TypeVar("T")


class CancellationPolicy(enum.IntEnum):
    """What a cancelled scope means for the dialogue with the server that is about to start."""

    ORDINARY = 0
    """Do not start. Once under way: cancel it on the server, and see what became of it."""
    STARTED = 1
    """Start all the same, as it is a part of something begun. Then as ORDINARY."""
    FINISH = 2
    """Start, and see it through: a COMMIT or ROLLBACK must not be torn."""


_care: ContextVar[CancellationPolicy] = ContextVar("trioboss_care", default=CancellationPolicy.ORDINARY)
current_policy = _care.get


@contextlib.contextmanager
def with_policy(care: CancellationPolicy) -> Iterator[None]:
    """Treat what this task does in the block with at least this much care."""
    token = _care.set(max(care, _care.get()))
    try:
        yield
    finally:
        _care.reset(token)


@contextlib.asynccontextmanager
async def handled_with(
    manager: AbstractAsyncContextManager[T], *, enter: CancellationPolicy, exit: CancellationPolicy
) -> AsyncGenerator[T]:
    """Enter and leave a context manager of psycopg with care; the block itself is ordinary.

    A block that ends well in a cancelled scope is left as if it had raised Cancelled, so that a transaction
    is rolled back and never "committed but reported cancelled". Inside another careful exit that decision
    has been taken already.
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
                raise  # what psycopg swallows is its own Rollback, never a cancellation
    else:
        with with_policy(exit):
            await manager.__aexit__(None, None, None)
