"""Chunks: bounded in rows, in bytes and in time, whatever the rows are like."""

import json
import threading

import pytest
from pipeline_helpers import end_jobs, ids_in
from pyspark.sql.pandas.types import to_arrow_schema

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown
from trioboss.pipeline.chunks import ChunkReader
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import open_database
from trioboss.pipeline.days import Days
from trioboss.pipeline.decoding import decode
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import BlockRange, XidRange, list_day_tables
from trioboss.pipeline.query import Query

ARCHIVE = TABLES["archive"]


@pytest.fixture
def pipeline(dsn):
    with open_database(dsn) as pipeline:
        yield pipeline


def whole(pipeline, rows_per_block=20.0):
    """The one table with rows, as a range of blocks."""
    (table,) = (table for table in list_day_tables(pipeline, "archive", Days()) if table.blocks)
    return BlockRange(table.relation, table.file, 0, table.blocks, rows_per_block)


def by_transaction(pipeline):
    blocks = whole(pipeline)
    return XidRange(blocks.relation, blocks.file, 0, 2**40, 20.0)


def chunks_of(dsn, pipeline, piece, columns=("id",), conditions=(), between=lambda: None, **options):
    parsed = ReadOptions.parse({"dsn": dsn, **options})
    query = Query("trioboss", ARCHIVE, columns, conditions)
    return list(ChunkReader(pipeline, parsed, query, between).read(piece))


def ids_of(chunks, columns=("id",)):
    arrow = to_arrow_schema(ARCHIVE.schema(columns), timezone="UTC")
    rows = [row for chunk in chunks for part in chunk for row in decode(part, arrow, {"id"}).to_pylist()]
    return sorted(row["id"] for row in rows)


def test_a_statement_that_takes_too_long_is_cut_in_two(dsn, database, pipeline):
    end_jobs(database, 400)
    database.execute(
        "create function pg_temp_slow() returns boolean volatile language sql as 'select pg_sleep(0.002) is not null'"
    )

    found = chunks_of(
        dsn,
        pipeline,
        whole(pipeline),
        conditions=("pg_temp_slow()",),
        statementTimeout="0.3",
        chunkRows="400",
    )

    assert len(found) > 1
    assert ids_of(found) == ids_in(database)


@pytest.mark.parametrize("find_piece", [whole, by_transaction])
def test_chunks_of_large_rows_are_bounded_in_bytes(dsn, database, pipeline, find_piece):
    """Rows of 58 KB beside small ones: a block has few of their bytes, because Postgres stores them elsewhere."""
    end_jobs(database, 100)
    large = json.dumps("".join(str(n) for n in range(14_000)))
    database.execute("update trioboss.archive set data = %s where seq %% 10 < 4", [large])
    columns, limit = ("id", "data"), 200_000

    found = chunks_of(dsn, pipeline, find_piece(pipeline), columns, chunkBytes=str(limit))

    sizes = [sum(len(part.data) for part in chunk) for chunk in found]
    assert max(sizes) < limit + 100_000  # the row by which the limit was noticed
    assert sum(sizes) > 40 * 50_000
    assert ids_of(found, columns) == ids_in(database)


def test_a_row_larger_than_a_chunk_is_a_chunk(dsn, database, pipeline):
    end_jobs(database, 3)
    database.execute("update trioboss.archive set data = %s", [json.dumps("".join(map(str, range(14_000))))])

    found = chunks_of(dsn, pipeline, whole(pipeline), ("id", "data"), chunkBytes="1000")

    assert [sum(len(part.sizes) for part in chunk) for chunk in found if chunk] == [1, 1, 1]


def test_a_search_that_cannot_be_cut_in_two_says_which_option_to_raise(dsn, database, pipeline):
    end_jobs(database, 10)
    piece = by_transaction(pipeline)
    with open_database(dsn) as other, other.transaction():
        other.connection.execute("LOCK TABLE trioboss.archive IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(
            DatabaseUnavailable,
            match=r"statementTimeout: 0\.2 s are not enough to read the next transactions",
        ):
            chunks_of(dsn, pipeline, piece, statementTimeout="0.2", chunkRows="5")


def test_a_server_that_hangs_up_between_two_chunks_is_said_to_be_unavailable(dsn, database, pipeline):
    end_jobs(database, 10)
    others = "pid <> pg_backend_pid() and datname = current_database() and application_name = 'trioboss'"

    def hang_up() -> None:
        database.execute(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {others}")

    with pytest.raises(DatabaseUnavailable, match="the connection to Postgres is lost") as raised:
        chunks_of(dsn, pipeline, whole(pipeline), between=hang_up)

    assert not isinstance(raised.value, OutcomeUnknown)


def test_no_more_statements_run_at_a_time_than_permits_are_given(dsn, database, pipeline):
    """While another reader has the only permit, this one waits for it."""
    end_jobs(database, 10)
    piece, done = whole(pipeline), threading.Event()

    def read() -> None:
        chunks_of(dsn, pipeline, piece, concurrency="1")
        done.set()

    with database.transaction():
        database.execute(
            "select pg_advisory_xact_lock(trioboss.lock_number('reader/1', seed)) from trioboss.lock_seed"
        )
        thread = threading.Thread(target=read)
        thread.start()
        assert not done.wait(0.3)
    thread.join(30)

    assert done.is_set()
