"""Listening connections that a test scripts and can cut; and the other ports of the services."""

import math
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from uuid import UUID

import attrs
import trio
from scripted_ports import NOON

from trioboss.errors import DatabaseUnavailable
from trioboss.model.polling import PollResult, Watch
from trioboss.model.schedule import Schedule


@attrs.define(eq=False)
class ScriptedLine:
    """The channel, the leader's lock, and the connection to both."""

    log: list[tuple[float, str]] = attrs.field(factory=list)
    """When each thing was done: connect, look, ping, hear."""
    due: dict[str, float] = attrs.field(factory=dict)
    """What a look finds."""
    skew: float = 0.0
    """Seconds by which the database's clock differs from the test's."""
    refuses: bool = False
    """Nobody can connect."""
    hangs: bool = False
    """Nothing is answered, and nothing is heard."""
    deaf: bool = False
    """Words do not come through."""
    leader: "ScriptedEars | None" = None
    ears: "list[ScriptedEars]" = attrs.field(factory=list)

    @asynccontextmanager
    async def open_listening_connection(self) -> AsyncIterator["ScriptedEars"]:
        self.log.append((trio.current_time(), "connect"))
        await trio.lowlevel.checkpoint()
        if self.refuses:
            raise DatabaseUnavailable("refused")
        ears = ScriptedEars(self)
        self.ears.append(ears)
        try:
            yield ears
        finally:
            self.ears.remove(ears)
            if self.leader is ears:
                self.leader = None

    def say(self, word: str) -> None:
        """Everybody who listens hears it."""
        if not self.deaf:
            for ears in self.ears:
                ears.receive(word)

    def cut(self) -> None:
        """All connections are lost, and everybody notices."""
        for ears in list(self.ears):
            ears.broken = True
            ears.receive("")

    def times(self, what: str) -> list[float]:
        return [at for at, done in self.log if done == what]


@attrs.define(eq=False)
class ScriptedEars:
    """One connection to the line."""

    line: ScriptedLine
    broken: bool = False
    _words: deque[str] = attrs.field(factory=deque)
    _arrived: trio.Event = attrs.field(factory=trio.Event)

    def receive(self, word: str) -> None:
        self._words.append(word)
        self._arrived.set()

    async def hear(self) -> list[str]:
        if self.line.hangs:
            await trio.sleep_forever()
        if not self._words:
            self._arrived = trio.Event()
            await self._arrived.wait()
        self._check()
        words = list(self._words)
        self._words.clear()
        await trio.lowlevel.checkpoint()
        return words

    async def ping(self) -> None:
        self.line.log.append((trio.current_time(), "ping"))
        await self._answer()

    async def look(self, queues: Sequence[str], token: str, *, candidate: bool) -> PollResult:
        self.line.log.append((trio.current_time(), "look"))
        await self._answer()
        if candidate and self.line.leader is None:
            self.line.leader = self
        self.line.say(f"*probe {token}")
        due = {queue: self.line.due[queue] for queue in queues if queue in self.line.due}
        now = NOON + timedelta(seconds=trio.current_time() + self.line.skew)
        return PollResult(due, candidate and self.line.leader is self, now)

    async def _answer(self) -> None:
        await trio.lowlevel.checkpoint()
        self._check()
        if self.line.hangs:
            await trio.sleep(4)
            raise DatabaseUnavailable("the server does not answer the listener")

    def _check(self) -> None:
        if self.broken:
            raise DatabaseUnavailable("cut")


@attrs.define(eq=False)
class ScriptedUpkeep:
    """What maintenance needs."""

    watches: list[tuple[float, bool]] = attrs.field(factory=list)
    tidies: list[float] = attrs.field(factory=list)
    words: list[tuple[float, str]] = attrs.field(factory=list)
    found: Watch = attrs.field(factory=lambda: Watch((), 0, None, ()))
    faults: deque[Exception] = attrs.field(factory=deque)
    tidy_takes: float = 0.0
    tidy_faults: deque[Exception] = attrs.field(factory=deque)

    async def watch(self, grace: float, margin: float, *, full: bool) -> Watch:
        self.watches.append((trio.current_time(), full))
        await trio.lowlevel.checkpoint()
        if self.faults:
            raise self.faults.popleft()
        return self.found

    async def tidy(self) -> None:
        self.tidies.append(trio.current_time())
        await trio.sleep(self.tidy_takes)
        if self.tidy_faults:
            raise self.tidy_faults.popleft()

    async def announce(self, word: str) -> None:
        self.words.append((trio.current_time(), word))
        await trio.lowlevel.checkpoint()


@attrs.define(eq=False)
class Ledger:
    """What cron needs: schedules, and a ledger that lets each tick be fired once. Its clock is the one that counts."""

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
