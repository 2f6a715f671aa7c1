"""Fires cron's ticks. Every boss does; the ledger in the database lets one of them have each tick."""

import math
from datetime import datetime
from uuid import UUID, uuid5

import attrs
import trio

from trioboss.actors.clock import DatabaseClock
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import SchedulePort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable, TriobossError
from trioboss.events import ErrorEvent, TickFired
from trioboss.model.cron import Cron, due_ticks
from trioboss.model.schedule import Schedule

__all__ = ["Scheduler", "SchedulerStatistics", "tick_id"]

_RETRY_DELAY = 1.0  # seconds until a tick is tried again that the database did not take
_NAMESPACE = UUID("c5a0a7d6-1c5e-4f0e-9d5e-7d1f5f3c7a10")


def tick_id(schedule: Schedule, due: datetime) -> UUID:
    """The id of the job of a tick: the same in every boss."""
    return uuid5(_NAMESPACE, f"{schedule.queue} {schedule.key} {due.isoformat()}")


@attrs.frozen
class SchedulerStatistics:
    """What cron has done in this boss."""

    schedules: int
    fired: int


@attrs.define(eq=False)
class _Entry:
    schedule: Schedule
    last: datetime
    """Ticks up to here have been dealt with."""
    next: datetime = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.next = self.cron.next_after(self.last)

    @property
    def cron(self) -> Cron:
        return Cron(self.schedule.cron, self.schedule.timezone)

    def dealt_with(self, tick: datetime) -> None:
        self.last = max(self.last, tick)
        self.next = self.cron.next_after(self.last)


@attrs.define(eq=False)
class Scheduler:
    """Sleeps until the next tick by the database's clock, fires it, and goes on."""

    _port: SchedulePort
    _clock: DatabaseClock
    _changed: Doorbell
    _reporter: Reporter
    _entries: list[_Entry] = attrs.field(factory=list, init=False)
    _fired: int = attrs.field(default=0, init=False)

    def statistics(self) -> SchedulerStatistics:
        """What it has done so far."""
        return SchedulerStatistics(len(self._entries), self._fired)

    async def run(self) -> None:
        """For ever: read the schedules whenever they change, and fire what is due."""
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
            dealt_with = known.get((schedule.queue, schedule.key, schedule.updated_on), schedule.updated_on)
            try:
                self._entries.append(_Entry(schedule, max(dealt_with, last or dealt_with)))
            except Exception as error:
                # Written by hand, or for another edition of the time zones. The other schedules go on.
                self._complain(schedule, error)

    async def _fire_due(self) -> float:
        """Fire what is due; return when there is more to do."""
        now = self._clock.now()
        wake_at = math.inf
        for entry in self._entries:
            early = await self._fire_entry(entry, now) if entry.next <= now else 0.0
            # Too early, by the clock that counts: wait for that long.
            due = trio.current_time() + early if early > 0 else self._clock.when(entry.next)
            wake_at = min(wake_at, due)
        return wake_at

    async def _fire_entry(self, entry: _Entry, now: datetime) -> float:
        schedule = entry.schedule
        for due in due_ticks(entry.cron, schedule.missed, entry.last, now):
            early = await self._fire(schedule, due)
            if early > 0:
                return early
            entry.dealt_with(due)
        entry.dealt_with(now)
        return 0.0

    async def _fire(self, schedule: Schedule, due: datetime) -> float:
        try:
            ours, id, early = await self._port.fire(schedule, due, tick_id(schedule, due))
        except DatabaseUnavailable:
            raise
        except TriobossError as error:
            # The schedule's own fault: its queue is gone, or refuses such jobs. The other schedules go on.
            self._complain(schedule, error)
            return 0.0
        if ours:
            self._fired += 1
            self._reporter.report(TickFired(schedule.queue, schedule.key, due, id))
        return early

    def _complain(self, schedule: Schedule, error: Exception) -> None:
        name = f"schedule {schedule.queue} {schedule.key}".rstrip()
        self._reporter.report(ErrorEvent(name, str(error)))
