"""Rows by COPY, in the binary format."""

import os
import socket
import struct

import psycopg
import pytest

from trioboss.errors import DatabaseUnavailable
from trioboss.postgres.blocking import open_blocking
from trioboss.postgres.wire.copy_out import copy_out


@pytest.fixture
def connection(server_dsn):
    connection = open_blocking(server_dsn)
    yield connection
    connection.close()


def row(text):
    """Return a row of one field, in the binary format."""
    return struct.pack(">hi", 1, len(text)) + text


def test_the_header_and_the_trailer_of_copy_are_removed(connection):
    (chunk,) = copy_out(connection, "select x from (values ('a'), ('bcd')) v(x)", 1000)

    assert bytes(chunk.data) == row(b"a") + row(b"bcd")
    assert chunk.sizes == [len(row(b"a")), len(row(b"bcd"))]


def test_a_query_without_rows_returns_no_chunk(connection):
    assert copy_out(connection, "select 'a'::text where false", 1000) == []


@pytest.mark.parametrize("max_bytes", [1, 100_000, 1_000_000_000])
def test_chunks_contain_all_rows_in_order_whatever_their_size(connection, max_bytes):
    chunks = copy_out(connection, "select n::text from generate_series(100000, 299999) n", max_bytes)

    assert b"".join(chunk.data for chunk in chunks) == b"".join(
        row(b"%d" % n) for n in range(100_000, 300_000)
    )
    assert [size for chunk in chunks for size in chunk.sizes] == [12] * 200_000
    assert all(len(chunk.data) == sum(chunk.sizes) for chunk in chunks)
    assert (len(chunks) > 1) == (max_bytes < 1_000_000_000)


def test_a_query_that_fails_half_way_raises_and_leaves_the_connection_usable(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        copy_out(connection, "select 1 / (20000 - n) from generate_series(1, 30000) n", 1000)

    assert connection.execute("select 1").fetchone() == (1,)


def test_a_query_that_cannot_start_raises_and_leaves_the_connection_usable(connection):
    with pytest.raises(psycopg.errors.UndefinedTable):
        copy_out(connection, "select * from nowhere", 1000)

    assert connection.execute("select 1").fetchone() == (1,)


def test_a_connection_that_is_lost_during_the_copy_raises_unavailable(connection):
    with pytest.raises(DatabaseUnavailable, match="the connection to Postgres is lost"):
        copy_out(connection, "select pg_terminate_backend(pg_backend_pid())", 1000)


def test_a_connection_that_was_lost_before_the_copy_raises_unavailable(connection):
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)

    with pytest.raises(DatabaseUnavailable, match="the connection to Postgres is lost"):
        copy_out(connection, "select 1", 1000)
