"""The description of an error: as JSON, to be stored with the job, and in one line, for events and logs."""

import json
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import GetSetDescriptorType, MemberDescriptorType
from typing import Any, TypeAlias, TypeGuard, TypeVar

from trioboss.errors import HELP_NOTE, PayloadError
from trioboss.model.payload import Json, encode, is_large
from trioboss.model.texts import printable_stack

__all__ = [
    "Redact",
    "describe_cause",
    "describe_error",
    "described_line",
    "error_line",
    "is_instance",
    "readable_error",
    "stack_text",
]

T = TypeVar("T")

Redact: TypeAlias = Callable[[dict[str, Json]], Mapping[str, Json]]
"""Gets the description of an error and returns the one that is stored: without secrets, for instance."""

_TEXT_CHARACTERS = 8000
_LINE_CHARACTERS = 500
_MOST_CHARACTERS = 100_000  # of a message that is formatted with the stack
_ATTRIBUTES_BYTES = 4000  # of JSON, for all attributes of one exception
_MOST_NOTES = 20
_MOST_RELATED = 20  # exceptions that are described along with one: its causes, and the members of groups
_MOST_FORMATTED = 200  # exceptions whose stacks are shown: causes, members of groups, and theirs
_OWN = frozenset({"name", "message", "stack", "notes", "cause", "errors", "exceptions"})
# The value that an AttributeError or UnicodeError is about: data of the program, and no part of the description.
_SUBJECTS = frozenset({"obj", "object"})


def describe_error(error: object, redact: Redact | None = None) -> str | None:
    """Return the JSON text that is stored as a failed job's output. Never raises for an exception.

    An exception has its ``name``, ``message`` and ``stack``, its public attributes as far as JSON can hold them
    (``status``, ``code``, ``errno``, …), its ``notes``, its ``cause`` and, for a group, its ``errors``. ``redact`` gets
    a dict in any case: a text is its ``message``, and a document that is no dict is its ``value``.
    """
    if error is None:
        return None
    if is_instance(error, BaseException):
        return _write(
            _describe(error, iter(range(_MOST_RELATED))) | {"stack": _storable(_stack(error))}, redact
        )
    if is_instance(error, str):
        return _write({"message": _storable(error)}, redact)
    text = encode(error, "error")
    if redact is None:
        return text
    document = json.loads(text)  # a copy: the function may change it
    return _write(document if isinstance(document, dict) else {"value": document}, redact)


def describe_cause(error: BaseException) -> dict[str, Any]:
    """The ``cause`` and the ``stack`` of an exception, for a description that has its message already."""
    cause = _cause(error)
    if cause is None:
        return {}
    return {"cause": _describe(cause, iter(range(_MOST_RELATED))), "stack": _storable(_stack(error))}


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


def is_instance(value: object, kind: type[T]) -> TypeGuard[T]:
    """``isinstance`` by the class that an object has: the one that it names, ``__class__``, may be another or raise."""
    return issubclass(type(value), kind)


def readable_error(error: BaseException) -> BaseException:
    """The error, or one in its place if its class raises where it is read: threads and event loops read an error to
    hand it on, and would never end the call.
    """
    try:
        _ = (error.__class__, error.__traceback__, error.__cause__, error.__context__, error.with_traceback)
        return error
    except BaseException:
        return RuntimeError(f"the handler raised {_type_name(error)}, which cannot be read")


def _describe(error: BaseException, left: Iterator[int]) -> dict[str, Any]:
    """``left`` counts the exceptions that may still be described: groups can contain groups, and chains be long."""
    described: dict[str, Any] = dict(_attributes(error))
    described["name"] = _type_name(error)
    described["message"] = _storable(_message(error))
    if notes := [_storable(note) for note in _notes(error)]:
        described["notes"] = notes
    if is_instance(error, BaseExceptionGroup):
        members: tuple[BaseException, ...] = BaseExceptionGroup.exceptions.__get__(error)
        described["errors"] = [_describe(each, left) for each, _ in zip(members, left, strict=False)]
    cause = _cause(error)
    if cause is not None and next(left, None) is not None:
        described["cause"] = _describe(cause, left)
    return described


def _cause(error: BaseException) -> BaseException | None:
    try:
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        return cause if is_instance(cause, BaseException) else None
    except BaseException:
        return None


def _attributes(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The public attributes that JSON can hold, until they are too many."""
    left = _ATTRIBUTES_BYTES
    for name, value in _public(error):
        if type(value) is tuple:
            value = list(value)  # as JSON has it; data of jobs must be exact, a description need not
        if is_large(value):
            continue
        try:
            left -= len(name) + len(encode(value, name, left))
            encode(name, name)
        except PayloadError:
            continue
        if left < 0:
            return
        yield name, value


def _public(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The attributes of the exception itself, then those of its classes: constants, slots, properties, and those of
    built-in exceptions (``errno``). Of these None is left out: it is the value of an attribute that was not set.
    """
    try:
        own = dict(dict.items(object.__getattribute__(error, "__dict__")))
        classes = [each for each in type(error).__mro__ if each not in (BaseException, object)]
        shared = [name for each in classes for name, value in vars(each).items() if _is_data(name, value)]
    except BaseException:
        return
    yield from ((name, value) for name, value in own.items() if _is_public(name))
    for name in dict.fromkeys(shared):
        try:
            value = None if name in own else getattr(error, name)
        except BaseException:
            continue
        if value is not None:
            yield name, value


def _is_public(name: object) -> bool:
    return type(name) is str and not name.startswith("_") and name not in _OWN


def _is_data(name: object, value: object) -> bool:
    """Tell whether an attribute of a class is data of its exceptions, and no method."""
    if not _is_public(name) or (
        name in _SUBJECTS and isinstance(value, GetSetDescriptorType | MemberDescriptorType)
    ):
        return False
    return not callable(value) and not isinstance(value, classmethod | staticmethod)


def _notes(error: BaseException) -> list[str]:
    try:
        notes = object.__getattribute__(error, "__dict__").get("__notes__")
        if type(notes) is not list:
            return []
        # An address is for the reader of a traceback, and not a part of what happened.
        texts = [note for note in notes[:_MOST_NOTES] if type(note) is str]
        return [note for note in texts if not note.startswith(HELP_NOTE)]
    except BaseException:
        return []


def error_line(error: object) -> str:
    """An error in one line, for a log. Nurseries put groups around errors: the line is about their members."""
    text = ": ".join([_summary(error), *(_notes(error) if is_instance(error, BaseException) else ())])
    return _one_line(text)[:_LINE_CHARACTERS]


def described_line(described: object, depth: int = 5) -> str:
    """A stored error (see `describe_error`) in one line, for a list of jobs. ``depth``: of groups in groups."""
    if not isinstance(described, dict):
        return "" if described is None else _one_line(str(described))
    members = described.get("errors")
    if depth and isinstance(members, list) and members and all(isinstance(each, dict) for each in members):
        return _members_line(described.get("name"), [described_line(each, depth - 1) for each in members])
    name, message = described.get("name"), described.get("message")
    return _one_line(": ".join(str(part) for part in (name, message) if part))


def _summary(error: object) -> str:
    text = _message(error)
    if not is_instance(error, BaseException):
        return text
    if is_instance(error, BaseExceptionGroup):
        # Not by recursion: groups can be nested deeper than the stack is.
        members = _leaves(error)
        return _members_line(_type_name(error), [_summary(each) for each in members])
    return f"{_type_name(error)}: {text}" if text else _type_name(error)


def _members_line(name: object, members: list[str]) -> str:
    """One member stands for its group; several are listed."""
    return members[0] if len(members) == 1 else f"{name}: {'; '.join(members)}"


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The exceptions in a group, and in the groups of it, as far as they are described."""
    found: list[BaseException] = []
    todo: list[BaseException] = [group]
    for _ in range(_MOST_FORMATTED):
        if not todo or len(found) == _MOST_RELATED:
            break
        one = todo.pop(0)
        if is_instance(one, BaseExceptionGroup):
            todo[:0] = BaseExceptionGroup.exceptions.__get__(one)
        else:
            found.append(one)
    return found


def _one_line(text: str) -> str:
    """Without line ends and indentation: the rest of a message can be what tells the cause."""
    start = text[:_TEXT_CHARACTERS]
    return " ".join(start.split()) if "\n" in start else start


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
        frames = "".join(traceback.format_tb(error.__traceback__))
        return f"Traceback (most recent call last):\n{frames}{error_line(error)}"
    except BaseException:
        return "<the stack cannot be read>"


def _can_format(error: BaseException) -> bool:
    """Tell whether the traceback module comes to an end soon: not with very many exceptions, nor with a message of
    many lines, nor with a group that computes its members. It reads all causes, which took 47 s for a chain of 20,000,
    and indents all lines, which takes half a second for five megabytes, in the event loop.
    """
    todo: list[BaseException] = [error]
    seen: set[int] = set()  # two exceptions can be the causes of each other
    while todo and len(seen) < _MOST_FORMATTED:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if len(_message(one)) > _MOST_CHARACTERS:
            return False
        if is_instance(one, BaseExceptionGroup):
            if type(one).exceptions is not BaseExceptionGroup.exceptions:
                return False
            todo += one.exceptions
        todo += [each for each in (one.__cause__, one.__context__) if each is not None]
    return not todo


def _storable(text: str) -> str:
    """The text as Postgres can hold it, and of a long one the beginning and the end."""
    if len(text) > _TEXT_CHARACTERS:
        half = _TEXT_CHARACTERS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    return text.replace("\0", "\\0").encode(errors="replace").decode()
