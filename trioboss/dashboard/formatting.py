"""Values as text and markup for the pages. Values of jobs are shown as data: escaped, bounded, and without
characters that would change how the text around them reads.
"""

import json
import unicodedata
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from trioboss.charts import numbers
from trioboss.dashboard.values import MOST
from trioboss.model.payload import Unreadable

__all__ = ["FILTERS", "Redactor", "clean", "count", "make_redactor", "show_json", "show_time"]

Redactor = Callable[[str, Any], Any]
"""Takes a queue and a value of one of its jobs (data, output, error or progress), and returns what may be shown."""

_MOST_CHARACTERS = 100_000
_HIDDEN = "•••"
_DIRECTIONS = {
    "\u200e",
    "\u200f",
    "\u061c",
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
}
_KEPT = {"\n", "\t"}


def clean(text: str) -> str:
    """The text with control characters, and those that change the direction of writing, as escapes."""
    if text.isprintable() and text.isascii():
        return text
    return "".join(_escape_character(c) for c in text)


def _escape_character(c: str) -> str:
    if c in _KEPT or c == " ":
        return c
    if c in _DIRECTIONS or unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
    return c


def show_json(value: object) -> str:
    """JSON over several lines, cut off where it is too long. Numbers have all their digits."""
    if isinstance(value, Unreadable):
        return f"(cannot be shown: {value.problem})"
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    if len(text) > _MOST_CHARACTERS:
        return clean(text[:_MOST_CHARACTERS]) + f"\n… {len(text) - _MOST_CHARACTERS:,} more characters"
    return clean(text)


def json_size(value: object) -> str:
    """About how large a value is."""
    size = len(json.dumps(value, default=str))
    return f"{size:,} B" if size < 10_000 else f"{size / 1024:,.0f} KiB"


def make_redactor(redact: Redactor | Collection[str] | None) -> Redactor:
    """A function that hides what may not be shown: a caller's own, or one that hides fields of these names anywhere."""
    if redact is None:
        return lambda _, value: value
    if callable(redact):
        return redact
    names = {name.lower() for name in redact}
    return lambda _, value: _hide(value, names)


def _hide(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {k: _HIDDEN if k.lower() in names else _hide(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_hide(each, names) for each in value]
    return value


def count(number: int | None) -> str:
    """A count that may have stopped at 10,001."""
    if number is None:
        return numbers.NONE
    return f"more than {MOST - 1:,}" if number >= MOST else f"{number:,}"


def short_count(number: int) -> str:
    """The same for a small place."""
    return f"{(MOST - 1) // 1000}k+" if number >= MOST else f"{number:,}"


def show_time(instant: datetime | None, style: str = "full") -> Markup:
    """A time in UTC; a script writes it in the browser's zone, and keeps UTC for the pointer."""
    if instant is None:
        return Markup(numbers.NONE)
    at = instant.astimezone(UTC)
    text = f"{at:%H:%M:%S}" if style == "time" else f"{at.day} {at:%b %H:%M:%S}"
    return Markup('<time datetime="{}" data-style="{}" title="{} UTC">{}</time>').format(
        at.isoformat(), style, f"{at:%Y-%m-%d %H:%M:%S}", text
    )


def show_age(instant: datetime | None) -> Markup:
    """A time that a script writes as an age. The server writes the time itself: an age would change every second, and
    with it the part of a live page that it is in.
    """
    return show_time(instant, "age")


def finalize(value: object) -> object:
    """Applied to everything that a template writes."""
    return escape(clean(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


FILTERS: dict[str, Callable[..., object]] = {
    "json": show_json,
    "json_size": json_size,
    "count": count,
    "short": short_count,
    "number": numbers.count,
    "duration": numbers.duration,
    "time": show_time,
    "age": show_age,
}
