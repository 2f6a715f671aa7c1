"""The rows of a query by COPY, in the binary format: many rows in one buffer, to be decoded column by column."""

import selectors
from typing import Any

import attrs
import psycopg
from psycopg import errors, pq
from psycopg.pq.abc import PGconn, PGresult

from trioboss.postgres.errors import translate_errors

__all__ = ["CopiedRows", "copy_out"]

_HEADER = 19  # bytes: the signature, flags, and the length of a header extension, which is always 0
_TRAILER = 2
# seconds between two reads without an event: with TLS, bytes may be buffered in libpq while the socket is not readable
_READ_INTERVAL = 1.0
_STARTED = pq.ExecStatus.COPY_OUT
_DONE = pq.ExecStatus.COMMAND_OK


@attrs.frozen
class CopiedRows:
    """Rows as COPY sends them, one after the other: for each the number of its fields, then the fields."""

    data: bytearray = attrs.field(factory=bytearray)
    sizes: list[int] = attrs.field(factory=list)
    """The number of bytes of each row."""


def copy_out(
    connection: psycopg.Connection[Any], query: str, max_bytes: int, limit: int | None = None
) -> list[CopiedRows]:
    """Return all rows of a query, in chunks of about ``max_bytes`` plus the contents of the socket's buffer.

    If the rows have more than ``limit`` bytes, the statement is cancelled, and QueryCanceled is raised as for a
    statement that reached its timeout. Reads the rows from libpq directly: psycopg's loop takes longer for one row
    than Postgres takes to send it.
    """
    pgconn = connection.pgconn
    with translate_errors(connection):
        _check(pgconn, pgconn.exec_(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode()), _STARTED)
        chunks = _receive(pgconn, max_bytes, limit)
        *_, last = iter(pgconn.get_result, None)
        _check(pgconn, last, _DONE)
        if chunks is None:  # the server had finished before it received the cancellation
            raise errors.QueryCanceled(f"the rows have more than {limit} bytes")
    return _trim(chunks)


def _check(pgconn: PGconn, result: PGresult, expected: pq.ExecStatus) -> None:
    if pgconn.status == pq.ConnStatus.BAD:
        raise errors.OperationalError(pgconn.get_error_message())
    if result.status != expected:
        raise errors.error_from_result(result)


def _receive(pgconn: PGconn, max_bytes: int, limit: int | None) -> list[CopiedRows] | None:
    """Receive rows until the COPY has ended or failed. A chunk ends where the next row has not arrived yet.

    Return None if there were more bytes than ``limit``: the statement has been cancelled, and its rows discarded.
    """
    chunks = [CopiedRows()]
    get = pgconn.get_copy_data
    data, add_size = chunks[-1].data, chunks[-1].sizes.append
    with selectors.DefaultSelector() as selector:
        selector.register(pgconn.socket, selectors.EVENT_READ)
        while (message := get(1))[0] >= 0:
            size, row = message
            if size:
                data += row
                add_size(size)
                continue
            if limit is not None and sum(len(chunk.data) for chunk in chunks) > limit:
                _cancel(pgconn)
                return None
            if len(data) >= max_bytes:
                chunks.append(CopiedRows())
                data, add_size = chunks[-1].data, chunks[-1].sizes.append
            selector.select(_READ_INTERVAL)
            pgconn.consume_input()
    return chunks


def _cancel(pgconn: PGconn) -> None:
    """Cancel the COPY, and discard the rows that are still arriving."""
    pgconn.get_cancel().cancel()
    while pgconn.get_copy_data(0)[0] > 0:
        pass


def _trim(chunks: list[CopiedRows]) -> list[CopiedRows]:
    """Remove the header, which is part of the first message, and the trailer, which is the last message."""
    first = chunks[0]
    del first.data[:_HEADER]
    first.sizes[0] -= _HEADER
    last = (
        chunks[-1] if chunks[-1].sizes else chunks[-2]
    )  # the last chunk is empty if nothing came after its start
    del last.data[-_TRAILER:]
    last.sizes.pop()
    return [chunk for chunk in chunks if chunk.sizes]
