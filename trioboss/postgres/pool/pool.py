"""A pool of our sessions: bounded, first come first served, and without any wake-up while nothing is due."""

import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import attrs
import psycopg
import trio
from psycopg.rows import TupleRow
from trio.lowlevel import Task, checkpoint_if_cancelled, current_task

from trioboss.errors import BossClosed, PoolTimeout
from trioboss.postgres.connection import Connect, Connection
from trioboss.postgres.dsn import parse_dsn
from trioboss.postgres.errors import translate_errors
from trioboss.postgres.pool.member import (
    CloseReason,
    Member,
    PoolSettings,
    PoolStatistics,
    open_member,
    reset,
)
from trioboss.postgres.wire import BoundStatement, Results, Transactions

__all__ = ["Pool", "open_pool"]


@attrs.define(eq=False)
class _Checkout(AbstractAsyncContextManager[Connection[TupleRow]]):
    pool: "Pool"
    timeout: float | None
    member: Member | None = None

    async def __aenter__(self) -> Connection[TupleRow]:
        await checkpoint_if_cancelled()
        self.member = await self.pool._check_out(self.timeout, for_any_use=True)
        self.member.connection.is_returned = False
        return self.member.connection

    async def __aexit__(self, *exc_info: object) -> None:
        assert self.member is not None
        self.member.connection.is_returned = True
        await self.pool._check_in(self.member)


@attrs.define(eq=False)
class Pool:
    """A pool of connections. Made by `open_pool`."""

    _dsn: str = attrs.field(repr=False)
    settings: PoolSettings

    # Invariant: every member in use or being opened holds a permit, so there are never more than `size` of them.
    _permits: trio.Semaphore = attrs.field(init=False, repr=False)
    # Invariant: ordered by idle_since. Members are taken from the end, so that a surplus ages at the front.
    _idle: list[Member] = attrs.field(factory=list, init=False, repr=False)
    # The tasks are for the error messages: a task that holds all connections and asks for one more waits for itself.
    _in_use: dict[Member, Task] = attrs.field(factory=dict, init=False, repr=False)
    _waiting: int = attrs.field(default=0, init=False)
    _opened: int = attrs.field(default=0, init=False)
    _closed: Counter[CloseReason] = attrs.field(factory=Counter, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)
    _cancel_grace: float | None = attrs.field(default=None, init=False)
    # The maintenance task sleeps until _next_retirement, or until _recheck because something is due earlier.
    _next_retirement: float = attrs.field(default=math.inf, init=False, repr=False)
    _recheck: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._permits = trio.Semaphore(self.settings.size)

    def connection(self, timeout: float | None = None) -> AbstractAsyncContextManager[Connection[TupleRow]]:
        """Use a connection for the length of an ``async with`` block.

        Raises PoolTimeout if no connection becomes free in time, and DatabaseUnavailable if none can be opened. A
        transaction that the block leaves open is rolled back.
        """
        return _Checkout(self, timeout)

    async def run(
        self,
        transactions: Transactions,
        follow_up: Sequence[BoundStatement] = (),
        *,
        await_follow_up: bool = False,
        timeout: float | None = None,
    ) -> Results:
        """Run transactions on any connection: `Connection.run`, with its errors translated.

        ``await_follow_up`` waits until the follow-up has ended, too. Its failure is not raised.
        """
        member = await self._check_out(timeout)
        try:
            with translate_errors(member.connection, commits=True):
                results = await member.connection.run(transactions, follow_up)
            if await_follow_up:
                with suppress(psycopg.Error):
                    await member.connection.read_follow_up()
            return results
        finally:
            await self._check_in(member)

    def limit_cancel_grace(self, seconds: float) -> None:
        """Let clean-up after a cancellation take no longer than this on any connection: the program is about to end,
        and a server that does not answer must not keep it.
        """
        self._cancel_grace = seconds
        for member in (*self._idle, *self._in_use):
            member.connection.cancel_grace = seconds

    def statistics(self) -> PoolStatistics:
        """Return the present state of the pool, and its counters since it was opened."""
        return PoolStatistics(
            size=self.settings.size,
            idle=len(self._idle),
            in_use=self.settings.size - self._permits.value,
            waiting=self._waiting,
            opened=self._opened,
            closed=dict(self._closed),
        )

    # -- check-out

    async def _check_out(self, timeout: float | None, *, for_any_use: bool = False) -> Member:
        # `for_any_use`: not only for `Connection.run`, so a follow-up of the last user must have been read before.
        now = trio.current_time()
        timeout = self.settings.timeout if timeout is None else timeout
        deadline = now + timeout
        try:
            # `acquire` is a checkpoint even if there is a permit, which costs 4 us. The run itself is a checkpoint.
            self._permits.acquire_nowait()
        except trio.WouldBlock:
            await self._wait_for_permit(deadline, timeout)
            now = trio.current_time()
        try:
            if self._is_closed:
                raise BossClosed  # nobody but a boss has a pool, and it closes its pools when it ends
            member = self._take_recent(now, for_any_use)
            if member is None:
                await checkpoint_if_cancelled()
                member = await self._take_checked(deadline) or await self._open(deadline)
        except BaseException:
            self._permits.release()
            raise
        self._in_use[member] = current_task()
        return member

    async def _wait_for_permit(self, deadline: float, timeout: float) -> None:
        await checkpoint_if_cancelled()
        held = list(self._in_use.values()).count(current_task())
        if held == self.settings.size:
            raise PoolTimeout(
                f"this task holds all the connections of the pool ({held}) and asks for one more, for which "
                "it would wait for ever: use the connection it has, or raise `pool_size`"
            )
        self._waiting += 1
        try:
            with trio.move_on_at(deadline):
                await self._permits.acquire()
                return
        finally:
            self._waiting -= 1
        own = f", {held} of them by this task" if held else ""
        raise PoolTimeout(
            f"no connection became free within {timeout:g} s: all {self.settings.size} are in use{own}; "
            "raise `pool_size`, or hold connections for shorter"
        )

    def _take_recent(self, now: float, for_any_use: bool) -> Member | None:
        """Take the member used last, if it is good without a ping: nearly every check-out.

        Last in, first out: a small load uses few connections, and the others reach `max_idle`.
        """
        if not self._idle:
            return None
        # Looked at first, and taken only if it is good: one that needs a check stays for `_take_checked`.
        member = self._idle[-1]
        if for_any_use and member.connection.has_unread_follow_up:
            return None
        recent = now < member.expires and now - member.idle_since < self.settings.ping_after
        return self._idle.pop() if recent and not member.connection.is_stale() else None

    async def _take_checked(self, deadline: float) -> Member | None:
        """Take the first idle member that passes all checks; close those that do not."""
        while self._idle:
            member = self._idle.pop()
            reason: CloseReason | None = CloseReason.BROKEN  # if the check is interrupted
            # It counts as in use, so that `limit_cancel_grace` reaches a check that is interrupted.
            self._in_use[member] = current_task()
            try:
                reason = await self._check(member, deadline)
            finally:
                del self._in_use[member]
                if reason is not None:
                    await self._close(member, reason)
            if reason is None:
                return member
        return None

    async def _check(self, member: Member, deadline: float) -> CloseReason | None:
        """Return the reason to close an idle member, or None if it can be used."""
        now = trio.current_time()
        if now >= member.expires:
            return CloseReason.EXPIRED
        if member.connection.is_stale():
            return CloseReason.STALE
        if now - member.idle_since < self.settings.ping_after and not member.connection.has_unread_follow_up:
            return None
        timeout = min(self.settings.ping_timeout, max(0.0, deadline - now))
        try:
            await member.connection.ping(timeout)
            return None
        except psycopg.Error:
            # The members that were idle for longer are most likely lost as well, and each would cost another
            # ping_timeout to find out. A ping that had less time than that proves nothing about them.
            while self._idle and timeout == self.settings.ping_timeout:
                await self._close(self._idle.pop(), CloseReason.STALE)
            return CloseReason.STALE

    async def _open(self, deadline: float) -> Member:
        member = await open_member(self._dsn, self.settings, deadline)
        if self._cancel_grace is not None:
            member.connection.cancel_grace = self._cancel_grace
        self._opened += 1
        return member

    # -- check-in

    async def _check_in(self, member: Member) -> None:
        # This also runs in cancelled scopes: everything in here that waits is shielded, and has a time limit. A member
        # with an unread follow-up counts as clean: `Connection.run` reads it, and a check-out for any use pings.
        try:
            connection = member.connection
            try:
                clean = connection.has_unread_follow_up or connection.is_clean() or await reset(connection)
            finally:
                del self._in_use[member]  # not before: `limit_cancel_grace` has to reach a reset under way
            now = trio.current_time()
            if self._is_closed:
                await self._close(member, CloseReason.SHUTDOWN)
            elif not clean:
                await self._close(member, CloseReason.BROKEN)
            elif now >= member.expires:
                await self._close(member, CloseReason.EXPIRED)
            else:
                self._keep(member, now)
        finally:
            self._permits.release()

    def _keep(self, member: Member, now: float) -> None:
        member.idle_since = now
        self._idle.append(member)
        if min(member.expires, self._surplus_due(now)) < self._next_retirement:
            self._recheck.set()

    async def _close(self, member: Member, reason: CloseReason) -> None:
        self._closed[reason] += 1
        await member.connection.close()

    # -- maintenance: members that are expired or not needed any more are closed at the moment they are due

    @asynccontextmanager
    async def _kept(self) -> AsyncIterator[None]:
        """Maintain the pool for the length of a block, and close its connections then."""
        failure: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._maintain)
            try:
                yield
            except BaseException as error:
                failure = error  # raised outside the nursery, which would wrap it in a group
            await self._shut_down()
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _maintain(self) -> None:
        while True:
            self._next_retirement = self._next_due(trio.current_time())
            with trio.move_on_at(self._next_retirement):
                await self._recheck.wait()
            self._recheck = trio.Event()  # before the work, so that a change during it is not missed
            await self._retire(trio.current_time())

    async def _retire(self, now: float) -> None:
        for member in [member for member in self._idle if now >= member.expires]:
            self._idle.remove(member)
            await self._close(member, CloseReason.EXPIRED)
        while self._idle and now >= self._surplus_due(now):
            await self._close(self._idle.pop(0), CloseReason.IDLE)

    def _next_due(self, now: float) -> float:
        # Members in use count as if they were returned now. Otherwise every check-in would find that its member is due
        # before _next_retirement, and wake the maintenance task.
        expiries = [member.expires for member in (*self._idle, *self._in_use) if member.expires > now]
        return min([*expiries, self._surplus_due(now)])

    def _surplus_due(self, now: float) -> float:
        """Return when the next member above `min_size` has been idle for `max_idle`."""
        if len(self._idle) + len(self._in_use) <= self.settings.min_size:
            return math.inf
        return (self._idle[0].idle_since if self._idle else now) + self.settings.max_idle

    async def _shut_down(self) -> None:
        # Members in use are closed at their check-in.
        self._is_closed = True
        while self._idle:
            await self._close(self._idle.pop(), CloseReason.SHUTDOWN)


@asynccontextmanager
async def open_pool(
    dsn: str = "",
    *,
    size: int = 10,
    min_size: int = 1,
    timeout: float = 30.0,
    max_idle: float = 60.0,
    max_lifetime: float = 3600.0,
    ping_after: float = 30.0,
    ping_timeout: float = 5.0,
    prepare: bool = True,
    settings: Mapping[str, str] | None = None,
    connect: Connect | None = None,
) -> AsyncIterator[Pool]:
    """A pool of at most ``size`` connections, opened as they are needed. Times are in seconds.

    A check-out has ``timeout`` seconds for all its waiting and connecting. A connection that was idle for
    ``ping_after`` has to answer a ping within ``ping_timeout`` before it is used again. Connections above ``min_size``
    are closed after ``max_idle`` without use, and each after ``max_lifetime``, less up to a tenth, so that connections
    opened together are not replaced together. ``prepare=False`` is for transaction poolers; ``settings`` are run-time
    settings that override ours. ``connect`` opens each connection instead of Connection.connect.
    """
    parse_dsn(dsn)
    pool = Pool(
        dsn,
        PoolSettings(
            size=size,
            min_size=min_size,
            timeout=timeout,
            max_idle=max_idle,
            max_lifetime=max_lifetime,
            ping_after=ping_after,
            ping_timeout=ping_timeout,
            prepare=prepare,
            session=settings or {},
            connect=connect,
        ),
    )
    async with pool._kept():
        yield pool
