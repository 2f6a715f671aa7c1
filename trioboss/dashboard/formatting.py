"""Texts, times and numbers as markup for the pages: escaped, and without characters that would change how the text
around them reads. payloads.py has the values of jobs.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from urllib.parse import urlencode

from markupsafe import Markup, escape

from trioboss.charts import numbers
from trioboss.dashboard.values import COUNT_LIMIT

__all__ = [
    "FILTERS",
    "clean",
    "count",
    "describe_result",
    "more_than",
    "show_time",
]

_DIRECTIONS = {
    "\u200e",
    "\u200f",
    "\u061c",
    *map(chr, range(0x202A, 0x202F)),
    *map(chr, range(0x2066, 0x206A)),
}
_KEPT = {"\n", "\t"}
_RESULT = re.compile(r"([a-z-]{1,20}):([0-9]{1,12}):([0-9]{1,12})")
_UTC = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}) UTC")


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


def count(number: int | None, limit: int = COUNT_LIMIT) -> str:
    """A count that may have stopped, mostly at 10,001."""
    if number is None:
        return numbers.NONE
    return f"more than {limit - 1:,}" if number >= limit else f"{number:,}"


def short_count(number: int, limit: int = COUNT_LIMIT) -> Markup:
    """The same for a place among numbers."""
    return Markup(f"{number:,}") if number < limit else more_than(limit - 1)


def more_than(number: int) -> Markup:
    """A count that has stopped, for a place among numbers."""
    return Markup(f'<small class="over">more than </small>{number:,}')


def show_time(instant: datetime | None, style: str = "full") -> Markup:
    """A time in UTC; a script writes it in the browser's zone, and keeps UTC for the pointer."""
    if instant is None:
        return Markup(numbers.NONE)
    at = instant.astimezone(UTC)
    year = "" if at.year == datetime.now(UTC).year else f" {at.year}"
    text = f"{at:%H:%M:%S}" if style == "time" else f"{at.day} {at:%b}{year} {at:%H:%M:%S}"
    return Markup('<time datetime="{}" data-style="{}" title="{} UTC">{}</time>').format(
        at.isoformat(), style, f"{at:%Y-%m-%d %H:%M:%S}", text
    )


def describe_result(text: str) -> str | None:
    """The result of an action, as the address of the page after it has it."""
    match = _RESULT.fullmatch(text)
    if match is None:
        return None
    action, affected, requested = match[1].replace("-", " ").capitalize(), int(match[2]), int(match[3])
    return f"{action}: {affected:,} of {requested:,} job{'' if requested == 1 else 's'} changed"


def show_iso_time(text: object, style: str = "full") -> Markup:
    """A time that the database has as text, in JSON."""
    try:
        return show_time(datetime.fromisoformat(str(text)), style)
    except ValueError:
        return escape(clean(str(text)))


def show_times(text: str) -> Markup:
    """Text of the store, with the times in it as times of the page."""
    shown, end = Markup(""), 0
    for match in _UTC.finditer(text):
        instant = datetime.fromisoformat(match[1]).replace(tzinfo=UTC)
        shown += escape(clean(text[end : match.start()])) + show_time(instant)
        end = match.end()
    return shown + escape(clean(text[end:]))


def short_id(id: object) -> Markup:
    """An id as lists show it: the filter of a list of jobs takes it like this. A phone shows the end alone."""
    return Markup('<span class="wide">{}</span>…{}').format(clean(str(id)[:8]), clean(str(id)[-12:]))


def cut(text: object, most: int) -> str:
    """The beginning of a text that may be long."""
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]}… {len(whole) - most:,} more characters"


def show_age(instant: datetime | None) -> Markup:
    """A time that a script writes as an age. The server writes the time itself: an age would change every second, and
    with it the part of a live page that it is in.
    """
    return show_time(instant, "age")


def raw(value: object) -> Markup:
    """The value of a field of a form. It is not cleaned: it comes back, and an altered key is another key."""
    return escape("" if value is None else str(value))


def pack(fields: Mapping[str, object]) -> str:
    """Fields of a form as the query of an address: plain ASCII, which neither `clean` nor a browser alters."""
    return urlencode({name: "" if value is None else value for name, value in fields.items()}, doseq=True)


def finalize(value: object) -> object:
    """Applied to everything that a template writes."""
    return escape(clean(value)) if isinstance(value, str) and not isinstance(value, Markup) else value


FILTERS: dict[str, Callable[..., object]] = {
    "count": count,
    "short": short_count,
    "more_than": more_than,
    "number": numbers.count,
    "duration": numbers.duration,
    "time": show_time,
    "age": show_age,
    "times": show_times,
    "iso_time": show_iso_time,
    "short_id": short_id,
    "cut": cut,
    "raw": raw,
    "pack": pack,
}
