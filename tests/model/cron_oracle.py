"""The ticks of a cron expression, found by trying every minute (or second): slow, and obviously right."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import attrs

_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def _expand(field: str, low: int, high: int) -> set[int]:
    values: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            first, last = low, high
        else:
            first, _, last = span.partition("-")
            first = int(first)
            last = int(last) if last else (high if step else first)
        values |= set(range(first, last + 1, int(step or 1)))
    return values


@attrs.define(slots=False)
class Oracle:
    """An expression in a zone."""

    expression: str
    zone: ZoneInfo

    def __attrs_post_init__(self) -> None:
        fields = self.expression.split()
        self._seconds = _expand(fields.pop(0), 0, 59) if len(fields) == 6 else {0}
        self._minutes, self._hours, self._days, self._months, self._weekdays = (
            _expand(field, *span) for field, span in zip(fields, _RANGES, strict=True)
        )
        self._weekdays = {weekday % 7 for weekday in self._weekdays}
        self._any_day, self._any_weekday = len(self._days) == 31, len(self._weekdays) == 7

    def matches(self, local: datetime) -> bool:
        """Whether the expression matches this local time."""
        day = local.day in self._days
        weekday = local.isoweekday() % 7 in self._weekdays
        either = day and weekday if self._any_day or self._any_weekday else day or weekday
        return (
            local.second in self._seconds
            and local.minute in self._minutes
            and local.hour in self._hours
            and local.month in self._months
            and either
        )

    def ticks(self, after: datetime, until: datetime, step: timedelta) -> list[datetime]:
        """All ticks after one instant and up to another."""
        hourly = len(self._hours) == 24
        found = []
        for instant in _instants(after, until, step):
            local = instant.astimezone(self.zone)
            before = (instant - step).astimezone(self.zone)
            if (self.matches(local) and (hourly or local.fold == 0)) or (
                not hourly and self._is_in_gap(before, local, step)
            ):
                found.append(instant)
        return found

    def _is_in_gap(self, before: datetime, local: datetime, step: timedelta) -> bool:
        """Whether the expression matches a local time that was skipped between these two."""
        shown, next_shown = before.replace(tzinfo=None), local.replace(tzinfo=None)
        skipped = _instants(shown, next_shown - step, step)
        return any(self.matches(time) for time in skipped)


def _instants(after: datetime, until: datetime, step: timedelta) -> Iterator[datetime]:
    instant = after + step
    while instant <= until:
        yield instant
        instant += step


def find_transition(zone: ZoneInfo, year: int, month: int) -> datetime:
    """The change of offset in a month, to the minute; the middle of the month if there is none."""
    instant = datetime(year, month, 1, tzinfo=UTC)
    offset = instant.astimezone(zone).utcoffset()
    for _ in range(32 * 24 * 4):
        instant += timedelta(minutes=15)
        if instant.astimezone(zone).utcoffset() != offset:
            return instant
    return datetime(year, month, 15, tzinfo=UTC)
