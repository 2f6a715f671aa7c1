"""A pool of our sessions: bounded, first come first served, and silent when nothing is due."""

import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

import attrs
import psycopg
import trio
from psycopg.rows import TupleRow
from trio.lowlevel import Task, checkpoint_if_cancelled, current_task

from trioboss.errors import PoolTimeout, UsageError
from trioboss.postgres.connection import Connection
from trioboss.postgres.pool_member import Member, is_clean, open_member, undo
from trioboss.postgres.pool_values import CloseReason, PoolSettings, PoolStatistics
from trioboss.postgres.settings import parse_dsn
from trioboss.postgres.translate import translated
from trioboss.postgres.wire import BoundStatement, Results, Transactions

__all__ = ["CloseReason", "Pool", "PoolSettings", "PoolStatistics", "open_pool"]


@attrs.define(eq=False)
class _Checkout(AbstractAsyncContextManager[Connection[TupleRow]]):
    pool: "Pool"
    timeout: float | None
    member: Member | None = None

    async def __aenter__(self) -> Connection[TupleRow]:
        await checkpoint_if_cancelled()
        self.member = await self.pool._take(self.timeout, settled=True)
        return self.member.connection

    async def __aexit__(self, *exc_info: object) -> None:
        assert self.member is not None
        await self.pool._give_back(self.member)


@attrs.define(eq=False)
class Pool:
    """Connections for whoever needs one. Made by `open_pool`."""

    _dsn: str = attrs.field(repr=False)
    settings: PoolSettings

    # Invariants: a turn is held for every member in use or being opened, so there are never more than `size`.
    # The idle ones are ordered by idle_since and taken from the end, so that the surplus ages at the front.
    _turns: trio.Semaphore = attrs.field(init=False, repr=False)
    _idle: list[Member] = attrs.field(factory=list, init=False, repr=False)
    _in_use: dict[Member, Task] = attrs.field(factory=dict, init=False, repr=False)
    _waiting: int = attrs.field(default=0, init=False)
    _opened: int = attrs.field(default=0, init=False)
    _closed: Counter[CloseReason] = attrs.field(factory=Counter, init=False)
    _is_shut: bool = attrs.field(default=False, init=False)
    # The tender sleeps until the alarm, or until the bell says that something is due earlier.
    _alarm: float = attrs.field(default=math.inf, init=False, repr=False)
    _bell: trio.Event = attrs.field(factory=trio.Event, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._turns = trio.Semaphore(self.settings.size)

    def connection(self, timeout: float | None = None) -> AbstractAsyncContextManager[Connection[TupleRow]]:
        """Borrow a connection for the length of an `async with` block.

        Raises PoolTimeout if all stay in use, and DatabaseUnavailable if none can be opened. What the block
        leaves open is rolled back.
        """
        return _Checkout(self, timeout)

    async def run(
        self,
        transactions: Transactions,
        follow_up: Sequence[BoundStatement] = (),
        *,
        patient: bool = False,
        timeout: float | None = None,
    ) -> Results:
        """Run transactions on some connection: `Connection.run`, with its errors translated. ``patient``: until the
        follow_up is over, too; if it fails, nobody is told.
        """
        member = await self._take(timeout)
        try:
            with translated(member.connection, commits=True):
                results = await member.connection.run(transactions, follow_up)
            if patient:
                with suppress(psycopg.Error):
                    await member.connection.read_follow_up()
            return results
        finally:
            await self._give_back(member)

    def statistics(self) -> PoolStatistics:
        """Return what the pool is doing now, and what it has done since it was opened."""
        return PoolStatistics(
            size=self.settings.size,
            idle=len(self._idle),
            in_use=self.settings.size - self._turns.value,
            waiting=self._waiting,
            opened=self._opened,
            closed=dict(self._closed),
        )

    # -- checking out

    async def _take(self, timeout: float | None, *, settled: bool = False) -> Member:
        # `settled`: nothing that was sent along before is still to be read.
        now = trio.current_time()
        patience = self.settings.timeout if timeout is None else timeout
        deadline = now + patience
        try:
            self._turns.acquire_nowait()
        except trio.WouldBlock:
            await self._wait_turn(deadline, patience)
            now = trio.current_time()
        try:
            self._check_open()
            member = self._ready_member(now, settled)
            if member is None:
                await checkpoint_if_cancelled()
                member = await self._fit_member(deadline) or await self._new_member(deadline)
        except BaseException:
            self._turns.release()
            raise
        self._in_use[member] = current_task()
        return member

    def _check_open(self) -> None:
        if self._is_shut:
            raise UsageError("the pool is closed: use it inside its `async with open_pool(...)` block")

    async def _wait_turn(self, deadline: float, patience: float) -> None:
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
                await self._turns.acquire()
                return
        finally:
            self._waiting -= 1
        own = f", {held} of them by this task" if held else ""
        raise PoolTimeout(
            f"no connection became free within {patience:g} s: all {self.settings.size} are in use{own}; "
            "raise `pool_size`, or hold connections for shorter"
        )

    def _ready_member(self, now: float, settled: bool) -> Member | None:
        # Nearly every checkout: the member used last, seen alive not long ago.
        if not self._idle:
            return None
        member = self._idle[-1]
        if settled and member.connection.awaits_follow_up:
            return None
        seen = now < member.expires and now - member.idle_since < self.settings.ping_after
        return self._idle.pop() if seen and not member.connection.is_stale() else None

    async def _fit_member(self, deadline: float) -> Member | None:
        while self._idle:
            member = self._idle.pop()
            reason: CloseReason | None = CloseReason.BROKEN
            try:
                reason = await self._why_unfit(member, deadline)
            finally:
                if reason is not None:
                    await self._close(member, reason)
            if reason is None:
                return member
        return None

    async def _why_unfit(self, member: Member, deadline: float) -> CloseReason | None:
        now = trio.current_time()
        if now >= member.expires:
            return CloseReason.EXPIRED
        if member.connection.is_stale():
            return CloseReason.STALE
        if now - member.idle_since < self.settings.ping_after and not member.connection.awaits_follow_up:
            return None
        patience = min(self.settings.ping_timeout, max(0.0, deadline - now))
        try:
            await member.connection.ping(patience)
            return None
        except psycopg.Error:
            # What happened to this one, happened to those that were idle for longer; each of them would cost
            # another ping_timeout to find out. One that was given less time is no evidence.
            while self._idle and patience == self.settings.ping_timeout:
                await self._close(self._idle.pop(), CloseReason.STALE)
            return CloseReason.STALE

    async def _new_member(self, deadline: float) -> Member:
        member = await open_member(self._dsn, self.settings, deadline)
        self._opened += 1
        return member

    # -- checking in

    async def _give_back(self, member: Member) -> None:
        # Runs in cancelled scopes, so whatever waits in here is shielded, and bounded.
        del self._in_use[member]
        try:
            connection = member.connection
            clean = connection.awaits_follow_up or is_clean(connection) or await undo(connection)
            now = trio.current_time()
            if self._is_shut:
                await self._close(member, CloseReason.SHUTDOWN)
            elif not clean:
                await self._close(member, CloseReason.BROKEN)
            elif now >= member.expires:
                await self._close(member, CloseReason.EXPIRED)
            else:
                self._keep(member, now)
        finally:
            self._turns.release()

    def _keep(self, member: Member, now: float) -> None:
        member.idle_since = now
        self._idle.append(member)
        if min(member.expires, self._idle_due(now)) < self._alarm:
            self._bell.set()

    async def _close(self, member: Member, reason: CloseReason) -> None:
        self._closed[reason] += 1
        await member.connection.close()

    # -- tending

    async def _tend(self) -> None:
        # Closes what has been idle or alive for too long, at the moment it is due.
        while True:
            self._alarm = self._next_due(trio.current_time())
            with trio.move_on_at(self._alarm):
                await self._bell.wait()
            self._bell = trio.Event()
            await self._retire(trio.current_time())

    async def _retire(self, now: float) -> None:
        for member in [member for member in self._idle if now >= member.expires]:
            self._idle.remove(member)
            await self._close(member, CloseReason.EXPIRED)
        while self._idle and now >= self._idle_due(now):
            await self._close(self._idle.pop(0), CloseReason.IDLE)

    def _next_due(self, now: float) -> float:
        # Those in use are reckoned with as if they came back now: else each that does would ring the bell.
        expiries = [member.expires for member in (*self._idle, *self._in_use) if member.expires > now]
        return min([*expiries, self._idle_due(now)])

    def _idle_due(self, now: float) -> float:
        if len(self._idle) + len(self._in_use) <= self.settings.min_size:
            return math.inf
        return (self._idle[0].idle_since if self._idle else now) + self.settings.max_idle

    async def _shut(self) -> None:
        # Those in use are closed as they come back.
        self._is_shut = True
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
) -> AsyncIterator[Pool]:
    """A pool of at most `size` connections, opened as they are needed. Times are in seconds.

    A checkout has `timeout` seconds for all its waiting and connecting. A connection idle for `ping_after`
    has to answer within `ping_timeout` before it is handed out. Those above `min_size` are closed after
    `max_idle` without use, and any after `max_lifetime`, less up to a tenth, so that what was opened together
    is not replaced together. `prepare=False` is for transaction poolers; `settings` overrule our own.
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
        ),
    )
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool._tend)
        try:
            yield pool
        except BaseException as error:
            # Raised again outside the nursery, which would make a group of it.
            failure = error
        await pool._shut()
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
