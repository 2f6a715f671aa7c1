"""Values as text and markup for the pages. Values of jobs are shown as data: escaped, bounded, and without
characters that would change how the text around them reads.
"""

import json
import re
import secrets
import unicodedata
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup, escape

from trioboss.charts import numbers
from trioboss.dashboard.values import COUNT_LIMIT, Payload
from trioboss.model.payload import Unreadable

__all__ = [
    "FILTERS",
    "Redactor",
    "at_least",
    "clean",
    "count",
    "describe_result",
    "make_redactor",
    "read_payload",
    "show_excerpt",
    "show_json",
    "show_time",
]

Redactor = Callable[[str, Any], Any]
"""Takes a queue and a value of one of its jobs (data, output, error or progress), and returns what may be shown."""

_MOST_CHARACTERS = 100_000
_MOST_OF_EXCERPT = 160
_HIDDEN = "•••"
_TOO_DEEP = "it is nested too deeply"
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


def read_payload(text: str | None) -> Payload | None:
    """JSON that Postgres wrote, with all digits of its numbers; None if it is null."""
    if text is None or text == "null":
        return None
    try:
        return Payload(json.loads(text, parse_float=Decimal), len(text))
    except RecursionError:
        return Payload(Unreadable(_TOO_DEEP), len(text))
    except ValueError as error:
        return Payload(Unreadable(str(error)), len(text))


def show_json(value: object) -> str:
    """JSON over several lines, cut off where it is too long. Numbers have all their digits."""
    return _show_json(value, 2, _MOST_CHARACTERS, "\n… the rest is cut off")


def show_excerpt(value: object) -> str:
    """The beginning of JSON, for a list."""
    return _show_json(value, None, _MOST_OF_EXCERPT, "…")


def _show_json(value: object, indent: int | None, most: int, rest: str) -> str:
    if isinstance(value, Unreadable):
        return f"Python cannot read this value: {value.problem}. Read it with SQL."
    # json.dumps writes a Decimal only as text. The mark is random, so that no text in the value can contain it.
    mark = secrets.token_hex(16)

    def write(value: object) -> str:
        return f"{mark}{value}{mark}" if isinstance(value, Decimal) else str(value)

    # Encoded only as far as it is shown: a live page does it every second, in the event loop.
    encoder = json.JSONEncoder(indent=indent, ensure_ascii=False, default=write)
    parts, length = [], 0
    try:
        for part in encoder.iterencode(value):
            parts.append(part)
            length += len(part)
            if length > most + 2 * len(mark):
                break
    except RecursionError:
        return _show_json(Unreadable(_TOO_DEEP), indent, most, rest)
    text = "".join(parts).replace(f'"{mark}', "").replace(f'{mark}"', "")
    return clean(text) if len(text) <= most else clean(text[:most]) + rest


def json_size(size: int) -> str:
    """How large a value is."""
    return f"{size:,} B" if size < 10_000 else f"{size / 1024:,.0f} KiB"


def make_redactor(redact: Redactor | Collection[str] | None) -> Redactor:
    """A function that hides what may not be shown: a caller's own, or one that hides fields of these names anywhere."""
    if redact is None:
        return lambda _, value: value
    if callable(redact):
        return _guard(redact)
    names = {name.lower() for name in redact}
    return _guard(lambda _, value: _hide(value, names))


def _guard(redact: Redactor) -> Redactor:
    """A value that is nested too deeply for the function is not shown: it could not be redacted."""

    def guarded(queue: str, value: Any) -> Any:
        try:
            return redact(queue, value)
        except RecursionError:
            return Unreadable(_TOO_DEEP)

    return guarded


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
    return f"more than {COUNT_LIMIT - 1:,}" if number >= COUNT_LIMIT else f"{number:,}"


def short_count(number: int, limit: int = COUNT_LIMIT) -> Markup:
    """The same for a small place."""
    if number < limit:
        return Markup(f"{number:,}")
    return Markup('<span title="more than {0}">{0}+</span>').format(f"{limit - 1:,}")


def at_least(number: int) -> Markup:
    """A sum of counts, of which some have stopped."""
    return Markup('<span title="at least {0}">{0}+</span>').format(f"{number:,}")


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
    "json": show_json,
    "excerpt": show_excerpt,
    "json_size": json_size,
    "count": count,
    "short": short_count,
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
