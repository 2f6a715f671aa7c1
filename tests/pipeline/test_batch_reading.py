"""The batch side of the source."""

import datetime
import json
from collections import Counter
from functools import reduce
from uuid import UUID

import psycopg
import pytest
from pipeline_helpers import add_day, end_jobs, fail_attempts, ids_in, open_transaction, read
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown, UsageError
from trioboss.pipeline.chunks import Query, open_chunks
from trioboss.pipeline.database import open_database
from trioboss.pipeline.decoding import decode
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Blocks, Days, Xids, divide, list_leaves, plan, read_horizon
from trioboss.pipeline.reading import BatchReader
from trioboss.pipeline.tables import TABLES

FAR = "2031-05-05 12:00+00"
DAYS = ("2031-05-03", "2031-05-04", "2031-05-05")


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def rows_read(dsn, table="archive", **options):
    """What tasks would read, without Spark: one list of rows for each part."""
    parsed = ReadOptions.parse({"dsn": dsn, "table": table, **options})
    schema = TABLES[table].schema(("id",) if table == "archive" else None)
    reader = BatchReader(parsed, schema)
    return [[row for batch in reader.read(part) for row in batch.to_pylist()] for part in reader.partitions()]


def test_a_row_comes_with_all_its_columns_and_their_types(spark, dsn, database):
    end_jobs(database, 1, at="2031-05-05 12:00:00.123456+02")

    (row,) = read(spark, dsn).collect()

    assert (row.queue, row.state, row.priority, row.attempt) == ("email", "completed", 0, 1)
    assert str(UUID(row.id)) == row.id
    assert json.loads(row.data) == {"n": 0}
    assert row.created_on.astimezone(datetime.UTC).isoformat() == "2031-05-05T09:59:59.123456+00:00"
    assert (row.expire_in, row.retry_delay, row.singleton_on, row.dead_letter) == (900.0, 0.5, None, None)
    assert row.xid > 0


def test_every_table_can_be_read(spark, dsn, database, sync_boss):
    sync_boss.create_queue("email")
    sync_boss.send("email", {"n": 1})
    fail_attempts(database, 3)

    counts = {table: len(rows_read_all(dsn, table)) for table in TABLES}

    assert counts == {"archive": 0, "attempt": 3, "job": 1, "queue": 1, "load": 0, "rejected": 0}


def rows_read_all(dsn, table):
    parsed = ReadOptions.parse({"dsn": dsn, "table": table})
    reader = BatchReader(parsed, TABLES[table].schema())
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def test_many_parts_of_many_chunks_have_each_row_once(dsn, database):
    for day in DAYS:
        add_day(database, day)
        end_jobs(database, 500, at=f"{day} 06:00+00")

    parts = rows_read(dsn, numPartitions="5", chunkRows="37")

    assert len(parts) == 5
    assert sorted(row["id"] for part in parts for row in part) == ids_in(database)


def test_rows_of_a_transaction_under_way_are_left_out_and_so_is_what_came_after_it(dsn, database):
    end_jobs(database, 5)
    before = ids_in(database)
    with open_transaction(dsn) as late:
        end_jobs(database, 5)

        assert sorted(row["id"] for part in rows_read(dsn) for row in part) == before
        late.rollback()

    assert sorted(row["id"] for part in rows_read(dsn) for row in part) == ids_in(database)


def test_blocks_are_counted_after_the_horizon_was_read(dsn, database, monkeypatch):
    """Rows that are sealed when the horizon is read must not lie in blocks that were not there a moment ago."""
    end_jobs(database, 5)
    order = []
    for name in ("read_horizon", "list_leaves"):
        original = globals()[name]

        def noted(*arguments, original=original, name=name):
            order.append(name)
            return original(*arguments)

        monkeypatch.setattr(f"trioboss.pipeline.reading.{name}", noted)

    rows_read(dsn)

    assert order == ["read_horizon", "list_leaves"]


@pytest.mark.parametrize("by_block", [True, False], ids=["blocks", "transactions"])
def test_a_range_of_transactions_is_read_exactly(dsn, database, by_block):
    xids = []
    for n in (1, 200, 3, 50):
        with database.transaction():
            end_jobs(database, n)
            xids.append(database.execute("select pg_current_xact_id()::text::bigint").fetchone()[0])
    for first, end, expected in [
        (0, xids[3] + 1, 254),
        (xids[1], xids[3], 203),
        (xids[3] + 1, xids[3] + 2, 0),
    ]:
        options = ReadOptions.parse({"dsn": dsn, "chunkRows": "20"})
        with open_database(dsn) as pipeline:
            leaves = list_leaves(pipeline, "archive", Days())
        pieces = [
            Blocks(leaf.relation, leaf.file, 0, leaf.blocks, 20.0)
            if by_block
            else Xids(leaf.relation, leaf.file, first, end, 20.0, True)
            for leaf in leaves
        ]
        reader = BatchReader(options, TABLES["archive"].schema(("id", "xid")))
        rows = [
            row
            for part in divide(pieces, 3, first, end)
            for batch in reader.read(part)
            for row in batch.to_pylist()
        ]
        assert len(rows) == len({row["id"] for row in rows}) == expected
        assert all(first <= row["xid"] < end for row in rows)


def test_a_few_new_rows_of_a_large_day_are_looked_up_and_not_searched_for(dsn, database):
    for n in range(20):
        end_jobs(database, 1, first=n)
    with open_database(dsn) as pipeline:
        horizon, leaves = read_horizon(pipeline), list_leaves(pipeline, "archive", Days())
        pieces = plan(pipeline, leaves, horizon.sealed - 3, horizon, 1)

    assert [type(piece) for piece in pieces] == [Xids]


def test_filters_are_applied_by_the_server_and_days_without_a_match_are_not_read(spark, dsn, database):
    for day in DAYS:
        add_day(database, day)
        end_jobs(database, 10, at=f"{day} 06:00+00")
        end_jobs(database, 10, "it's %s \\ odd", at=f"{day} 06:00+00", state="failed")
    day = "completed_on >= timestamp'2031-05-04 00:00:00+00:00' and completed_on < timestamp'2031-05-05 00:00:00+00:00'"

    some = read(spark, dsn, numPartitions="1").where(
        f"{day} and queue = \"it's %s \\\\ odd\" and state = 'failed'"
    )
    plan = some._jdf.queryExecution().optimizedPlan().toString()

    assert "Filter" not in plan
    assert some.count() == 10
    assert some.rdd.getNumPartitions() == 1


FILTERS = [
    "queue = 'email'",
    "queue in ('email', 'other')",
    "state = 'failed'",
    "state > 'completed'",
    "priority <=> 3",
    "singleton_key like 'key%'",
    "singleton_key like '%1'",
    "singleton_key like '%ey2%'",
    "worker is not null and not (priority = 1)",
    "completed_on > timestamp'2031-05-05 12:00:00.005+00:00'",
    "retry_delay = 0.5D",
    "id = 'not-a-uuid'",
    "data = '{\"n\": 3}'",
]


def test_a_filter_means_what_it_means_to_spark(spark, dsn, database):
    add_day(database, "2031-05-05")
    end_jobs(database, 12, at=FAR)
    end_jobs(database, 7, "Zebra", at=FAR, state="failed")
    counts = [f"count_if({text}) as `{n}`" for n, text in enumerate(FILTERS)]
    (by_spark,) = read(spark, dsn, numPartitions="1").selectExpr(*counts).collect()

    matches = [
        read(spark, dsn, numPartitions="1").where(text).selectExpr(f"{n} as n")
        for n, text in enumerate(FILTERS)
    ]
    by_server = Counter(row.n for row in reduce(DataFrame.union, matches).collect())

    assert {text: by_server[n] for n, text in enumerate(FILTERS)} == dict(zip(FILTERS, by_spark, strict=True))
    assert by_server[0] == 12


def test_only_the_columns_asked_for_are_fetched(spark, dsn, database):
    end_jobs(database, 3)

    assert read(spark, dsn, columns="queue, priority").columns == ["queue", "priority"]
    with pytest.raises(Exception, match="archive has no column 'nonsense'"):
        read(spark, dsn, columns="nonsense")


def test_a_statement_that_takes_too_long_is_cut_in_two(dsn, database):
    end_jobs(database, 400)
    database.execute(
        "create function pg_temp_slow() returns boolean volatile language sql as 'select pg_sleep(0.002) is not null'"
    )
    table = TABLES["archive"]
    query = Query(table, ("id",), ("pg_temp_slow()",), 0, None)
    options = ReadOptions.parse({"dsn": dsn, "statementTimeout": "0.3", "chunkRows": "400"})
    with open_database(dsn) as pipeline:
        leaves = list_leaves(pipeline, "archive", Days())
    arrow = to_arrow_schema(table.schema(("id",)), timezone="UTC")
    with open_chunks(options, query) as chunks:
        rows = [
            row
            for leaf in leaves
            for chunk in chunks.read(Blocks(leaf.relation, leaf.file, 0, leaf.blocks, 20.0))
            for piece in chunk
            for row in decode(piece, arrow).to_pylist()
        ]

    assert sorted(row["id"] for row in rows) == ids_in(database)


def test_a_transaction_that_cannot_be_looked_for_in_time_says_which_option_to_raise(dsn, database):
    end_jobs(database, 10)
    options = ReadOptions.parse({"dsn": dsn, "statementTimeout": "0.2", "chunkRows": "5"})
    with open_database(dsn) as pipeline, open_chunks(options, Query(TABLES["archive"], ("id",))) as chunks:
        (leaf,) = list_leaves(pipeline, "archive", Days())
        piece = Xids(leaf.relation, leaf.file, 0, 2**40, 20.0, True)
        with pipeline.transaction():
            pipeline.connection.execute("LOCK TABLE trioboss.archive IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(
                DatabaseUnavailable, match="statementTimeout: to look for the next transactions takes"
            ):
                list(chunks.read(piece))


def test_a_server_that_hangs_up_between_two_chunks_is_said_to_be_unavailable(dsn, database):
    end_jobs(database, 10)
    others = "pid <> pg_backend_pid() and datname = current_database() and application_name = 'trioboss'"

    def hang_up() -> None:
        database.execute(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {others}")

    with open_database(dsn) as pipeline:
        (leaf,) = list_leaves(pipeline, "archive", Days())
    query = Query(TABLES["archive"], ("id",))
    with (
        open_chunks(ReadOptions.parse({"dsn": dsn}), query, hang_up) as chunks,
        pytest.raises(DatabaseUnavailable, match="the connection to Postgres is lost") as raised,
    ):
        list(chunks.read(Blocks(leaf.relation, leaf.file, 0, leaf.blocks, 20.0)))

    assert not isinstance(raised.value, OutcomeUnknown)


def test_a_table_that_was_dropped_while_it_is_read_is_an_error_and_not_a_hole(dsn, database):
    add_day(database, "2031-05-05")
    end_jobs(database, 10, at=FAR)
    reader = BatchReader(ReadOptions.parse({"dsn": dsn}), TABLES["archive"].schema(("id",)))
    parts = reader.partitions()
    database.execute("drop table trioboss.archive_20310505")

    with pytest.raises(Exception, match="was dropped or rewritten while it was being read"):
        [batch for part in parts for batch in reader.read(part)]


def test_retention_waits_for_whoever_is_reading(dsn, database):
    day = "2001-05-05"
    add_day(database, day)
    end_jobs(database, 10, at="2001-05-05 12:00+00")
    over = "is_day_over"
    with open_database(dsn) as pipeline:
        assert pipeline.run(over, day=day) == [(True,)]
        BatchReader(ReadOptions.parse({"dsn": dsn}), TABLES["archive"].schema(("id",))).partitions()
        assert pipeline.run(over, day=day) == [(False,)]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"table": "secrets"}, "table: 'secrets' is none of archive, attempt"),
        ({"tabel": "job"}, "tabel: no such option"),
        ({"chunkRows": "0"}, "chunkRows: '0' is not a number from 1 on"),
        ({"schema": 'x"; drop table y'}, "is not a schema name"),
        ({"startingXid": "soon"}, "startingXid: 'soon' is none of"),
    ],
)
def test_a_mistake_names_the_option(dsn, options, problem):
    with pytest.raises((UsageError, ValueError), match=problem):
        BatchReader(ReadOptions.parse({"dsn": dsn, **options}), TABLES["archive"].schema())
