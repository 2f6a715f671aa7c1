"""The ticks of a cron expression, in a time zone with summer time.

The rules, on the two days a year when they matter:

- A fixed time that falls into the gap when clocks go forward ticks once, at the moment of the change.
- A fixed time in the hour that comes twice when clocks go back ticks once, the first time.
- An expression for every hour (its hour field is ``*``, or equal to that) keeps its interval: it has no tick in the
  gap, and ticks in both of the two equal hours.

All computation is in local time (without a zone), in periods between changes of the zone's offset.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Protocol
from zoneinfo import ZoneInfo

import attrs
from croniter import CroniterBadDateError, croniter

from trioboss.errors import UsageError
from trioboss.model.schedule import Missed

__all__ = ["Cron", "Ticks", "due_ticks"]

_SECOND = timedelta(seconds=1)
_NEAR = timedelta(hours=4)  # no zone changes twice within this time, and none by as much
_LATE = timedelta(seconds=60)  # a tick that is later than this was missed
_MOST_TICKS = 1000  # missed ticks that are fired at once


class Ticks(Protocol):
    """The ticks of a schedule."""

    def next_after(self, instant: datetime) -> datetime:
        """The first tick after an instant; both are in UTC."""

    def ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """All ticks after one instant and up to another."""


@attrs.frozen
class Cron:
    """A cron expression in a time zone."""

    expression: str
    timezone: str

    def next_after(self, instant: datetime) -> datetime:
        """The first tick after an instant; both are in UTC."""
        # Far from a change of the offset, local time runs as UTC does. Near one, the two sides are computed apart.
        change = _find_change(ZoneInfo(self.timezone), instant)
        if change is None:
            return self._far_from_change(instant)
        if instant < change.at:
            tick = self._next_local(instant + change.before) - change.before
            if tick < change.at:
                return _utc(tick)
            return self._across(change)
        return self._behind(change, instant)

    def ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """All ticks after one instant and up to another."""
        tick = self.next_after(after)
        while tick <= until:
            yield tick
            tick = self.next_after(tick)

    @property
    def _plain(self) -> str:
        """The expression with ``3-3`` as ``3``: croniter takes a range of one value for the whole range."""
        return re.sub(r"\b(\w+)-\1\b(?:/\d+)?", r"\1", self.expression)

    @property
    def _is_hourly(self) -> bool:
        hours = croniter.expand(self._plain, second_at_beginning=True)[0][1]
        return hours == ["*"] or len(hours) == 24

    def _next_local(self, local: datetime) -> datetime:
        """The first local time after ``local`` that the expression matches."""
        try:
            ticks = croniter(self._plain, local.replace(tzinfo=None), second_at_beginning=True)
            found: datetime = ticks.get_next(datetime)
        except CroniterBadDateError:
            raise UsageError(f"cron: {self.expression!r} never comes") from None
        return found.replace(tzinfo=local.tzinfo)

    def _far_from_change(self, instant: datetime) -> datetime:
        zone = ZoneInfo(self.timezone)
        local = self._next_local(_local(zone, instant))
        tick = _from_local(zone, local)
        near = _find_change(zone, tick)
        if near is None or tick <= (start := max(instant, near.at - _NEAR + _SECOND)):
            return tick
        # The tick itself is near a change of the offset: compute it again from where that change is in reach.
        return self.next_after(start) if start > instant else tick

    def _across(self, change: "_Change") -> datetime:
        """The first tick at or after a change of the clocks."""
        start = _local_at(change.at, change.after)
        # Forward: a fixed time in the gap ticks at the change. Back: fixed times of the repeated hour have ticked.
        if change.forward:
            gap = _local_at(change.at, change.before)
            if not self._is_hourly and self._next_local(gap - _SECOND) < start:
                return change.at
        elif not self._is_hourly:
            start = _local_at(change.at, change.before)
        return self._after_change(change, start - _SECOND)

    def _behind(self, change: "_Change", instant: datetime) -> datetime:
        """The first tick after an instant that follows a change of the clocks."""
        local = _local_at(instant, change.after)
        if not change.forward and not self._is_hourly:
            local = max(local, _local_at(change.at, change.before) - _SECOND)
        return self._after_change(change, local)

    def _after_change(self, change: "_Change", local: datetime) -> datetime:
        tick = _utc(self._next_local(local) - change.after)
        # The offset after this change holds only so far.
        return tick if tick < change.at + _NEAR else self._far_from_change(change.at + _NEAR - _SECOND)


@attrs.frozen
class _Change:
    """A moment at which a zone's offset changes."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def forward(self) -> bool:
        return self.after > self.before


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def _local(zone: ZoneInfo, instant: datetime) -> datetime:
    return _local_at(instant, _offset(zone, instant))


def _local_at(instant: datetime, offset: timedelta) -> datetime:
    """The local time under an offset."""
    return (instant + offset).replace(tzinfo=None)


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC)


def _from_local(zone: ZoneInfo, local: datetime) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)


def _find_change(zone: ZoneInfo, instant: datetime) -> _Change | None:
    """The change of offset near an instant, to the second."""
    low, high = instant - _NEAR, instant + _NEAR
    before, after = _offset(zone, low), _offset(zone, high)
    if before == after:
        return None
    while high - low > _SECOND:  # bisection: zoneinfo does not list its transitions
        middle = low + (high - low) / 2
        if _offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    return _Change(high.replace(microsecond=0), before, after)


def due_ticks(cron: Ticks, missed: Missed, last: datetime, now: datetime) -> list[datetime]:
    """The ticks to fire now, of those after ``last``. A tick that is late by more than a minute was missed."""
    if missed is Missed.ALL:
        return _last_ticks(cron, _MOST_TICKS, last, now)
    return _last_ticks(cron, 1, max(last, now - _LATE) if missed is Missed.SKIP else last, now)


def _last_ticks(cron: Ticks, most: int, after: datetime, until: datetime) -> list[datetime]:
    """The last ticks of a period, at most so many. Found from its end, so that a long absence costs no more."""
    found: list[datetime] = []
    width = _LATE
    while after < until and len(found) < most:
        start = max(after, until - width)
        ticks = list(islice(cron.ticks(start, until), most + 1))
        if len(ticks) > most:
            width /= 2  # ends, because there is at most one tick a second
            continue
        found, until = ticks + found, start
        width *= 2
    return found[-most:]
