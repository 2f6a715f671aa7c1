"""Schedules with their ticks: those of the ledger, those that were missed, and the next ones."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any

import attrs

from trioboss.dashboard.queries import read_rows
from trioboss.dashboard.values import SchedulePage, ScheduleRow, Tick
from trioboss.errors import UsageError
from trioboss.model.recurrence import NEVER
from trioboss.model.schedule import Schedule
from trioboss.model.ticks import make_ticks
from trioboss.postgres.operation import Operation
from trioboss.store import Store

__all__ = ["get_schedule", "list_schedules"]

_LISTED = 20  # ticks of each schedule in the list
_NEXT = 5
_KEPT = timedelta(days=7)  # maintenance deletes older ticks
_GRACE = timedelta(seconds=30)  # a tick that was due within this time may still be fired
_SECOND = timedelta(seconds=1)
_WALK = 1000  # ticks that are computed at most
_NO_TICKS = (UsageError, ValueError, LookupError, OSError)  # plain SQL can write what is no cron expression


def list_schedules(
    store: Store,
    now: datetime,
    *,
    text: str | None = None,
    after: tuple[str, str] | None = None,
    limit: int = 50,
) -> Operation[SchedulePage]:
    """One page of the schedules, each with its newest ticks: those whose queue or key contains the text."""
    queue, key = after or (None, None)
    values = {"text": text, "after_queue": queue, "after_key": key, "limit": limit + 1, "ticks": _LISTED}
    found = yield from read_rows(store, "show_schedules", **values)
    rows = [_with_newest(_read_schedule(row), now) for row in found[:limit]]
    return SchedulePage(rows, rows[-1].schedule if len(found) > limit else None)


def get_schedule(
    store: Store, now: datetime, queue: str, key: str, *, before: datetime | None = None, limit: int = 100
) -> Operation[ScheduleRow | None]:
    """One schedule, with one page of its ledger: ticks that were due before a time."""
    values = {"queue": queue, "key": key, "due_before": before, "limit": 1, "ticks": limit}
    found = yield from read_rows(store, "show_schedules", **values)
    return _with_ledger(_read_schedule(found[0]), now, before, limit) if found else None


def _read_schedule(row: tuple[Any, ...]) -> ScheduleRow:
    due, fired, jobs = row[10:]
    ticks = [Tick(*tick) for tick in zip(due or (), fired or (), jobs or (), strict=True)]
    return ScheduleRow(Schedule(*row[:9]), row[9], ticks, ())


def _with_newest(row: ScheduleRow, now: datetime) -> ScheduleRow:
    """The schedule with its newest ticks, fired or missed, and the next one."""
    if row.paused:  # nothing is missed while it is paused
        return row
    try:
        upcoming = _upcoming(row.schedule, now, 2)
        oldest = row.ticks[-1].due if row.ticks else _minute(now - timedelta(days=1))
        start = max(oldest, _far_enough(upcoming, now, _LISTED))
        missed = _missed(row, start, now - _GRACE)
        return attrs.evolve(row, ticks=_merge(row.ticks, missed)[:_LISTED], next=upcoming[:1])
    except _NO_TICKS:
        return row


def _with_ledger(row: ScheduleRow, now: datetime, before: datetime | None, limit: int) -> ScheduleRow:
    """The schedule with the ticks of one page, fired or missed, and the next ones."""
    is_cut = len(row.ticks) == limit
    oldest = row.ticks[-1].due if is_cut else now - _KEPT
    whole = attrs.evolve(row, older=oldest if is_cut else None)
    if row.paused:
        return whole
    try:
        upcoming = _upcoming(row.schedule, now, _NEXT)
        until = min(now - _GRACE, before or now)
        start = max(oldest, _far_enough(upcoming, until, limit))
        ticks = [tick for tick in _merge(row.ticks, _missed(row, start, until)) if tick.due >= start]
    except _NO_TICKS:
        return whole
    if len(ticks) > limit:
        return attrs.evolve(row, ticks=ticks[:limit], next=upcoming, older=ticks[limit - 1].due)
    # A tick that was due at the start itself is on this page. Older ones are on the next: fired, or not yet computed.
    is_last = not is_cut and start <= max(oldest, row.schedule.updated_on)
    has_more = not is_last or any(tick.due < start for tick in row.ticks)
    return attrs.evolve(row, ticks=ticks, next=upcoming, older=start if has_more else None)


@lru_cache(maxsize=20_000)
def _next_tick(expression: str, timezone: str, after: datetime) -> datetime:
    # croniter takes 0.3 ms for a tick, and a page that is live shows the same thousand ticks every second.
    return make_ticks(expression, timezone).next_after(after)


def _walk(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """The ticks after a time. They are cached if it is a tick, or the beginning of a minute."""
    tick = _next_tick(schedule.cron, schedule.timezone, after)
    while tick != NEVER:
        yield tick
        tick = _next_tick(schedule.cron, schedule.timezone, tick)


def _minute(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(second=0, microsecond=0)


def _upcoming(schedule: Schedule, now: datetime, number: int) -> list[datetime]:
    ticks = islice(_walk(schedule, _minute(now)), _WALK)
    return list(islice((tick for tick in ticks if tick > now), number))


def _far_enough(upcoming: Sequence[datetime], until: datetime, number: int) -> datetime:
    """A time before which ticks need not be computed: so many, at the pace of the next ones, come after it."""
    pace = upcoming[1] - upcoming[0] if len(upcoming) > 1 else _KEPT
    return _minute(until - min(_KEPT, pace * (number + 4)))


def _missed(row: ScheduleRow, start: datetime, until: datetime) -> list[Tick]:
    """The ticks from one time to another that are not in the ledger. Those before the last change of the schedule are
    unknown.
    """
    fired = {tick.due for tick in row.ticks}
    missed = []
    for due in islice(_walk(row.schedule, max(start - _SECOND, row.schedule.updated_on)), _WALK):
        if due >= until:
            break
        if due >= start and due not in fired:
            missed.append(Tick(due, None, None))
    return missed


def _merge(fired: Sequence[Tick], missed: Sequence[Tick]) -> list[Tick]:
    return sorted([*fired, *missed], key=lambda tick: tick.due, reverse=True)
