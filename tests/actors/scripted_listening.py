"""The ports of the services, in memory: a server with listening connections, maintenance, schedules."""

import math
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

import attrs
import trio
from scripted_ports import NOON

from trioboss.actors.ports import Registration
from trioboss.errors import DatabaseUnavailable, ServerDown
from trioboss.model.polling import PollResult, Rescue
from trioboss.model.schedule import Schedule


@attrs.define(eq=False)
class ScriptedServer:
    """The channel, the leader's lock, and the listening connections of a server that a test controls."""

    log: list[tuple[float, str]] = attrs.field(factory=list)
    """When each call was made: connect, poll, ping."""
    due: dict[str, float] = attrs.field(factory=dict)
    """The answer of a poll: in how many seconds each queue has a job to claim."""
    skew: float = 0.0
    """Seconds by which the database's clock differs from the test's."""
    refuses: bool = False
    """No connection is accepted."""
    down: bool = False
    """No server runs."""
    hangs: bool = False
    """No statement is answered, and no notification is delivered."""
    drops_notifications: bool = False
    """Notifications are lost, as behind a transaction pooler."""
    registered: list[set[UUID]] = attrs.field(factory=list)
    """The workers that each connection was opened with."""
    leader: "ScriptedConnection | None" = None
    connections: "list[ScriptedConnection]" = attrs.field(factory=list)

    @asynccontextmanager
    async def open_listening_connection(
        self, registrations: Callable[[], Sequence[Registration]]
    ) -> AsyncIterator["ScriptedConnection"]:
        self.log.append((trio.current_time(), "connect"))
        self.registered.append({registration.worker for registration in registrations()})
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise DatabaseUnavailable("no answer")
        if self.down:
            raise ServerDown("connection refused")
        connection = ScriptedConnection(self)
        self.connections.append(connection)
        try:
            yield connection
        finally:
            self.connections.remove(connection)
            if self.leader is connection:
                self.leader = None

    def notify(self, message: str) -> None:
        """Deliver a notification to every listening connection."""
        if not self.drops_notifications:
            for connection in self.connections:
                connection.deliver(message)

    def cut(self) -> None:
        """Break all connections, noticeably."""
        for connection in list(self.connections):
            connection.broken = True
            connection.deliver("")

    def times(self, call: str) -> list[float]:
        return [at for at, made in self.log if made == call]


@attrs.define(eq=False)
class ScriptedConnection:
    """One listening connection."""

    server: ScriptedServer
    broken: bool = False
    _notifications: deque[str] = attrs.field(factory=deque)
    _arrived: trio.Event = attrs.field(factory=trio.Event)

    def deliver(self, message: str) -> None:
        self._notifications.append(message)
        self._arrived.set()

    async def receive(self) -> list[str]:
        if self.server.hangs:
            await trio.sleep_forever()
        if not self._notifications:
            self._arrived = trio.Event()
            await self._arrived.wait()
        self._check()
        notifications = list(self._notifications)
        self._notifications.clear()
        await trio.lowlevel.checkpoint()
        return notifications

    async def ping(self) -> None:
        self.server.log.append((trio.current_time(), "ping"))
        await self._answer()

    async def poll(
        self, queues: Sequence[str], token: str, *, candidate: bool, registrations: Sequence[Registration]
    ) -> PollResult:
        self.server.log.append((trio.current_time(), "poll"))
        await self._answer()
        if candidate and self.server.leader is None:
            self.server.leader = self
        self.server.notify(f"*probe {token}")
        due = {queue: self.server.due[queue] for queue in queues if queue in self.server.due}
        now = NOON + timedelta(seconds=trio.current_time() + self.server.skew)
        return PollResult(due, candidate and self.server.leader is self, now)

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        self._check()
        if self.server.hangs:
            await trio.sleep(4)
            raise DatabaseUnavailable("the server does not answer the listener")

    def _check(self) -> None:
        if self.broken:
            raise DatabaseUnavailable("cut")


@attrs.define(eq=False)
class ScriptedMaintenance:
    """MaintenancePort that records its calls."""

    rescues: list[tuple[float, bool]] = attrs.field(factory=list)
    prunes: list[float] = attrs.field(factory=list)
    samples: list[float] = attrs.field(factory=list)
    kept: list[tuple[str | None, str, str]] = attrs.field(factory=list)
    notifications: list[tuple[float, str]] = attrs.field(factory=list)
    found: Rescue = attrs.field(factory=lambda: Rescue((), 0, None, ()))
    faults: deque[Exception] = attrs.field(factory=deque)
    prune_takes: float = 0.0
    prune_faults: deque[Exception] = attrs.field(factory=deque)
    long_queues: Sequence[tuple[str | None, str, str]] | None = ()
    """None: no queue has a limit."""
    asked: list[float] = attrs.field(factory=list)
    """When maintenance asked for long queues."""
    certain: bool = False
    """Whether the last round could judge who is gone."""
    sample_faults: deque[Exception] = attrs.field(factory=deque)

    async def rescue_leases(self, grace: float, margin: float, *, warnings: bool, certain: bool) -> Rescue:
        self.certain = certain
        self.rescues.append((trio.current_time(), warnings))
        await trio.lowlevel.checkpoint()
        if self.faults:
            raise self.faults.popleft()
        return self.found

    async def find_long_queues(self) -> Sequence[tuple[str | None, str, str]] | None:
        self.asked.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        return self.long_queues

    async def sample(self) -> None:
        self.samples.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.sample_faults:
            raise self.sample_faults.popleft()

    async def keep_warnings(self, warnings: Sequence[tuple[str | None, str, str]]) -> None:
        self.kept += warnings
        await trio.lowlevel.checkpoint()

    async def prune(self) -> None:
        self.prunes.append(trio.current_time())
        await trio.sleep(self.prune_takes)
        if self.prune_faults:
            raise self.prune_faults.popleft()

    async def notify(self, message: str) -> None:
        self.notifications.append((trio.current_time(), message))
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class Ledger:
    """SchedulePort: schedules, and a ledger in which each tick can be fired once. Its clock decides."""

    schedules: list[Schedule] = attrs.field(factory=list)
    fired: dict[tuple[str, str, datetime], UUID] = attrs.field(factory=dict)
    order: list[tuple[float, datetime]] = attrs.field(factory=list)
    """When each tick was fired."""
    reads: list[float] = attrs.field(factory=list)
    tries: int = 0
    faults: dict[str, deque[Exception]] = attrs.field(factory=lambda: {"read": deque(), "fire": deque()})
    skew: float = 0.0

    def now(self) -> datetime:
        return NOON + timedelta(seconds=trio.current_time() + self.skew)

    def add(self, cron: str, **options: object) -> Schedule:
        values = {
            "queue": "q",
            "key": "",
            "timezone": "UTC",
            "missed": "skip",
            "data": None,
            "options": {},
            "created_on": self.now(),
            "updated_on": self.now(),
        }
        schedule = Schedule(cron=cron, **(values | options))
        self.schedules.append(schedule)
        return schedule

    async def read_schedules(self) -> tuple[datetime, list[tuple[Schedule, datetime | None]]]:
        self.reads.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.faults["read"]:
            raise self.faults["read"].popleft()
        return self.now(), [(schedule, self._last(schedule)) for schedule in self.schedules]

    def _last(self, schedule: Schedule) -> datetime | None:
        dues = [d for queue, key, d in self.fired if (queue, key) == (schedule.queue, schedule.key)]
        return max(dues, default=None)

    async def fire(self, schedule: Schedule, due: datetime, id: UUID) -> tuple[bool, UUID | None, float]:
        self.tries += 1
        await trio.lowlevel.checkpoint()
        if self.faults["fire"]:
            raise self.faults["fire"].popleft()
        if not any(
            (s.queue, s.key) == (schedule.queue, schedule.key) and s.updated_on < due for s in self.schedules
        ):
            return False, None, 0.0
        if (early := (due - self.now()).total_seconds()) > 0:
            return False, None, early
        key = (schedule.queue, schedule.key, due)
        if key in self.fired:
            return False, None, 0.0
        self.fired[key] = id
        self.order.append((trio.current_time(), due))
        return True, id, 0.0


NEVER = math.inf
