"""Rows by COPY, in its binary form."""

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
    """One field."""
    return struct.pack(">hi", 1, len(text)) + text


def test_the_rows_come_without_what_copy_puts_around_them(connection):
    (piece,) = copy_out(connection, "select x from (values ('a'), ('bcd')) v(x)", 1000)

    assert bytes(piece.data) == row(b"a") + row(b"bcd")
    assert piece.sizes == [len(row(b"a")), len(row(b"bcd"))]


def test_no_rows_are_no_piece(connection):
    assert copy_out(connection, "select 'a'::text where false", 1000) == []


@pytest.mark.parametrize("most", [1, 100_000, 1_000_000_000])
def test_pieces_have_all_rows_in_their_order_however_large_they_may_be(connection, most):
    pieces = copy_out(connection, "select n::text from generate_series(100000, 299999) n", most)

    assert b"".join(piece.data for piece in pieces) == b"".join(
        row(b"%d" % n) for n in range(100_000, 300_000)
    )
    assert [size for piece in pieces for size in piece.sizes] == [12] * 200_000
    assert all(len(piece.data) == sum(piece.sizes) for piece in pieces)
    assert (len(pieces) > 1) == (most < 1_000_000_000)


def test_a_query_that_fails_on_the_way_is_an_error_and_the_connection_goes_on(connection):
    with pytest.raises(psycopg.errors.DivisionByZero):
        copy_out(connection, "select 1 / (20000 - n) from generate_series(1, 30000) n", 1000)

    assert connection.execute("select 1").fetchone() == (1,)


def test_a_query_that_cannot_begin_is_an_error_and_the_connection_goes_on(connection):
    with pytest.raises(psycopg.errors.UndefinedTable):
        copy_out(connection, "select * from nowhere", 1000)

    assert connection.execute("select 1").fetchone() == (1,)


def test_a_server_that_hangs_up_is_said_to_be_unavailable(connection):
    with pytest.raises(DatabaseUnavailable, match="the connection to Postgres is lost"):
        copy_out(connection, "select pg_terminate_backend(pg_backend_pid())", 1000)


def test_a_connection_that_broke_before_is_said_to_be_unavailable(connection):
    with socket.socket(fileno=os.dup(connection.pgconn.socket)) as way:
        way.shutdown(socket.SHUT_RDWR)

    with pytest.raises(DatabaseUnavailable, match="the connection to Postgres is lost"):
        copy_out(connection, "select 1", 1000)
