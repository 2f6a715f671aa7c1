"""Typed data: JSON becomes a value of the class that a worker declares, and back.

The protocol is `Decoder`. `make_decoder` has one for attrs classes, dataclasses, TypedDicts, pydantic models and the
usual types in their fields; a program can pass its own. A decoder is made once for each worker: everything that needs
an annotation is resolved then, and not for each job.
"""

from typing import Any, Protocol, TypeVar, cast, get_origin, runtime_checkable

import attrs

from trioboss.errors import PayloadError, UsageError
from trioboss.model.check import shown
from trioboss.model.payload import Json
from trioboss.model.structure import Misfit, Read, is_typed_dict, make_reader, write_value

__all__ = ["Decoder", "Misfit", "make_decoder"]

T = TypeVar("T")


@runtime_checkable
class Decoder(Protocol[T]):
    """Turns the data of jobs into values of one type, and values into data."""

    def decode(self, data: Json) -> T:
        """The value; raises any Exception for data that does not fit."""

    def encode(self, value: T) -> Json:
        """The value as JSON that `decode` understands."""


@attrs.frozen
class _StructureDecoder:
    """The decoder for types that are described by annotations, and for pydantic models."""

    type: Any
    _read: Read

    def decode(self, data: Json) -> Any:
        """The value; raises Misfit."""
        return self._read(data)

    def encode(self, value: object) -> Json:
        """The value as JSON. A value of another type, or that could not be read again, is refused before it is sent.

        Only reading shows that a value fits: nothing checks the values of a TypedDict or of a field before, and a model
        of pydantic writes itself.
        """
        data = write_value(value)
        if isinstance(self.type, type) and not is_typed_dict(self.type) and not isinstance(value, self.type):
            raise PayloadError("data", f"{shown(value)} is not {_name(self.type)}")
        try:
            self._read(data)
        except Misfit as misfit:
            problem = f"{misfit.problem}; a worker could not read {_name(self.type)} from it"
            raise PayloadError(f"data{misfit.where}", problem) from None
        return cast("Json", data)


def make_decoder(declared: object) -> Decoder[Any]:
    """The decoder for the ``data`` of a worker: a class, another type, or a Decoder."""
    if not isinstance(declared, type) and get_origin(declared) is None and isinstance(declared, Decoder):
        return declared
    try:
        return _StructureDecoder(declared, make_reader(declared))
    except (TypeError, NameError) as error:
        raise UsageError(f"data: {_name(declared)} cannot be decoded: {error}") from None


def _name(declared: object) -> str:
    if isinstance(declared, type) or is_typed_dict(declared):
        return cast("str", getattr(declared, "__qualname__", repr(declared)))
    return repr(declared)
