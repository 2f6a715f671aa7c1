"""JSON that Postgres returns as it was sent; any other is refused.

``jsonb`` alters some of what ``json.dumps`` writes: -0.0 loses its sign, 1e16 comes back as an integer, a
tuple as a list, an integer key as a string. A value that would come back changed is refused here, with its path.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Protocol, TypeAlias

import attrs

from trioboss.errors import PayloadError

__all__ = ["MAX_BYTES", "AnyTypedDict", "Json", "JsonInput", "Unreadable", "encode", "is_large"]

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""JSON as it is read."""


class AnyTypedDict(Protocol):
    """An instance of any TypedDict, for type checkers: to them it is no ``Mapping[str, JsonInput]``, and it has these
    attributes, which no other class has. Its values are not checked before they are encoded.
    """

    __required_keys__: ClassVar[frozenset[str]]
    __optional_keys__: ClassVar[frozenset[str]]


JsonInput: TypeAlias = (
    "bool | int | float | str | Sequence[JsonInput] | Mapping[str, JsonInput] | AnyTypedDict | None"
)
"""JSON as it is sent. Covariant, so that a ``list[int]`` or a ``dict[str, str]`` is one, and so is a TypedDict. Only
dicts and lists are sent: another mapping or sequence would come back as one of them, and is refused."""

MAX_BYTES = 10 * 1024 * 1024
_MAX_DEPTH = (
    200  # json.dumps and Postgres recurse, and both have less stack than a hostile document has levels
)
_MAX_BITS = 13_000  # Python itself refuses to print much longer integers
_EXACT_BELOW = 1e16  # from here on repr() writes an exponent, which jsonb turns into an integer
_SIMPLE_BELOW = 1 << 63
_LARGE = 2_000  # values and blocks of characters, which take about a millisecond to encode: many jobs may end at once
_SAFE_KEYS = (int, float, bool, type(None))  # classes whose text runs no code of others
_BLOCK = 100  # characters of a text that take as long as one value
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)  # _check refuses circles


def _make_dumps() -> Callable[[Any], str]:
    """The encoder that `json` is built on, made once: its own `encode` makes another for each document, and takes
    twice the time for a small one.
    """
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    quote = json.encoder.encode_basestring_ascii
    encode = make(None, _ENCODER.default, quote, None, ":", ",", False, False, True)
    return lambda value: "".join(encode(value, 0))


_dumps = _make_dumps()


@attrs.frozen
class Unreadable:
    """Stands for JSON that Postgres holds and Python cannot represent: plain SQL wrote it, `encode` would refuse it."""

    problem: str


def encode(value: object, path: str = "data", max_bytes: int = MAX_BYTES) -> str:
    """Return ``value`` as JSON text that Postgres gives back unchanged, or raise PayloadError.

    Nothing else is raised, whatever the value is: of containers only the built-in methods are called, so a subclass
    that computes its items, or never ends, runs no code here.
    """
    try:
        plain = _is_simple(value) or _check(value, 0)
        # The text is ASCII, so its length is its size in bytes.
        text = _dumps(value) if plain else _write(value)
    except _Refused as refused:
        raise PayloadError(path + "".join(reversed(refused.path)), refused.problem) from None
    except Exception as error:  # of a subclass of str, int or float, or an object that pretends to be one
        raise PayloadError(path, f"it cannot be read: {type(error).__name__}") from None
    if len(text) > max_bytes:
        raise PayloadError(path, f"{len(text)} bytes of JSON, {max_bytes} are allowed")
    return text


def is_large(value: Any) -> bool:
    """Tell, at the cost of a moment, whether encoding takes long enough to keep an event loop waiting."""
    budget = _LARGE
    todo: list[Any] = [value]
    while todo:
        value = todo.pop()
        budget -= 1
        kind = type(value)  # not isinstance: an object can pretend to be of a class
        if issubclass(kind, str):
            budget -= str.__len__(value) // _BLOCK
        elif issubclass(kind, dict):
            budget -= dict.__len__(value)
            if budget > 0:
                todo += dict.keys(value)
                todo += dict.values(value)
        elif issubclass(kind, list):
            budget -= list.__len__(value)
            if budget > 0:
                todo += list.__iter__(value)
        if budget <= 0:
            return True
    return False


class _Refused(Exception):
    """A problem with a value. Each container adds its step of the path while the exception passes it."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.path: list[str] = []


def _is_simple(value: object) -> bool:
    """Whether this is a plain dict of plain values, as most payloads are: a quick yes, or a no that says nothing.

    It is most of the cost of a payload in a bulk load, so it has no call for each value.
    """
    if type(value) is not dict:
        return False
    for key, item in value.items():
        if type(key) is not str or not key.isascii() or "\0" in key:
            return False
        kind = type(item)
        if kind is str:
            if not item.isascii() or "\0" in item:
                return False
        elif kind is int:
            if not -_SIMPLE_BELOW < item < _SIMPLE_BELOW:
                return False
        elif kind is float:
            if not 0 < item < _EXACT_BELOW:  # false for NaN, and for -0.0
                return False
        elif kind is not bool and item is not None:
            return False
    return True


def _check(value: Any, depth: int) -> bool:
    """Raise for a value that JSON cannot hold; return whether json.dumps writes it exactly."""
    # Not isinstance: it also asks an object for its __class__, which can be anything, and raise anything.
    kind = type(value)
    if issubclass(kind, str):
        return _check_text(value)
    if value is None or value is True or value is False:  # before int: a bool is one
        return True
    if issubclass(kind, int):
        return _check_integer(value)
    if issubclass(kind, float):
        return _check_float(value)
    if depth >= _MAX_DEPTH:
        raise _Refused(f"nested more than {_MAX_DEPTH} deep")
    if issubclass(kind, dict):
        return _check_object(value, depth)
    if issubclass(kind, list):
        return _check_array(value, depth)
    raise _Refused(f"{kind.__name__} is not JSON")


def _check_object(value: dict[Any, object], depth: int) -> bool:
    plain = type(value) is dict
    for key, item in dict.items(value):
        if not issubclass(type(key), str):
            shown = repr(key) if type(key) in _SAFE_KEYS else f"of the class {type(key).__name__}"
            raise _Refused(f"the key {shown} is not a string")
        try:
            _check_text(key)
            plain &= _check(item, depth + 1)
        except _Refused as refused:
            text = str.__str__(key)
            refused.path.append(f".{text}" if text.isidentifier() else f"[{text!r}]")
            raise
    return plain


def _check_array(value: list[object], depth: int) -> bool:
    plain = type(value) is list
    for i, item in enumerate(list.__iter__(value)):
        try:
            plain &= _check(item, depth + 1)
        except _Refused as refused:
            refused.path.append(f"[{i}]")
            raise
    return plain


def _check_text(value: str) -> bool:
    if str.__contains__(value, "\0"):
        raise _Refused("text with a NUL character")
    if not str.isascii(value):  # nearly all texts are, and need no second pass
        try:
            str.encode(value)
        except UnicodeEncodeError:
            raise _Refused("text with half a surrogate pair") from None
    return True


def _check_integer(value: int) -> bool:
    if int.bit_length(value) > _MAX_BITS:
        raise _Refused(f"an integer of more than {_MAX_BITS} bits")
    return True


def _check_float(value: float) -> bool:
    if not math.isfinite(value):
        raise _Refused(f"{float.__repr__(value)} is not JSON")
    if float.__eq__(value, 0.0) and math.copysign(1, value) < 0:
        raise _Refused("-0.0 would come back as 0.0")
    return float.__abs__(value) < _EXACT_BELOW


def _write(value: Any) -> str:
    """JSON text with large floats written out, so that jsonb keeps them floats."""
    kind = type(value)
    if issubclass(kind, float) and float.__abs__(value) >= _EXACT_BELOW:
        return f"{Decimal(float.__repr__(value)):f}.0"
    if issubclass(kind, dict):
        items = dict.items(value)
        return "{" + ",".join(f"{json.dumps(k)}:{_write(v)}" for k, v in items) + "}"
    if issubclass(kind, list):
        return "[" + ",".join(map(_write, list.__iter__(value))) + "]"
    return json.dumps(value)
