"""Reads JSON by annotations, and writes such values as JSON.

`make_reader` goes through a type once and returns a function for its values. A value that does not fit raises Misfit,
which collects the path of the value on its way out, as PayloadError does when data is sent.
"""

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin
from uuid import UUID

import attrs

from trioboss.model.check import shown

__all__ = ["Misfit", "Read", "is_record", "is_typed_dict", "make_reader", "write_value"]

Read: TypeAlias = Callable[[Any], Any]

# By name: typing has the last one from Python 3.13 on, and typing_extensions has them for all versions.
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly")


class Misfit(Exception):
    """A value that does not fit its annotation. Each container adds its part of the path."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path: list[str] = []

    @property
    def where(self) -> str:
        """The path of the value, from the data down: ``.items[3].price``."""
        return "".join(reversed(self.path))


def is_record(declared: object) -> bool:
    """Whether it is an attrs class or a dataclass."""
    return isinstance(declared, type) and (attrs.has(declared) or dataclasses.is_dataclass(declared))


def is_typed_dict(declared: object) -> bool:
    """Whether it is a TypedDict, of typing or of typing_extensions."""
    return (
        isinstance(declared, type) and issubclass(declared, dict) and hasattr(declared, "__required_keys__")
    )


def make_reader(declared: Any) -> Read:
    """The function that reads values of a type. Raises TypeError for a type that JSON cannot hold."""
    return _make(declared, {})


def _make(declared: Any, known: dict[Any, Read]) -> Read:
    """``known``: readers of classes that are being made, for classes that contain themselves."""
    origin = get_origin(declared)
    if declared in (Any, object):
        return _read_anything
    if declared is None or declared is type(None):
        return _read_null
    if origin is typing.Annotated or _is_qualifier(origin):
        return _make(get_args(declared)[0], known)
    if isinstance(declared, typing.NewType):
        return _make(declared.__supertype__, known)
    if origin is Literal:
        return _choice_reader(get_args(declared))
    if origin in (Union, types.UnionType):
        return _union_reader([_make(each, known) for each in get_args(declared)], declared)
    if origin is not None or declared in _CONTAINERS:
        return _container_reader(origin or declared, get_args(declared), known)
    if declared in _SCALARS:
        return _SCALARS[declared]
    if is_record(declared) or is_typed_dict(declared):
        return _record_reader(declared, known)
    if isinstance(declared, type) and hasattr(declared, "model_validate"):
        return read_model(declared)
    if isinstance(declared, type) and issubclass(declared, enum.Enum):
        return _converter(declared, f"one of {[member.value for member in declared]}")
    raise TypeError(f"{declared!r} has no JSON form")


# -- single values


def _read_anything(value: Any) -> Any:
    return value


def _read_null(value: Any) -> None:
    if value is not None:
        raise Misfit(f"{shown(value)} is not null")


def _checker(kinds: tuple[type, ...], described: str) -> Read:
    def read(value: Any) -> Any:
        # A bool is an int, and a flag in the place of a number is a mistake.
        if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
            return value
        raise Misfit(f"{shown(value)} is not {described}")

    return read


def _read_float(value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise Misfit(f"{shown(value)} is not a number")


def _converter(convert: Callable[[Any], Any], described: str) -> Read:
    def read(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, TypeError, AttributeError, InvalidOperation):
            raise Misfit(f"{shown(value)} is not {described}") from None

    return read


def _read_seconds(value: Any) -> timedelta:
    return timedelta(seconds=_read_float(value))


def _choice_reader(choices: tuple[Any, ...]) -> Read:
    def read(value: Any) -> Any:
        # By type, too: True == 1.
        for choice in choices:
            if value == choice and type(value) is type(choice):
                return choice
        raise Misfit(f"{shown(value)} is not one of {list(choices)}")

    return read


def _union_reader(readers: Sequence[Read], declared: Any) -> Read:
    def read(value: Any) -> Any:
        deepest: Misfit | None = None
        for each in readers:
            try:
                return each(value)
            except Misfit as misfit:
                # A misfit inside of a member names the field that is wrong; the others only that it is no such member.
                if deepest is None or len(misfit.path) > len(deepest.path):
                    deepest = misfit
        if deepest is not None and deepest.path:
            raise deepest
        raise Misfit(f"{shown(value)} is not {declared}")

    return read


_SCALARS: dict[Any, Read] = {
    str: _checker((str,), "text"),
    bool: _checker((bool,), "true or false"),
    int: _checker((int,), "a whole number"),
    float: _read_float,
    datetime: _converter(datetime.fromisoformat, "a time in ISO 8601"),
    date: _converter(date.fromisoformat, "a date in ISO 8601"),
    time: _converter(time.fromisoformat, "a time of day in ISO 8601"),
    timedelta: _read_seconds,
    UUID: _converter(UUID, "a UUID"),
    Decimal: _converter(lambda value: Decimal(str(value)), "a decimal number"),
}


def read_model(model: Any) -> Read:
    """The reader of a pydantic model, by its own methods: pydantic itself is not imported here.

    It reads JSON, and not the values that JSON was decoded to: a strict model refuses a time as text everywhere else.
    """

    def read(value: Any) -> Any:
        try:
            return model.model_validate_json(json.dumps(value))
        except ValueError as error:
            raise _misfit_of(error) from error

    return read


def _misfit_of(error: Any) -> Misfit:
    """The first problem of a pydantic ValidationError, which lists them all."""
    first = error.errors(include_url=False)[0] if hasattr(error, "errors") else {}
    misfit = Misfit(first.get("msg", str(error)))
    for part in reversed(first.get("loc", ())):
        misfit.path.append(f"[{part}]" if isinstance(part, int) else f".{part}")
    return misfit


# -- containers


_CONTAINERS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    Sequence: list,
    set: set,
    Set: frozenset,
    frozenset: frozenset,
    tuple: tuple,
    dict: list,
    Mapping: list,
}


def _container_reader(origin: Any, arguments: tuple[Any, ...], known: dict[Any, Read]) -> Read:
    if origin in (dict, Mapping):
        key, item = arguments or (str, Any)
        if key is not str:
            raise TypeError(f"the keys of a JSON object are text, not {key!r}")
        return _object_reader(_make(item, known))
    if origin is tuple and arguments and arguments[-1] is not ...:
        return _tuple_reader([_make(each, known) for each in arguments])
    if origin not in _CONTAINERS:
        raise TypeError(f"{origin!r} has no JSON form")
    return _array_reader(_make(arguments[0] if arguments else Any, known), _CONTAINERS[origin])


def _array_reader(item: Read, build: Callable[[list[Any]], Any]) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, list):
            raise Misfit(f"{shown(value)} is not a list")
        return build([_read_part(item, each, f"[{i}]") for i, each in enumerate(value)])

    return read


def _tuple_reader(items: Sequence[Read]) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, list) or len(value) != len(items):
            raise Misfit(f"{shown(value)} is not a list of {len(items)}")
        return tuple(
            _read_part(item, each, f"[{i}]") for i, (item, each) in enumerate(zip(items, value, strict=True))
        )

    return read


def _object_reader(item: Read) -> Read:
    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(f"{shown(value)} is not an object")
        return {key: _read_part(item, each, f"[{key!r}]") for key, each in value.items()}

    return read


def _read_part(read: Read, value: Any, part: str) -> Any:
    try:
        return read(value)
    except Misfit as misfit:
        misfit.path.append(part)
        raise


# -- records


@attrs.frozen
class _Field:
    name: str
    argument: str
    """Its name as an argument of the class."""
    read: Read
    required: bool


def _record_reader(declared: Any, known: dict[Any, Read]) -> Read:
    """Fields that the class does not have are ignored: a newer producer may send more."""
    if declared in known:
        return known[declared]
    known[declared] = lambda value: reader(value)
    fields = [
        _Field(name, argument, _make(annotation, known), required)
        for name, argument, annotation, required in _fields_of(declared)
    ]
    name = declared.__qualname__

    def reader(value: Any) -> Any:
        if not isinstance(value, dict):
            raise Misfit(f"{shown(value)} is not an object, as {name} needs")
        arguments = {}
        for field in fields:
            if field.name in value:
                arguments[field.argument] = _read_part(field.read, value[field.name], f".{field.name}")
            elif field.required:
                missing = Misfit(f"is missing, {name} needs it")
                missing.path.append(f".{field.name}")
                raise missing
        try:
            return declared(**arguments)
        except (ValueError, TypeError) as error:  # a validator or a converter of the class
            raise Misfit(f"{name}: {error}") from error

    return reader


def _fields_of(declared: Any) -> list[tuple[str, str, Any, bool]]:
    """The name, the name as an argument, the annotation, and whether it is required, of each field."""
    hints = typing.get_type_hints(declared, include_extras=True)
    if is_typed_dict(declared):
        return [(name, name, hint, _is_required(name, hint, declared)) for name, hint in hints.items()]
    if attrs.has(declared):
        return [
            (_key(field), _key(field), hints.get(field.name, Any), field.default is attrs.NOTHING)
            for field in attrs.fields(declared)
            if field.init
        ]
    missing = dataclasses.MISSING
    return [
        (
            field.name,
            field.name,
            hints[field.name],
            field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(declared)
        if field.init
    ]


def _is_required(name: str, hint: Any, typed_dict: Any) -> bool:
    """Whether a key of a TypedDict has to be there.

    Under ``from __future__ import annotations`` its ``__required_keys__`` know the ``total`` of each base, but not the
    qualifiers of the keys, which are text when the class is made.
    """
    while (origin := get_origin(hint)) is typing.Annotated or _is_qualifier(origin):
        qualifier = getattr(origin, "_name", "")
        if qualifier in ("Required", "NotRequired"):
            return bool(qualifier == "Required")
        hint = get_args(hint)[0]
    return name in typed_dict.__required_keys__


def _is_qualifier(origin: object) -> bool:
    return getattr(origin, "_name", None) in _QUALIFIERS


# -- writing


def write_value(value: Any) -> Any:
    """A value as JSON that the reader of its type understands. Other values are left for `encode` to refuse."""
    if isinstance(value, enum.Enum):
        return value.value
    if is_record(type(value)):
        return {key: write_value(getattr(value, name)) for key, name in _stored(type(value))}
    if hasattr(value, "model_dump"):
        # By alias, because models read their fields by alias. Without fields that the model computes itself.
        return value.model_dump(mode="json", by_alias=True, round_trip=True)
    if isinstance(value, Mapping):
        return {key: write_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Set):
        return [write_value(item) for item in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID | Decimal):
        return str(value)
    return value


def _stored(kind: Any) -> list[tuple[str, str]]:
    """The key in JSON and the attribute of each field."""
    if attrs.has(kind):
        return [(_key(field), field.name) for field in attrs.fields(kind) if field.init]
    return [(field.name, field.name) for field in dataclasses.fields(kind) if field.init]


def _key(field: "attrs.Attribute[Any]") -> str:
    """A private field has its name as an argument of the class: without the underscore."""
    return field.alias or field.name
