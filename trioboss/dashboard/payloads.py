"""Values of jobs for the pages: data, outputs, errors and progress. They are shown as data, bounded, and only as far as
`redact` lets them.
"""

import json
import logging
import secrets
from collections.abc import Callable, Collection
from decimal import Decimal
from functools import lru_cache
from typing import Any

from trioboss.dashboard.formatting import clean
from trioboss.dashboard.values import Beginning, Payload, Withheld
from trioboss.model.payload import Unreadable

__all__ = [
    "FILTERS",
    "MOST_BYTES",
    "Redactor",
    "Show",
    "make_redactor",
    "make_show",
    "read_payload",
    "redact_message",
    "show_excerpt",
    "show_json",
]

Redactor = Callable[[str, Any], Any]
"""Takes a queue and a value of one of its jobs (data, output, error or progress), and returns what may be shown."""

Show = Callable[[str, str | None, int | None], Payload | None]
"""Takes a queue, JSON text and its bytes; returns the value as far as it may be shown, or None if it is null."""

MOST_BYTES = 1_048_576
"""Values of more JSON text are not parsed: the page of a job that is live does it again whenever it has changed, and
while Python parses, no other task of the process runs."""

_MOST_CHARACTERS = 100_000
_MOST_OF_EXCERPT = 160
_HIDDEN = "•••"
_TOO_DEEP = "it is nested too deeply"
_TOO_LARGE = Withheld("It is too large to hide fields in it here, so it is not shown. Read it with SQL.")

_logger = logging.getLogger("trioboss.dashboard")


def read_payload(text: str | None, size: int | None = None) -> Payload | None:
    """JSON that Postgres wrote, with all digits of its numbers; None if it is null. The size is that of the whole text,
    if this is only its beginning.
    """
    if text is None or text == "null":
        return None
    size = len(text) if size is None else size
    if size > MOST_BYTES:
        return Payload(Beginning(text[: _MOST_CHARACTERS + 1]), size)
    try:
        return Payload(json.loads(text, parse_float=Decimal), size)
    except RecursionError:
        return Payload(Unreadable(_TOO_DEEP), size)
    except ValueError as error:
        return Payload(Unreadable(str(error)), size)


# -- as text


def show_json(value: object) -> str:
    """JSON over several lines, cut off where it is too long. Numbers have all their digits."""
    return _show_json(value, 2, _MOST_CHARACTERS, "\n… the rest is cut off")


def show_excerpt(value: object) -> str:
    """The beginning of JSON, for a list."""
    return _show_json(value, None, _MOST_OF_EXCERPT, "…")


def _show_json(value: object, indent: int | None, most: int, rest: str) -> str:
    if isinstance(value, Unreadable):
        return f"Python cannot read this value: {value.problem}. Read it with SQL."
    if isinstance(value, Withheld):
        return value.reason
    text = value.text if isinstance(value, Beginning) else _encode(value, indent, most)
    if text is None:
        return _show_json(Unreadable(_TOO_DEEP), indent, most, rest)
    return clean(text) if len(text) <= most else clean(text[:most]) + rest


def _encode(value: object, indent: int | None, most: int) -> str | None:
    """JSON text, at least so much of it; None if it is nested too deeply."""
    # json.dumps writes a Decimal only as text. The mark is random, so that no text in the value can contain it.
    mark = secrets.token_hex(16)

    def write(value: object) -> str:
        return f"{mark}{value}{mark}" if isinstance(value, Decimal) else str(value)

    # Encoded only as far as it is shown.
    encoder = json.JSONEncoder(indent=indent, ensure_ascii=False, default=write)
    parts, length = [], 0
    try:
        for part in encoder.iterencode(value):
            parts.append(part)
            length += len(part)
            if length > most + 2 * len(mark):
                break
    except RecursionError:
        return None
    return "".join(parts).replace(f'"{mark}', "").replace(f'{mark}"', "")


def json_size(size: int) -> str:
    """How large a value is."""
    return f"{size:,} B" if size < 10_000 else f"{size / 1024:,.0f} KiB"


# -- as far as they may be shown


def make_redactor(redact: Redactor | Collection[str] | None) -> Redactor:
    """A function that hides what may not be shown: a caller's own, or one that hides fields of these names anywhere."""
    if redact is None:
        return lambda _, value: value
    if callable(redact):
        return _guard(redact)
    names = {name.lower() for name in redact}
    return _guard(lambda _, value: _hide(value, names))


def _guard(redact: Redactor) -> Redactor:
    """A value in which the function cannot hide anything is not shown."""
    known: set[str] = set()

    def guarded(queue: str, value: Any) -> Any:
        if isinstance(value, Unreadable | Withheld):
            return value
        if isinstance(value, Beginning):
            return _TOO_LARGE
        try:
            return redact(queue, value)
        except RecursionError:
            return Unreadable(_TOO_DEEP)
        except Exception as error:
            name = type(error).__name__
            if name not in known:  # a live page would write it every second for each job of a list
                known.add(name)
                _logger.exception(
                    "redact: failed with %s for a job of queue %s: its value is not shown", name, queue
                )
            return Withheld(f"`redact` failed with {name}, so this value is not shown: see the log.")

    return guarded


def _hide(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {k: _HIDDEN if k.lower() in names else _hide(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_hide(each, names) for each in value]
    return value


def make_show(redact: Redactor) -> Show:
    """A function that parses and redacts JSON text. It remembers the last few large values, because a page that is live
    asks for the same ones every second.
    """

    def show(queue: str, text: str | None, size: int | None) -> Payload | None:
        payload = read_payload(text, size)
        if payload is None:
            return None
        value = redact(queue, payload.value)
        return Payload(value, payload.size, show_json(value))

    return lru_cache(maxsize=8)(show)


def redact_message(redact: Redactor, queue: str, message: str | None) -> str | None:
    """The message of an error, if it may be shown."""
    if message is None:
        return None
    shown = redact(queue, {"message": message})
    return str(shown.get("message", "")) if isinstance(shown, dict) else ""


FILTERS: dict[str, Callable[..., object]] = {
    "json": show_json,
    "excerpt": show_excerpt,
    "json_size": json_size,
}
