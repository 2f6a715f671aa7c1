"""The description of an error: as JSON, to be stored with the job, and in one line, for events and logs."""

import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from trioboss.errors import HELP_NOTE, PayloadError
from trioboss.model.payload import Json, encode
from trioboss.model.texts import printable_stack

__all__ = ["Redact", "describe_error", "error_line", "stack_text"]

Redact: TypeAlias = Callable[[dict[str, Json]], Mapping[str, Json]]
"""Gets the description of an error and returns the one that is stored: without secrets, for instance."""

_TEXT_CHARACTERS = 8000
_LINE_CHARACTERS = 500
_ATTRIBUTES_BYTES = 4000  # of JSON, for all attributes of one exception
_MOST_NOTES = 20
_MOST_RELATED = 20  # exceptions that are described along with one: its causes, and the members of groups
_MOST_FORMATTED = 200  # exceptions in a group, and in the groups of it, whose stacks are shown
_OWN = frozenset({"name", "message", "stack", "notes", "cause", "errors"})


def describe_error(error: object, redact: Redact | None = None) -> str | None:
    """Return the JSON text that is stored as a failed job's output. Never raises for an exception.

    An exception has its ``name``, ``message`` and ``stack``, its public attributes as far as JSON can hold them
    (``status``, ``code``, …), its ``notes``, its ``cause`` and, for a group, its ``errors``.
    """
    if error is None:
        return None
    if isinstance(error, BaseException):
        return _write(
            _describe(error, iter(range(_MOST_RELATED))) | {"stack": _storable(_stack(error))}, redact
        )
    if isinstance(error, str):
        return _write({"message": _storable(error)}, redact)
    if redact is not None and isinstance(error, dict):
        encode(error, "error")
        return _write(error, redact)
    return encode(error, "error")


def _write(described: dict[str, Any], redact: Redact | None) -> str:
    if redact is None:
        return json.dumps(described)
    try:
        return encode(dict(redact(described)), "error")
    except Exception as problem:
        # An error that could not be redacted may contain what must not be stored.
        message = f"not stored: redact raised {type(problem).__name__}"
        return json.dumps({"name": described.get("name"), "message": message})


# A handler's exception may raise anything in its own methods, and groups can be nested deeper than the stack is.


def _describe(error: BaseException, left: Iterator[int]) -> dict[str, Any]:
    """``left`` counts the exceptions that may still be described: groups can contain groups, and chains be long."""
    described: dict[str, Any] = dict(_attributes(error))
    described["name"] = _type_name(error)
    described["message"] = _storable(_message(error))
    if notes := [_storable(note) for note in _notes(error)]:
        described["notes"] = notes
    if isinstance(error, BaseExceptionGroup):
        members: tuple[BaseException, ...] = BaseExceptionGroup.exceptions.__get__(error)
        described["errors"] = [_describe(each, left) for each, _ in zip(members, left, strict=False)]
    cause = _cause(error)
    if cause is not None and next(left, None) is not None:
        described["cause"] = _describe(cause, left)
    return described


def _cause(error: BaseException) -> BaseException | None:
    try:
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return cause if isinstance(cause, BaseException) else None
    except BaseException:
        return None


def _attributes(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The public attributes that JSON can hold, until they are too many."""
    left = _ATTRIBUTES_BYTES
    try:
        found = list(dict.items(object.__getattribute__(error, "__dict__")))
    except BaseException:
        return
    for name, value in found:
        if type(name) is not str or name.startswith("_") or name in _OWN:
            continue
        try:
            left -= len(name) + len(encode(value, name, left))
            encode(name, name)
        except PayloadError:
            continue
        if left < 0:
            return
        yield name, value


def _notes(error: BaseException) -> list[str]:
    try:
        notes = object.__getattribute__(error, "__dict__").get("__notes__")
        if type(notes) is not list:
            return []
        # An address is for the reader of a traceback, and not a part of what happened.
        return [note for note in notes[:_MOST_NOTES] if type(note) is str and note != HELP_NOTE]
    except BaseException:
        return []


def error_line(error: object) -> str:
    """An error in one line, for a log."""
    text = _message(error)
    if isinstance(error, BaseException):
        text = f"{_type_name(error)}: {text}" if text else _type_name(error)
        text = ": ".join([text.partition("\n")[0], *_notes(error)])
    return text.partition("\n")[0][:_LINE_CHARACTERS]


def stack_text(error: BaseException) -> str:
    """The stack of an error, for a log: lines that can be printed, and of a long one the beginning and the end."""
    return printable_stack(_storable(_stack(error)).rstrip())


def _message(error: object) -> str:
    try:
        return str.__str__(str(error))
    except BaseException:
        return "<str() of the exception failed>"


def _type_name(error: object) -> str:
    try:
        return str.__str__(type(error).__name__)
    except BaseException:
        return "<unknown>"


def _stack(error: BaseException) -> str:
    try:
        if _can_format(error):
            return "".join(traceback.format_exception(error))
        return "".join(traceback.format_tb(error.__traceback__)) + _type_name(error)
    except BaseException:
        return "<the stack cannot be read>"


def _can_format(error: BaseException) -> bool:
    """Tell whether the traceback module comes to an end: not with very many exceptions, nor with a group that computes
    its members.
    """
    todo, count = [error], 0
    while todo and count < _MOST_FORMATTED:
        one = todo.pop()
        count += 1
        if isinstance(one, BaseExceptionGroup):
            if type(one).exceptions is not BaseExceptionGroup.exceptions:
                return False
            todo += one.exceptions
    return not todo


def _storable(text: str) -> str:
    """The text as Postgres can hold it, and of a long one the beginning and the end."""
    if len(text) > _TEXT_CHARACTERS:
        half = _TEXT_CHARACTERS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    return text.replace("\0", "\\0").encode(errors="replace").decode()
