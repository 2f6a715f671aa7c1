"""The lock that lets one task at a time use a connection."""

import attrs
import trio
from psycopg.pq.abc import PGconn
from trio.lowlevel import ParkingLot, Task, current_task

from trioboss.postgres.connection.cancellation import CancelGrace, CancellationPolicy, current_policy
from trioboss.postgres.connection.waiting import abort

__all__ = ["ConnectionLock"]


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
