"""Checks of one field: the value in its final form, or a UsageError that names the field."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import attrs

from trioboss.errors import UsageError

__all__ = [
    "EARLIEST",
    "LATEST",
    "check_count",
    "check_duration",
    "check_factor",
    "check_flag",
    "check_fraction",
    "check_instant",
    "check_key",
    "check_name",
    "check_priority",
    "check_start",
    "check_trace",
    "check_uuid",
    "checked",
    "shown",
]

# The queue of a queue's completion jobs (see copy_completions.sql) may have a name that much longer.
_NAME = re.compile(r"(__state__completed__)?[\w.\-/]{1,200}", re.ASCII)
_LONGEST = 100 * 365.25 * 86400.0  # seconds; more is a unit mistaken for another
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)  # an earlier instant is a mistake
LATEST = datetime(2200, 1, 1, tzinfo=UTC)  # later instants do not survive 64-bit nanoseconds
_INT4 = 2**31 - 1
_MOST = 10**9  # as the domain `amount` of the database: sums of two counts never overflow
_SHOWN = 200  # characters of a value that an error shows
_TRACE_CHARACTERS = 2000  # the database allows 4000 of JSON
_KEY_BYTES = 1000  # keys are indexed, and an index entry has at most 2704 bytes


def shown(value: object) -> str:
    """A value as an error shows it: errors are stored and logged, and a value can be of any length."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def check_name(field: str, value: object) -> str:
    """A queue's or event's name."""
    if isinstance(value, str) and _NAME.fullmatch(value):
        return value
    raise UsageError(
        f"{field}: {shown(value)} is not a name: use 1 to 200 ASCII letters, digits and any of _ . - /"
    )


def check_key(field: str, value: object) -> str:
    """A singleton key: any text Postgres can hold."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"{field}: {shown(value)} is not a key: use a string that is not empty")
    if "\0" in value:
        raise UsageError(f"{field}: a key cannot contain the NUL character")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{field}: a key cannot contain half a surrogate pair") from None
    if size > _KEY_BYTES:
        raise UsageError(f"{field}: the key has {size} bytes, {_KEY_BYTES} are allowed")
    return value


def check_uuid(field: str, value: object) -> UUID:
    """A job's id, as UUID or as its text."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, str):
        try:
            return UUID(value)
        except ValueError:
            pass
    raise UsageError(f"{field}: {shown(value)} is not a UUID")


def check_flag(field: str, value: object) -> bool:
    """True or False, and nothing that is only equal to them."""
    if isinstance(value, bool):  # not 0 or 1: a count in the place of a flag is a mistake
        return value
    raise UsageError(f"{field}: {shown(value)} is not True or False")


def _check_int(field: str, value: object, low: int, high: int) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    raise UsageError(f"{field}: {shown(value)} is not a whole number from {low} to {high}")


def check_count(field: str, value: object, low: int = 0) -> int:
    """A whole number that is not negative."""
    return _check_int(field, value, low, _MOST)


def check_priority(field: str, value: object) -> int:
    """A priority: higher runs first."""
    return _check_int(field, value, -_INT4 - 1, _INT4)


def check_fraction(field: str, value: object) -> float:
    """A number from 0 to 1."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
        return float(value)
    raise UsageError(f"{field}: {shown(value)} is not a number from 0 to 1")


def check_factor(field: str, value: object) -> float:
    """A number from 1 to 100."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= 100:
        return float(value)
    raise UsageError(f"{field}: {shown(value)} is not a number from 1 to 100")


def check_duration(field: str, value: object, low: float = 0.0, above: bool = False) -> float:
    """A length of time in seconds, from a number or a timedelta; ``above`` excludes ``low`` itself."""
    # bool is an int, and NaN fails every comparison: both are refused.
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise UsageError(f"{field}: {shown(value)} is not a duration: use seconds or a timedelta")
    # Postgres keeps microseconds. The value is rounded here, so that it is read as it was checked.
    seconds = round(float(seconds), 6) if low <= seconds <= _LONGEST else -1.0
    if seconds < low or (above and seconds == low):
        bound = f"more than {low:g}" if above else f"at least {low:g}"
        raise UsageError(
            f"{field}: {shown(value)} is out of range: use {bound} seconds and less than 100 years"
        )
    return seconds


def check_start(field: str, value: object) -> float | datetime:
    """When to start: seconds from now (number, timedelta), or an instant (datetime, ISO 8601 text)."""
    if isinstance(value, datetime | str):
        return check_instant(field, value)
    return check_duration(field, value)


def check_instant(field: str, value: object) -> datetime:
    """An instant: an aware datetime, or ISO 8601 text."""
    if isinstance(value, str):
        value = _parse_instant(field, value)
    if not isinstance(value, datetime):
        raise UsageError(f"{field}: {shown(value)} is not an instant: use a datetime, or ISO 8601 text")
    if value.tzinfo is None:
        raise UsageError(f"{field}: {shown(value)} has no time zone: give it one, e.g. tzinfo=UTC")
    if value < EARLIEST:
        raise UsageError(f"{field}: {shown(value)} is too long ago: use an instant after {EARLIEST.year}")
    if value >= LATEST:
        raise UsageError(f"{field}: {shown(value)} is too far away: use an instant before {LATEST.year}")
    return value


def _parse_instant(field: str, text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{field}: {shown(text)} is not a time in ISO 8601") from None
    return instant


def check_trace(field: str, value: object) -> dict[str, str]:
    """A trace context: header names and values, all text."""
    if not isinstance(value, Mapping) or not all(
        isinstance(part, str) and part.isascii() and part.isprintable()
        for item in value.items()
        for part in item
    ):
        raise UsageError(
            f"{field}: {shown(value)} is not a trace context: use a dict of printable ASCII text"
        )
    if sum(len(name) + len(text) for name, text in value.items()) > _TRACE_CHARACTERS:
        raise UsageError(f"{field}: the trace context has more than {_TRACE_CHARACTERS} characters")
    return dict(value)


def checked(
    check: Callable[..., object], *, default: Any = None, optional: bool = True, **limits: Any
) -> Any:
    """An attrs field whose value is converted by ``check``, which gets the name of the field for its message.

    The check and its limits are also the metadata of the field: the documentation lists them.
    """

    def convert(value: object, _: Any, field: "attrs.Attribute[Any]") -> object:
        return None if value is None and optional else check(field.name, value, **limits)

    converter = attrs.Converter(convert, takes_self=True, takes_field=True)
    metadata = {"check": check, "limits": limits}
    return attrs.field(default=default, kw_only=True, converter=converter, metadata=metadata)
