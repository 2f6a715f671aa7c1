"""The lock that lets one task at a time talk on a connection."""

import attrs
import trio
from psycopg.pq.abc import PGconn
from trio.lowlevel import ParkingLot, Task, current_task

from trioboss.postgres.cancellation import CancellationPolicy, current_policy
from trioboss.postgres.waiting import abort

__all__ = ["ConnectionLock"]


@attrs.define(eq=False)
class ConnectionLock:
    """A FIFO lock with three differences from `trio.Lock`.

    Taking it when it is free is not a checkpoint: the dialogue that follows is one, and a second one
    would cost a fifth of a round trip. Anyone may release it, because trio finalises an abandoned async
    generator (`stream()`) in another task. A task that waits for itself is told so.
    """

    pgconn: PGconn
    grace: float
    """How long a clean-up waits for the lock in a cancelled scope. After that the connection is closed:
    without its clean-up it is of no use to anybody."""
    _locked: bool = attrs.field(default=False, init=False)
    _owner: Task | None = attrs.field(default=None, init=False)
    _waiting: ParkingLot = attrs.field(factory=ParkingLot, init=False)

    def locked(self) -> bool:
        """Tell whether some task is talking on the connection."""
        return self._locked

    async def acquire(self) -> None:
        """Wait until the connection is free, and take it."""
        if self._locked:
            await self._wait_turn()
        self._locked = True
        self._owner = current_task()

    def release(self) -> None:
        """Hand the connection to the task that has waited longest, if any."""
        self._owner = None
        # Invariant: it stays locked while it changes hands, so nobody can get in between.
        if self._waiting:
            self._waiting.unpark()
        else:
            self._locked = False

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc_info: object) -> None:
        self.release()

    async def _wait_turn(self) -> None:
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
            with trio.move_on_after(self.grace, shield=True):
                await self._waiting.park()
                return
            abort(self.pgconn, "a clean-up could not get hold of it")
            raise
