"""Arrays in the server's binary format arrive as they were meant, whatever connection sends them."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import psycopg
import pytest
from psycopg import waiting

from trioboss.model.ids import make_id
from trioboss.postgres.blocking import run_blocking
from trioboss.postgres.wire import (
    BoundStatement,
    Pipeline,
    PreparedStatements,
    instant_array,
    int4_array,
    read_rows,
    uuid_array,
)
from trioboss.sql import Statement

IDS = [UUID(int=0), UUID(int=2**128 - 1), make_id()]
NUMBERS = [-(2**31), -1, 0, 1, 2**31 - 1]
INSTANTS = [
    datetime(2000, 1, 1, tzinfo=UTC),
    datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(8999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
]
TEXT = "text beside them, ü"
STATEMENT = Statement(
    "echo",
    "SELECT $1::text, $2::uuid[], $3::int[], $4::timestamptz[]",
    ("text", "ids", "numbers", "instants"),
)


def bound(ids, numbers, instants):
    arrays = uuid_array(ids), int4_array(numbers), instant_array(instants)
    return BoundStatement(STATEMENT, (TEXT.encode(), *arrays))


def run_pipeline(connection, statement):
    """As our own connections do: prepared at first, then by name."""
    prepared = PreparedStatements()
    for _ in range(2):
        pipeline = Pipeline(connection.pgconn, [(statement,)], prepared)
        ((result,),) = waiting.wait(pipeline.execute_gen(), connection.pgconn.socket)
    return result


def run_unprepared(connection, statement):
    pipeline = Pipeline(connection.pgconn, [(statement,)], None)
    ((result,),) = waiting.wait(pipeline.execute_gen(), connection.pgconn.socket)
    return result


def run_as_caller(connection, statement):
    ((result,),) = run_blocking(connection, [(statement,)], prepare=False)
    return result


@pytest.mark.parametrize("run", [run_pipeline, run_unprepared, run_as_caller])
@pytest.mark.parametrize(
    "values", [(IDS, NUMBERS, INSTANTS), ([], [], []), (IDS[:1], NUMBERS[:1], INSTANTS * 3)]
)
def test_arrays_arrive_as_they_were_meant(server_dsn, run, values):
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute("SET timezone TO 'UTC'")
        assert read_rows(run(connection, bound(*values))) == [(TEXT, *values)]
