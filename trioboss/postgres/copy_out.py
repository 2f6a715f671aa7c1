"""Receives what a query gives by COPY, in its binary form: many rows in one piece, to be read by columns."""

import selectors

import attrs
from psycopg import errors, pq
from psycopg.pq.abc import PGconn, PGresult

from trioboss.postgres.executor import BlockingConnection
from trioboss.postgres.translate import translated

__all__ = ["CopiedRows", "copy_out"]

_HEADER = 19  # bytes: a signature, flags, and the length of an extension that nobody has
_TRAILER = 2
_LOOK = 1.0  # seconds: TLS may hold what the socket no longer shows
_BEGUN = pq.ExecStatus.COPY_OUT
_DONE = pq.ExecStatus.COMMAND_OK


@attrs.frozen
class CopiedRows:
    """Rows as COPY sends them, one after the other: for each the number of its fields, then the fields."""

    data: bytearray = attrs.field(factory=bytearray)
    sizes: list[int] = attrs.field(factory=list)
    """How many bytes each row has."""


def copy_out(connection: BlockingConnection, query: str, most: int) -> list[CopiedRows]:
    """All rows of a query, in pieces of about ``most`` bytes and what the socket holds.

    Asks libpq itself for the rows: psycopg's loop takes longer for one than Postgres takes to send it.
    """
    pgconn = connection.pgconn
    with translated(connection):
        _check(pgconn, pgconn.exec_(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode()), _BEGUN)
        pieces = _receive(pgconn, most)
        *_, last = iter(pgconn.get_result, None)
        _check(pgconn, last, _DONE)
    return _trim(pieces)


def _check(pgconn: PGconn, result: PGresult, expected: pq.ExecStatus) -> None:
    if pgconn.status == pq.ConnStatus.BAD:
        raise errors.OperationalError(pgconn.get_error_message())
    if result.status != expected:
        raise errors.error_from_result(result)


def _receive(pgconn: PGconn, most: int) -> list[CopiedRows]:
    """What the server sends until it says that it is done, or that it failed. A piece ends where there is a pause."""
    pieces = [CopiedRows()]
    get = pgconn.get_copy_data
    data, add_size = pieces[-1].data, pieces[-1].sizes.append
    with selectors.DefaultSelector() as selector:
        selector.register(pgconn.socket, selectors.EVENT_READ)
        while (message := get(1))[0] >= 0:
            size, row = message
            if size:
                data += row
                add_size(size)
                continue
            if len(data) >= most:
                pieces.append(CopiedRows())
                data, add_size = pieces[-1].data, pieces[-1].sizes.append
            selector.select(_LOOK)
            pgconn.consume_input()
    return pieces


def _trim(pieces: list[CopiedRows]) -> list[CopiedRows]:
    """Leave out the header, which comes with the first message, and the trailer, which is the end of the last."""
    first = pieces[0]
    del first.data[:_HEADER]
    first.sizes[0] -= _HEADER
    last = pieces[-1] if pieces[-1].sizes else pieces[-2]
    del last.data[-_TRAILER:]
    last.sizes.pop()
    return [piece for piece in pieces if piece.sizes]
