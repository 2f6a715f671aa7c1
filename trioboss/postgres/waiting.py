"""Drives dialogues with libpq by trio's means of waiting.

psycopg writes a dialogue as a generator that yields what it waits for and never waits itself; these
functions do the waiting. Connecting and cancelling are written on the public `psycopg.pq`, because psycopg's
own generators for them change between patch releases.
"""

import errno
import logging
import select
from collections.abc import Awaitable, Callable
from typing import Generic

import attrs
import psycopg
import trio
from psycopg import errors, pq
from psycopg.abc import RV, PQGen
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait
from trio.lowlevel import checkpoint, notify_closing, wait_readable, wait_writable

__all__ = [
    "Dialogue",
    "abort",
    "cancel_request",
    "connect_pgconn",
    "is_readable",
    "logger",
    "poll_now",
    "wait_ready",
]

logger = logging.getLogger("trioboss.postgres")

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


async def _wait_either(fd: int) -> int:
    # A trio task waits for one thing, so two tasks wait and the first to return stops the other. It comes to
    # this only when the socket's buffers are full, which is why it need not be fast.
    ready = 0
    failure: Exception | None = None

    async def wait_one(wait: Callable[[int], Awaitable[None]], flag: Ready) -> None:
        nonlocal ready, failure
        try:
            await wait(fd)
            ready |= flag
        except (OSError, trio.ClosedResourceError) as error:
            failure = error
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_one, wait_readable, Ready.R)
        nursery.start_soon(wait_one, wait_writable, Ready.W)
    if failure is not None:
        raise failure
    return ready


@attrs.define(eq=False)
class Dialogue(Generic[RV]):
    """A generator of psycopg's, and what it waits for. A cancelled `carry_on` can be called again."""

    gen: PQGen[RV]
    fd: int
    waited: bool = attrs.field(default=False, init=False)
    """Whether the other tasks had a turn on the way."""
    _wanted: int = attrs.field(default=0, init=False)  # 0 before it has begun
    _polled: int = attrs.field(default=0, init=False)

    async def carry_on(self) -> RV:
        """Drive the dialogue to its end and return its result."""
        try:
            if not self._wanted:
                self._wanted = next(self.gen)
            while True:
                if self._wanted == _R:  # nearly always
                    self.waited = True
                    await wait_readable(self.fd)
                    self._wanted = self.gen.send(_READY_R)
                else:
                    self._wanted = self.gen.send(await self._ready())
        except StopIteration as stop:
            result: RV = stop.value
            return result
        except (OSError, trio.ClosedResourceError) as error:
            raise errors.OperationalError("the connection is closed") from error

    async def _ready(self) -> int:
        # In a pipeline psycopg asks before each command whether it may read or write. It nearly always may
        # write, and to poll is much cheaper than to wait; but the other tasks want their turn too.
        if self._wanted == _RW and (ready := poll_now(self.fd)):
            self._polled += 1
            if self._polled % 16 == 0:
                await checkpoint()
                self.waited = True
            return ready
        self.waited = True
        return await wait_ready(self.fd, self._wanted)


def abort(pgconn: PGconn, why: str) -> None:
    """Close a connection whose state nobody knows any more, and wake whoever waits on its socket."""
    if pgconn.status != pq.ConnStatus.BAD:
        logger.warning("closing the connection of backend %d: %s", pgconn.backend_pid, why)
        notify_closing(pgconn.socket)
    pgconn.finish()


async def connect_pgconn(conninfo: str) -> PGconn:
    """Open one connection; the conninfo names one host, by address."""
    pgconn = pq.PGconn.connect_start(conninfo.encode())
    try:
        while True:
            if pgconn.status == pq.ConnStatus.BAD:
                raise _refusal(pgconn)
            status = pgconn.connect_poll()
            if status == pq.PollingStatus.OK:
                pgconn.nonblocking = 1
                return pgconn
            if status == pq.PollingStatus.FAILED:
                raise _refusal(pgconn)
            # libpq may change sockets on the way (another address, TLS refused): ask for it each time.
            await _wait_polling(pgconn.socket, status)
    except BaseException:
        pgconn.finish()
        raise


def _refusal(pgconn: PGconn) -> psycopg.OperationalError:
    message = pgconn.get_error_message("utf-8").strip()
    if pgconn.needs_password:
        # The one refusal that libpq tells apart in every language.
        return errors.InvalidPassword(f"connection failed: {message}")
    return errors.OperationalError(f"connection failed: {message}")


async def cancel_request(pgconn: PGconn) -> None:
    """Ask the server to cancel what this connection is executing.

    The server closes the request's connection after it has signalled the backend, and we wait for that: so
    the signal is delivered before anything we send next, and cannot hit it.
    """
    request = pgconn.cancel_conn()
    try:
        request.start()
        while (status := request.poll()) != pq.PollingStatus.OK:
            if status == pq.PollingStatus.FAILED:
                raise errors.OperationalError(f"cancellation failed: {request.get_error_message()}")
            await _wait_polling(request.socket, status)
    finally:
        request.finish()


async def _wait_polling(fd: int, status: int) -> None:
    await wait_ready(fd, Wait.R if status == pq.PollingStatus.READING else Wait.W)
