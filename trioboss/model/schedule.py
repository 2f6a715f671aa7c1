"""Schedules: a job is sent at every tick of a cron expression."""

import enum
from datetime import datetime
from typing import Any, Final, Literal
from zoneinfo import ZoneInfo

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import shown
from trioboss.model.job import SendOptions
from trioboss.model.payload import Json, JsonInput
from trioboss.model.recurrence import check_rule, is_rule

__all__ = ["Missed", "Schedule", "ScheduleOptions", "check_cron", "check_missed", "check_timezone"]

_LONGEST = 1000  # characters of a cron expression

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Cron expressions that have a name."""


class Missed(enum.StrEnum):
    """The rule for ticks that were due while no boss was running."""

    SKIP = "skip"
    LATEST = "latest"
    ALL = "all"


class ScheduleOptions(SendOptions, total=False):
    """The options of `schedule`, and of `app.schedule`: of the schedule itself, and of `send` for each of its jobs."""

    data: JsonInput
    """The data of each job (None)."""
    tz: str
    """The time zone of the cron expression (UTC)."""
    key: str
    """Tells several schedules of one queue apart (empty)."""
    missed: Literal["skip", "latest", "all"]
    """Which ticks are fired that were due while no boss was running (skip): none, the latest, or all of them, at most
    the last 1,000. A tick that is late by less than a minute was not missed: it is fired in any case, so that a restart
    skips nothing.
    """


@attrs.frozen
class Schedule:
    """A schedule as it was when it was read."""

    queue: str
    key: str
    cron: str
    timezone: str
    missed: Missed = attrs.field(converter=Missed)
    data: Json
    options: dict[str, Any]
    created_on: datetime
    updated_on: datetime


def check_cron(value: object) -> str:
    """A cron expression of five fields, or six with seconds first; an alias like @daily, as the expression that it
    stands for; or a recurrence rule.
    """
    if isinstance(value, str) and is_rule(value):
        return check_rule(value)
    if isinstance(value, str) and len(value) > _LONGEST:
        raise UsageError(f"cron: the expression has {len(value)} characters, {_LONGEST} are allowed")
    if isinstance(value, str) and value.startswith("@"):
        if value.lower() not in ALIASES:
            raise UsageError(f"cron: {shown(value)} is not one of {', '.join(ALIASES)}")
        return ALIASES[value.lower()]
    # Imported here: most programs make no schedule, and a command line tool should start quickly.
    from croniter import CroniterError, croniter

    fields = value.split() if isinstance(value, str) else []
    if len(fields) not in (5, 6):
        raise UsageError(
            f"cron: {shown(value)} is not a cron expression of five or six fields, nor a rule: FREQ=…"
        )
    # croniter draws such a field at random, so each process would have another schedule.
    if any(field[0] in "HhRr" for field in fields):
        raise UsageError(f"cron: {shown(value)}: H and R would mean another time in each process")
    try:
        croniter.expand(value, second_at_beginning=True, strict=True)
    except CroniterError as error:
        raise UsageError(f"cron: {shown(value)}: {error}") from None
    return str(value)


def check_timezone(value: object) -> str:
    """The name of a time zone."""
    try:
        return ZoneInfo(value).key  # type: ignore[arg-type]
    except (LookupError, OSError, TypeError, ValueError):
        raise UsageError(f"tz: {shown(value)} is not a time zone: use a name like Europe/Berlin") from None


def check_missed(value: object) -> Missed:
    """The rule for missed ticks."""
    try:
        return Missed(value)  # type: ignore[arg-type]
    except ValueError:
        raise UsageError(f"missed: {shown(value)} is not one of {', '.join(Missed)}") from None
