"""Python values from results in the binary format, read without a connection. Timestamps are in UTC."""

import json
import threading
from typing import Any

import psycopg
from psycopg.adapt import AdaptersMap, Loader, Transformer
from psycopg.pq import Format
from psycopg.pq.abc import PGresult

from trioboss.model.payload import Unreadable

__all__ = ["PGresult", "read_row", "read_rows"]

_decode = json.JSONDecoder().raw_decode


class _JsonbLoader(Loader):
    """Loads jsonb, which is a version byte and then UTF-8 without surrounding white space.

    json.loads, which psycopg uses, first detects the encoding and skips white space.
    """

    format = Format.BINARY

    def load(self, data: Any) -> Any:
        try:
            return _decode(str(data[1:], "utf-8"))[0]
        except (ValueError, RecursionError) as error:
            # One value that Python cannot represent (a number with 5,000 digits, 10,000 nested lists) must not make the
            # other rows of the result unreadable.
            return Unreadable(str(error))


def _make_adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_loader("jsonb", _JsonbLoader)
    return adapters


class _Context:
    """The part of a connection that a Transformer uses when there is no connection: the adapters."""

    adapters = _make_adapters()
    connection = None


_CONTEXT = _Context()


class _Reader(threading.local):
    """One reader for each thread, because a Transformer works on one result at a time. It caches its loaders."""

    def __init__(self) -> None:
        self._transformer = Transformer(_CONTEXT)

    def read(self, result: PGresult, first: int, end: int) -> list[tuple[Any, ...]]:
        self._transformer.set_pgresult(result)
        try:
            return self._transformer.load_rows(first, end, tuple)
        finally:
            self._transformer.set_pgresult(None)


_READER = _Reader()


def read_row(result: PGresult, number: int) -> tuple[Any, ...]:
    """Return one row of a result."""
    return _read(result, number, number + 1)[0]


def read_rows(result: PGresult, *, after: int = -1) -> list[tuple[Any, ...]]:
    """Return the rows of a result as tuples: all of them, or those after row number ``after``."""
    return _read(result, after + 1, result.ntuples)


def _read(result: PGresult, first: int, end: int) -> list[tuple[Any, ...]]:
    return [] if first == end else _READER.read(result, first, end)
