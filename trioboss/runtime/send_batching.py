"""Sends at the same time share a transaction.

A send that finds no other one of its queue under way is executed at once. Sends that come in the meantime wait, and are
then executed together, in one statement: the more there are, the less each of them costs, and a single one waits for
nothing.

Workers are notified after the commit of the statement. A single send after a pause notifies within its transaction,
which is 0.15 ms faster. Not every send may do that: a NOTIFY holds a lock of the whole database until its transaction
is on disk.
"""

import enum
import math
from uuid import UUID

import attrs
import trio

from trioboss.errors import DatabaseUnavailable
from trioboss.model.ids import make_id
from trioboss.model.job import NewJob
from trioboss.model.payload import JsonInput
from trioboss.postgres import Pool
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = ["SendBatcher"]

# In one statement, besides its first send.
_MAX_SENDS = 200
_MAX_CHARACTERS = 1_000_000  # of data
_PAUSE = 0.002  # seconds after the last send ended until one counts as single
_CANCEL_GRACE = 5.0  # seconds that a cancelled send waits for the statement that it is part of


class _State(enum.Enum):
    WAITING = enum.auto()
    FIRST = enum.auto()
    """It is the first of the next statement, and has to execute it."""
    SENT = enum.auto()
    FAILED = enum.auto()


@attrs.define(eq=False)
class _PendingSend:
    """A job on its way: its id, its data as JSON text, and its state."""

    id: UUID
    data: str | None
    state: _State = _State.WAITING
    error: BaseException | None = None
    _changed: trio.Event = attrs.field(factory=trio.Event)

    async def wait(self) -> None:
        await self._changed.wait()

    def set(self, state: _State, error: BaseException | None = None) -> None:
        self.state, self.error = state, error
        self._changed.set()


@attrs.define(eq=False)
class SendBatcher:
    """Sends jobs that have nothing but data, to queues of the policy standard.

    Invariant: a queue has an entry in ``_waiting`` while one of its sends executes a statement. That first send takes
    as many pending sends along as fit into the statement. When it ends, the first of those that wait executes the next.
    """

    _pool: Pool
    _store: Store
    _waiting: dict[str, list[_PendingSend]] = attrs.field(factory=dict, init=False)
    _ended_at: float = attrs.field(default=-math.inf, init=False)
    """When the last statement ended."""

    async def send(self, queue: str, data: JsonInput) -> UUID | None:
        """Send a job and return its id."""
        send = _PendingSend(make_id(), self._store.sending.write_data(data))
        waiting = self._waiting.get(queue)
        if waiting is None:
            self._waiting[queue] = []
            return await self._send_with_waiting(queue, send)
        waiting.append(send)
        await self._wait(send, waiting)
        if send.state is _State.FIRST:
            return await self._send_with_waiting(queue, send)
        if send.state is _State.FAILED:
            return await self._send_alone(queue, send)
        return send.id

    async def _wait(self, send: _PendingSend, waiting: list[_PendingSend]) -> None:
        try:
            await send.wait()
        except trio.Cancelled:
            if send in waiting:
                waiting.remove(send)
                raise
            # It is in a statement that is under way: only its end shows whether the job was sent.
            with trio.move_on_after(_CANCEL_GRACE, shield=True):
                await send.wait()
            if send.state is not _State.SENT:
                raise

    async def _send_with_waiting(self, queue: str, send: _PendingSend) -> UUID | None:
        # Taken before the first await: a send that comes from now on waits for the next statement.
        sends = [send, *_take(self._waiting[queue])]
        state, failure = _State.FAILED, None
        try:
            if await execute(self._make_operation(queue, sends), self._pool):
                state = _State.SENT
        except BaseException as error:
            failure = error
            if len(sends) == 1 or not isinstance(error, Exception):
                raise
        finally:
            # Also if this send is cancelled: the others try again, each alone and with the same id.
            for other in sends[1:]:
                other.set(state, failure)
            self._ended_at = trio.current_time()
            self._start_next(queue)
        send.error = failure
        return send.id if state is _State.SENT else await self._send_alone(queue, send)

    def _make_operation(self, queue: str, sends: list[_PendingSend]) -> Operation[bool]:
        # No other queue sends either: the lock of a NOTIFY belongs to the whole database.
        is_single = len(sends) == len(self._waiting) == 1
        if is_single and trio.current_time() - self._ended_at >= _PAUSE:
            return self._store.sending.send_and_notify(queue, sends[0])
        return self._store.sending.send_plain(queue, sends)

    def _start_next(self, queue: str) -> None:
        waiting = self._waiting[queue]
        if waiting:
            waiting.pop(0).set(_State.FIRST)
        else:
            del self._waiting[queue]

    async def _send_alone(self, queue: str, send: _PendingSend) -> UUID | None:
        """Send again, alone: the failure may be that of another job in the statement.

        With the same id, so that it is one job even if the statement was executed.
        """
        if isinstance(send.error, DatabaseUnavailable):
            raise type(send.error)(*send.error.args) from send.error
        job = NewJob(id=send.id)
        operation = self._store.sending.send_encoded(queue, job, send.id, send.data, own=True)
        return await execute(operation, self._pool)


def _take(waiting: list[_PendingSend]) -> list[_PendingSend]:
    """Take the sends that fit into one statement, besides the first one."""
    count = size = 0
    for send in waiting[:_MAX_SENDS]:
        size += len(send.data or "")
        if size > _MAX_CHARACTERS:
            break
        count += 1
    sends = waiting[:count]
    del waiting[:count]
    return sends
