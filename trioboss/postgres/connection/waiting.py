"""Waits for sockets, and runs psycopg's generators.

psycopg writes everything it does with libpq as a generator that yields what the socket has to be ready for (`Wait`), is
sent what it is ready for (`Ready`), and never waits itself. This module does the waiting, with trio.
"""

import errno
import logging
import select
from collections.abc import Awaitable, Callable
from typing import Generic

import attrs
import trio
from psycopg import errors, pq
from psycopg.abc import RV, PQGen
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait
from trio.lowlevel import checkpoint, notify_closing, wait_readable, wait_writable

__all__ = ["GeneratorRun", "abort", "is_readable", "poll_now", "wait_polling", "wait_ready"]

logger: logging.Logger = logging.getLogger("trioboss.postgres")

# As plain integers, which compare faster than the members of an enum.
_R, _W, _RW = int(Wait.R), int(Wait.W), int(Wait.RW)
_READY_R = int(Ready.R)
_READABLE = select.POLLIN | select.POLLHUP | select.POLLERR


def poll_now(fd: int) -> int:
    """Return what the socket is ready for, as `Ready` flags, without waiting."""
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLOUT)
    ready = 0
    for _, event in poll.poll(0):
        if event & select.POLLNVAL:
            raise OSError(errno.EBADF, "the socket is closed")
        if event & _READABLE:
            ready |= Ready.R
        if event & select.POLLOUT:
            ready |= Ready.W
    return ready


def is_readable(fd: int) -> bool:
    """Tell whether reading from the socket would not block."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


async def wait_ready(fd: int, wanted: int) -> int:
    """Wait until the socket is readable, writable or either, as wanted; return the `Ready` flags."""
    if wanted == _R:
        await wait_readable(fd)
        return Ready.R
    if wanted == _W:
        await wait_writable(fd)
        return Ready.W
    return await _wait_either(fd)


async def wait_polling(fd: int, status: int) -> None:
    """Wait for what a poll function of libpq (`PQconnectPoll`, `PQcancelPoll`) asked for."""
    await wait_ready(fd, Wait.R if status == pq.PollingStatus.READING else Wait.W)


async def _wait_either(fd: int) -> int:
    # A trio task can wait for one thing only, so two tasks wait and the first to return cancels the other. This happens
    # only when the socket's buffers are full, so it need not be fast.
    ready = 0
    failure: Exception | None = None

    async def wait_one(wait: Callable[[int], Awaitable[None]], flag: Ready) -> None:
        nonlocal ready, failure
        try:
            await wait(fd)
            ready |= flag
        except (OSError, trio.ClosedResourceError) as error:
            failure = error  # raised outside the nursery, which would wrap it in a group
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_one, wait_readable, Ready.R)
        nursery.start_soon(wait_one, wait_writable, Ready.W)
    if failure is not None:
        raise failure
    return ready


@attrs.define(eq=False)
class GeneratorRun(Generic[RV]):
    """One run of a psycopg generator on a socket."""

    gen: PQGen[RV]
    fd: int
    waited: bool = attrs.field(default=False, init=False)
    """Whether there was a checkpoint during the run, so that other tasks could run."""
    _wanted: int = attrs.field(default=0, init=False)  # 0 before the generator has started
    _polled: int = attrs.field(default=0, init=False)

    async def run_to_end(self) -> RV:
        """Run the generator to its end and return its result. After a cancellation it can be called again to go on."""
        try:
            if not self._wanted:
                self._wanted = next(self.gen)
            while True:
                if self._wanted == _R:  # nearly always
                    self.waited = True
                    await wait_readable(self.fd)
                    self._wanted = self.gen.send(_READY_R)
                else:
                    self._wanted = self.gen.send(await self._wait())
        except StopIteration as stop:
            result: RV = stop.value
            return result
        except (OSError, trio.ClosedResourceError) as error:
            raise errors.OperationalError("the connection is closed") from error

    async def _wait(self) -> int:
        # In a pipeline psycopg asks for RW before each command. The socket is nearly always writable, and a poll (1 us)
        # is much cheaper than a wait. Every 16th time the other tasks get a chance to run.
        if self._wanted == _RW and (ready := poll_now(self.fd)):
            self._polled += 1
            if self._polled % 16 == 0:
                await checkpoint()
                self.waited = True
            return ready
        self.waited = True
        return await wait_ready(self.fd, self._wanted)


def abort(pgconn: PGconn, reason: str) -> None:
    """Close a connection that is in an unknown state, and wake the tasks that wait on its socket."""
    if pgconn.status != pq.ConnStatus.BAD:
        logger.warning("closing the connection of backend %d: %s", pgconn.backend_pid, reason)
        notify_closing(pgconn.socket)
    pgconn.finish()
