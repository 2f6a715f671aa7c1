"""Times and durations, as people write and read them."""

import math
import re
from datetime import UTC, datetime, timedelta

from trioboss.model.texts import show_seconds

__all__ = ["parse_instant", "parse_seconds", "show_ago"]

_UNITS = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|m|h|d|w)")
_DURATION = re.compile(rf"(?:{_PART.pattern}\s*)+")


def parse_seconds(text: str) -> float:
    """Seconds: `90`, `90s`, `15m`, `1h30m`, `2d`."""
    stripped = text.strip().lower()
    if _DURATION.fullmatch(stripped):
        return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(stripped))
    seconds = float(stripped)
    if not math.isfinite(seconds):
        raise ValueError(text)
    return seconds


def parse_instant(field: str, text: str, now: datetime | None = None) -> datetime:
    """A time (ISO 8601; without a zone the local one), or how long ago."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        pass
    else:
        return instant.astimezone()
    try:
        return (now or datetime.now(UTC)) - timedelta(seconds=parse_seconds(text))
    except (ValueError, OverflowError):
        raise ValueError(
            f"{field}: {text!r} is neither a time like 2026-11-17T08:00Z nor a duration like 15m, 1h or 2d"
        ) from None


def show_ago(instant: datetime | None, now: datetime) -> str:
    """How long ago, for people."""
    return "-" if instant is None else show_seconds(max(0.0, (now - instant).total_seconds()))
