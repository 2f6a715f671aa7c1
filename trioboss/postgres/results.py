"""Results of `run`: binary, read into Python values without a connection at hand. Instants are in UTC."""

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
    """jsonb: a version number, then UTF-8 without space around it. psycopg's own asks first which encoding and how
    much space there might be."""

    format = Format.BINARY

    def load(self, data: Any) -> Any:
        try:
            return _decode(str(data[1:], "utf-8"))[0]
        except (ValueError, RecursionError) as error:
            return Unreadable(str(error))  # one bad value must not cost the other rows


def _make_adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_loader("jsonb", _JsonbLoader)
    return adapters


class _Context:
    """What a Transformer needs of a connection: how to adapt, and nothing else."""

    adapters = _make_adapters()
    connection = None


_CONTEXT = _Context()


class _Reader(threading.local):
    """One for each thread: it keeps the loaders that it has found, and looks at one result at a time."""

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
    """Return the rows of a result as tuples: all of them, or those after one that was read before."""
    return _read(result, after + 1, result.ntuples)


def _read(result: PGresult, first: int, end: int) -> list[tuple[Any, ...]]:
    return [] if first == end else _READER.read(result, first, end)
