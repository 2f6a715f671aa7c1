"""Fires the ticks of schedules. Every boss tries each tick; a row in the database lets one of them succeed."""

import hashlib
import math
from datetime import datetime
from uuid import UUID

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.ports import SchedulePort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, TickFired
from trioboss.model.cron import Ticks, due_ticks
from trioboss.model.schedule import Schedule
from trioboss.model.ticks import make_ticks

__all__ = ["Scheduler", "SchedulerStatistics", "tick_id"]

_RETRY_DELAY = 1.0  # seconds until schedules are read again after the database has failed
_VERSION, _VARIANT = 7 << 76, 2 << 62  # of a UUIDv7
_RANDOM = (0xFFF << 64) | ((1 << 62) - 1)  # its bits that are neither time, version nor variant


def tick_id(schedule: Schedule, due: datetime) -> UUID:
    """The id of the job of a tick. Every boss computes the same: a tick that is fired twice is one job.

    It is a UUIDv7 of the time of the tick, with a digest in place of the random bits: lists of jobs and rates go by the
    order of ids.
    """
    name = f"{schedule.queue} {schedule.key} {due.isoformat()}"
    digest = int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big")
    return UUID(int=int(due.timestamp() * 1000) << 80 | _VERSION | _VARIANT | digest & _RANDOM)


@attrs.frozen
class SchedulerStatistics:
    """The work that the scheduler of this boss has done."""

    schedules: int
    fired: int


@attrs.define(eq=False)
class _Entry:
    schedule: Schedule
    last: datetime
    """Ticks up to here are fired, or will not be."""
    next: datetime = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.next = self.cron.next_after(self.last)

    @property
    def cron(self) -> Ticks:
        return make_ticks(self.schedule.cron, self.schedule.timezone)

    def done_until(self, tick: datetime) -> None:
        self.last = max(self.last, tick)
        self.next = self.cron.next_after(self.last)


@attrs.define(eq=False)
class Scheduler:
    """Sleeps until the next tick by the clock of the database, and fires it."""

    _port: SchedulePort
    _clock: DatabaseClock
    _changed: Doorbell
    _reporter: Reporter
    _entries: list[_Entry] = attrs.field(factory=list, init=False)
    _fired: int = attrs.field(default=0, init=False)

    def statistics(self) -> SchedulerStatistics:
        """Its work so far."""
        return SchedulerStatistics(len(self._entries), self._fired)

    async def run(self) -> None:
        """Read the schedules whenever they change, and fire ticks when they are due."""
        self._changed.ring()
        wake_at = math.inf
        while True:
            changed = await self._changed.wait_until(wake_at)
            try:
                if changed:
                    await self._read()
                wake_at = await self._fire_due()
            except DatabaseUnavailable as error:
                self._reporter.report(ErrorEvent("scheduler", str(error)))
                self._changed.ring()
                wake_at = math.inf
                await trio.sleep(_RETRY_DELAY)

    async def _read(self) -> None:
        asked_at = trio.current_time()
        shown, schedules = await self._port.read_schedules()
        self._clock.set(shown, asked_at)
        known = {(e.schedule.queue, e.schedule.key, e.schedule.updated_on): e.last for e in self._entries}
        self._entries = []
        for schedule, last in schedules:
            done = known.get((schedule.queue, schedule.key, schedule.updated_on), schedule.updated_on)
            try:
                self._entries.append(_Entry(schedule, max(done, last or done)))
            except Exception as error:
                # Written with plain SQL, or for another version of the time zones. The other schedules go on.
                self._report_failure(schedule, error)

    async def _fire_due(self) -> float:
        """Fire the ticks that are due; return when the next one is."""
        now = self._clock.now()
        wake_at = math.inf
        for entry in self._entries:
            # Every boss fires: the first row of a tick counts, and the others find it there.
            early = await self._fire_entry(entry, now) if entry.next <= now else 0.0
            # The database says that it is too early: its clock counts.
            due = trio.current_time() + early if early > 0 else self._clock.when(entry.next)
            wake_at = min(wake_at, due)
        return wake_at

    async def _fire_entry(self, entry: _Entry, now: datetime) -> float:
        schedule = entry.schedule
        for due in due_ticks(entry.cron, schedule.missed, entry.last, now):
            early = await self._fire(schedule, due)
            if early > 0:
                return early
            entry.done_until(due)
        entry.done_until(now)
        return 0.0

    async def _fire(self, schedule: Schedule, due: datetime) -> float:
        try:
            ours, id, early = await self._port.fire(schedule, due, tick_id(schedule, due))
        except DatabaseUnavailable:
            raise
        except Exception as error:
            # An error of this schedule alone: its queue was deleted, or refuses the job; or its options are those of
            # another version, which fires the tick. The other schedules go on.
            self._report_failure(schedule, error)
            return 0.0
        if ours:
            self._fired += 1
            self._reporter.report(TickFired(schedule.queue, schedule.key, due, id))
        return early

    def _report_failure(self, schedule: Schedule, error: Exception) -> None:
        name = f"schedule {schedule.queue} {schedule.key}".rstrip()
        self._reporter.report(ErrorEvent(name, str(error)))
