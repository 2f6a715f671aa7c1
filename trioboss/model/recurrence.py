"""The ticks of a recurrence rule (RRULE of RFC 5545, iCalendar), in a time zone with summer time.

A rule is computed in local time. A time that falls into the gap when clocks go forward ticks at the moment of the
change; a time that comes twice when clocks go back ticks the first time, also under rules for every hour or minute.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import prod
from typing import Any
from zoneinfo import ZoneInfo

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import shown

__all__ = ["NEVER", "Recurrence", "check_rule", "is_rule"]

NEVER = datetime(9999, 1, 1, tzinfo=UTC)
"""The next tick of a rule that has ended."""

_FIRST = datetime(1970, 1, 1)  # where a rule without DTSTART begins
_EARLY = timedelta(days=1)  # more than any change of the clocks
_PERIODS = {
    "WEEKLY": timedelta(weeks=1),
    "DAILY": timedelta(days=1),
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
    "SECONDLY": timedelta(seconds=1),
}
# As the RFC has it; BYEASTER is an addition of dateutil.
_ONLY_WITH: Mapping[str, tuple[str, ...]] = {
    "BYWEEKNO": ("YEARLY",),
    "BYYEARDAY": ("YEARLY",),
    "BYMONTHDAY": ("YEARLY", "MONTHLY", "DAILY"),
    "BYEASTER": (),
}
# The least and the greatest number of each part. dateutil accepts others, and then fails or computes for seconds.
_LIMITS: Mapping[str, tuple[int, int]] = {
    "BYSECOND": (0, 59),
    "BYMINUTE": (0, 59),
    "BYHOUR": (0, 23),
    "BYMONTH": (1, 12),
    "BYMONTHDAY": (1, 31),
    "BYYEARDAY": (1, 366),
    "BYWEEKNO": (1, 53),
    "BYSETPOS": (1, 366),
}
_FROM_THE_END = ("BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYSETPOS")  # parts that may have negative numbers
_LENGTHS: Mapping[int, int] = defaultdict(
    int, enumerate((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1)
)
_PROPERTY = re.compile(r"(?:(RRULE|DTSTART|RDATE|EXDATE)(?:;VALUE=[A-Z-]+)?:)?(\S+)")
_TIME = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)
_LONGEST = 4000  # characters
_MOST_COUNTED = 10_000  # ticks of a rule with COUNT, which are counted from its beginning each time


def is_rule(text: str) -> bool:
    """Whether the text of a schedule is meant as a recurrence rule and not as a cron expression."""
    return "FREQ=" in text.upper()


def check_rule(value: str) -> str:
    """A recurrence rule that has ticks: lines RRULE, and optionally DTSTART, RDATE and EXDATE; or the rule alone."""
    if len(value) > _LONGEST:
        raise UsageError(f"cron: the rule has {len(value)} characters, {_LONGEST} are allowed")
    text = "\n".join(line.strip().upper() for line in value.splitlines() if line.strip())
    rule = _parse(text, "UTC")
    try:
        first = rule.next_after(_FIRST - _EARLY)
    except ValueError:  # of dateutil, for an interval that never meets the hours, minutes or seconds
        first = None
    if first is None:
        raise UsageError(f"cron: {shown(value)} never comes")
    return text


@attrs.frozen
class Recurrence:
    """A recurrence rule in a time zone."""

    expression: str
    timezone: str

    def next_after(self, instant: datetime) -> datetime:
        """The first tick after an instant; both are in UTC. NEVER if there is none."""
        zone = ZoneInfo(self.timezone)
        rule = _parse(self.expression, self.timezone)
        # Earlier local times are no later instants. A later one is no later instant in the hour that comes twice.
        local = instant.astimezone(zone).replace(tzinfo=None)
        while (found := rule.next_after(local)) is not None:
            tick = _to_utc(zone, found)
            if tick > instant:
                return tick
            local = found
        return NEVER

    def ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """All ticks after one instant and up to another."""
        tick = self.next_after(after)
        while tick <= until and tick != NEVER:
            yield tick
            tick = self.next_after(tick)


@attrs.frozen
class _Rule:
    """The parts of a rule. All times are local, without a zone."""

    parts: dict[str, str]
    start: datetime
    added: tuple[datetime, ...]
    removed: frozenset[datetime]

    def next_after(self, local: datetime) -> datetime | None:
        """The first time of the rule after a time."""
        added = [time for time in self.added if time > local and time not in self.removed]
        found: datetime | None = self._compiled(local).after(local)
        while found is not None and found in self.removed:
            found = self._compiled(found).after(found)
        return min([*added, *([] if found is None else [found])], default=None)

    def _compiled(self, local: datetime) -> Any:
        """The rule for times after ``local``. It begins not long before: it is computed from its beginning on."""
        # Imported here: most programs have no such schedule. It comes with croniter.
        from dateutil.rrule import rrulestr

        start = self.start
        period = _PERIODS.get(self.parts["FREQ"])
        if period is not None and "COUNT" not in self.parts:
            # Whole periods, so that the rule stays the same.
            period *= int(self.parts.get("INTERVAL", "1"))
            start += max(0, (local - start) // period - 1) * period
        text = ";".join(f"{name}={value}" for name, value in self.parts.items())
        return rrulestr(text, dtstart=start)


@lru_cache(maxsize=256)
def _parse(text: str, timezone: str) -> _Rule:
    lines: dict[str, list[str]] = {}
    for line in text.splitlines():
        if re.match(r"\w+;TZID=", line):
            raise UsageError(
                f"cron: {shown(line)}: leave TZID out: all times are in the zone of the schedule, tz='Europe/Berlin'"
            )
        match = _PROPERTY.fullmatch(line)
        if match is None:
            raise UsageError(
                f"cron: {shown(line)} is not a line of a rule: use RRULE, DTSTART, RDATE, EXDATE"
            )
        lines.setdefault(match[1] or "RRULE", []).append(match[2])
    if len(lines.get("RRULE", ())) != 1 or len(lines.get("DTSTART", ())) > 1:
        raise UsageError(f"cron: {shown(text)}: a schedule has one RRULE and at most one DTSTART")
    zone = ZoneInfo(timezone)
    parts = _parse_parts(lines["RRULE"][0], zone)
    start = _parse_time(lines["DTSTART"][0], zone) if "DTSTART" in lines else _FIRST
    _check_limits(parts)
    _check_cost(parts, has_start="DTSTART" in lines)
    added = [_parse_time(time, zone) for line in lines.get("RDATE", ()) for time in line.split(",")]
    removed = [_parse_time(time, zone) for line in lines.get("EXDATE", ()) for time in line.split(",")]
    rule = _Rule(parts, start, tuple(added), frozenset(removed))
    try:
        rule._compiled(start)
    except (ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        raise UsageError(f"cron: {shown(text)}: {error}") from None
    return rule


def _parse_parts(text: str, zone: ZoneInfo) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(";") if part]
    parts = {name: value for name, _, value in pairs}
    if len(parts) < len(pairs) or not all(parts.values()) or "FREQ" not in parts:
        raise UsageError(f"cron: {shown(text)} is not a rule: use FREQ=…, each part once, separated by ;")
    if "UNTIL" in parts:
        parts["UNTIL"] = _parse_time(parts["UNTIL"], zone).strftime("%Y%m%dT%H%M%S")
    for name in ("INTERVAL", "COUNT"):
        if name in parts and not re.fullmatch("[1-9][0-9]{0,5}", parts[name], re.ASCII):
            raise UsageError(f"cron: {name}={shown(parts[name])} is not a whole number from 1 to 999999")
    return parts


def _check_limits(parts: dict[str, str]) -> None:
    for name in _LIMITS.keys() & parts.keys():
        low, high = _LIMITS[name]
        numbers = _integers(parts[name])
        allowed = numbers if name not in _FROM_THE_END else [abs(number) for number in numbers]
        if len(numbers) <= parts[name].count(",") or not all(low <= number <= high for number in allowed):
            also = f", or -{high} to -1" if name in _FROM_THE_END else ""
            raise UsageError(
                f"cron: {name}={shown(parts[name])} is not a list of numbers from {low} to {high}{also}"
            )


def _check_positions(parts: dict[str, str]) -> None:
    """Refuse positions that no period of a rule has: to find that out, all periods to the end of time are computed."""
    names = ("BYHOUR", "BYMINUTE", "BYSECOND")
    times = prod(len(_integers(parts[name])) for name in names if name in parts)
    days = {"DAILY": 1, "WEEKLY": 1 + parts.get("BYDAY", "").count(",")}.get(parts["FREQ"], 366)
    if all(abs(position) > times * days for position in _integers(parts["BYSETPOS"])):
        raise UsageError(
            f"cron: BYSETPOS={parts['BYSETPOS']} never comes: a period has {times * days} times at most"
        )


def _check_cost(parts: dict[str, str], *, has_start: bool) -> None:
    """Refuse rules that take long to compute, because few or none of very many times pass their filters."""
    if "COUNT" in parts and (not has_start or int(parts["COUNT"]) > _MOST_COUNTED):
        raise UsageError(f"cron: COUNT needs a DTSTART to count from, and is at most {_MOST_COUNTED}")
    days = {"BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY", "BYEASTER", "BYSETPOS"} & parts.keys()
    if days and parts["FREQ"] in ("HOURLY", "MINUTELY", "SECONDLY"):
        used = ", ".join(sorted(days))
        raise UsageError(
            f"cron: {used} with FREQ={parts['FREQ']}: use FREQ=DAILY with BYHOUR, BYMINUTE, BYSECOND"
        )

    if "BYSETPOS" in parts:
        _check_positions(parts)
    for name, frequencies in _ONLY_WITH.items():
        if name in parts and parts["FREQ"] not in frequencies:
            raise UsageError(f"cron: {name} is for FREQ={', '.join(frequencies) or 'nothing'}")
    if "BYMONTH" in parts and "BYMONTHDAY" in parts:
        months, days_of_month = _integers(parts["BYMONTH"]), _integers(parts["BYMONTHDAY"])
        if not any(abs(day) <= _LENGTHS[month] for month in months for day in days_of_month):
            raise UsageError(
                f"cron: BYMONTHDAY={parts['BYMONTHDAY']} never comes in BYMONTH={parts['BYMONTH']}"
            )


def _integers(text: str) -> list[int]:
    """The numbers of a list, without what is none."""
    return [int(item) for item in text.split(",") if re.fullmatch(r"[+-]?\d{1,3}", item, re.ASCII)]


def _parse_time(text: str, zone: ZoneInfo) -> datetime:
    """A time of a rule, as a local time: ``20300131``, ``20300131T090000`` or, in UTC, ``20300131T080000Z``."""
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        time = datetime.strptime(match[1] + (match[2] or "000000"), "%Y%m%d%H%M%S")
    except ValueError:
        raise UsageError(f"cron: {shown(text)} is not a time of a rule, like 20300131T090000") from None
    return time.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None) if match[3] else time


def _to_utc(zone: ZoneInfo, local: datetime) -> datetime:
    """The instant of a local time; of one in a gap the change of the clocks."""
    instant = local.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None) == local:
        return instant
    low, high = instant - timedelta(hours=4), instant
    before = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):  # bisection: zoneinfo does not list its transitions
        middle = low + (high - low) / 2
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
    return high.replace(microsecond=0)
