"""The batch side of the source: which rows come, and by which statements."""

import datetime
import json
from uuid import UUID, uuid4, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_helpers import add_day, end_jobs, fail_attempts, ids_in, may_be_dropped, open_transaction, read
from psycopg.conninfo import make_conninfo

from trioboss.errors import DatabaseUnavailable, UsageError
from trioboss.pipeline.batch_reader import BatchReader
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.days import Days
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.planning import Share, list_day_tables, plan_shares, read_horizon

FAR = "2031-05-05 12:00+00"
DAYS = ("2031-05-03", "2031-05-04", "2031-05-05")


def reader_of(dsn, table="archive", columns=("id",), **options):
    return BatchReader(
        ReadOptions.parse({"dsn": dsn, "table": table, **options}), TABLES[table].schema(columns)
    )


def rows_of(reader, partition):
    return [row for batch in reader.read(partition) for row in batch.to_pylist()]


def rows_read(dsn, table="archive", columns=("id",), **options):
    """The rows of each task, as one query of Spark would read them."""
    reader = reader_of(dsn, table, columns, **options)
    return [rows_of(reader, partition) for partition in reader.partitions()]


def ids_read(dsn, **options):
    return sorted(row["id"] for rows in rows_read(dsn, **options) for row in rows)


def test_a_row_comes_with_all_its_columns_and_their_types(spark, dsn, database):
    end_jobs(database, 1, at="2031-05-05 12:00:00.123456+02")

    (row,) = read(spark, dsn).collect()

    assert (row.queue, row.state, row.priority, row.attempt) == ("email", "completed", 0, 1)
    assert str(UUID(row.id)) == row.id
    assert json.loads(row.data) == {"n": 0}
    assert row.created_on.astimezone(datetime.UTC).isoformat() == "2031-05-05T09:59:59.123456+00:00"
    assert (json.loads(row.options), row.retry_limit) == ({"retry_limit": 2}, 2)
    assert (row.unique_until, row.dead_letter) == (None, None)
    assert row.xid > 0


def test_every_table_can_be_read(dsn, database, sync_boss):
    sync_boss.create_queue("email")
    sync_boss.create_queue("own", partition=True)
    for queue in ("email", "own"):
        sync_boss.send(queue, {"n": 1})
    fail_attempts(database, 3)

    counts = {table: sum(map(len, rows_read(dsn, table, None))) for table in TABLES}

    assert counts == {"archive": 0, "attempt": 3, "job": 2, "queue": 2, "load": 0, "rejected": 0}


# -- shares


@given(
    blocks=st.integers(0, 300), grown=st.integers(0, 300), count=st.integers(1, 9), stripe=st.integers(1, 40)
)
def test_a_block_is_in_one_share_and_stays_in_it_when_the_table_grows(blocks, grown, count, stripe):
    def owners(size):
        shares = [Share(number, count, stripe) for number in range(count)]
        return sorted(
            (block, share.number)
            for share in shares
            for pair in share.block_ranges(size)
            for block in range(*pair)
        )

    assert [block for block, _ in owners(blocks)] == list(range(blocks))
    assert owners(blocks + grown)[:blocks] == owners(blocks)


def test_many_shares_of_many_chunks_have_each_row_once(dsn, database):
    for day in DAYS:
        add_day(database, day)
        end_jobs(database, 500, at=f"{day} 06:00+00")

    shares = rows_read(dsn, numPartitions="5", chunkRows="37")

    assert len(shares) == 5
    assert all(shares)
    assert sorted(row["id"] for share in shares for row in share) == ids_in(database)


def test_all_tasks_of_a_query_read_the_table_as_it_was_when_the_first_began(dsn, database):
    end_jobs(database, 300)
    before = ids_in(database)
    reader = reader_of(dsn, numPartitions="3", chunkRows="20")
    partitions = reader.partitions()
    found = []
    for partition in partitions:
        found += [row["id"] for row in rows_of(reader, partition)]
        end_jobs(database, 200)

    assert len(partitions) == 3
    assert sorted(found) == before


def test_rows_of_a_running_transaction_are_left_out_and_others_are_not(dsn, database):
    with open_transaction(dsn) as late:
        end_jobs(late, 5)
        end_jobs(database, 5)

        assert ids_read(dsn) == ids_in(database)
        late.commit()

    assert len(ids_read(dsn)) == 10


def test_a_snapshot_of_the_past_shows_what_was_committed_then(dsn, database):
    end_jobs(database, 5)
    before = ids_in(database)
    with open_transaction(dsn) as late:
        end_jobs(late, 5)
        ((snapshot,),) = database.execute("select pg_current_snapshot()::text").fetchall()
        late.commit()
    end_jobs(database, 5)

    assert ids_read(dsn, snapshot=snapshot) == before


def test_a_role_that_cannot_register_its_read_has_one_task(dsn, database):
    end_jobs(database, 300)
    database.execute("create role bare login")
    try:
        database.execute("grant usage on schema trioboss to bare")
        database.execute("grant select on all tables in schema trioboss to bare")
        database.execute("grant execute on function trioboss.lock_number(text, bigint) to bare")

        shares = rows_read(make_conninfo(dsn, user="bare"), numPartitions="3", chunkRows="20")
    finally:
        database.execute("drop owned by bare; drop role bare")

    assert [len(share) for share in shares] == [300]


def test_a_server_without_scans_of_block_ranges_is_read_by_transaction(dsn, database, monkeypatch):
    monkeypatch.setattr("trioboss.pipeline.planning._TID_RANGES", 10**9)
    for n in (1, 70, 3, 50):
        end_jobs(database, n)
    ((xid,),) = database.execute("select max(xid)::text::bigint from trioboss.archive").fetchall()

    assert ids_read(dsn, chunkRows="20") == ids_in(database)
    assert len(ids_read(dsn, chunkRows="20", toXid=str(xid), numPartitions="3")) == 74


def test_a_range_of_transactions_is_read_exactly_by_blocks_and_by_the_index(dsn, database):
    xids = []
    for n in (1, 200, 3, 50, *[1] * 20):
        with database.transaction():
            end_jobs(database, n)
            xids.append(database.execute("select pg_current_xact_id()::text::bigint").fetchone()[0])
    for first, end, expected in [
        (0, xids[-1] + 1, 274),
        (xids[1], xids[3], 203),
        (xids[1], xids[2], 200),
        (xids[-1] + 1, xids[-1] + 2, 0),
    ]:
        options = {"fromXid": str(first), "toXid": str(end), "numPartitions": "3", "chunkRows": "20"}
        rows = [row for share in rows_read(dsn, columns=("id", "xid"), **options) for row in share]

        assert len(rows) == len({row["id"] for row in rows}) == expected
        assert all(first <= row["xid"] < end for row in rows)


@pytest.mark.parametrize(
    "tid_ranges", [140_000, 10**9], ids=["this server", "one without scans of block ranges"]
)
def test_a_plan_that_is_used_again_has_the_rows_that_are_new_and_asked_for(
    dsn, database, monkeypatch, tid_ranges
):
    """Rows of later transactions, of earlier ones that commit late, and of a day that had no table."""
    monkeypatch.setattr("trioboss.pipeline.planning._TID_RANGES", tid_ranges)
    with open_transaction(dsn) as late:
        for n in range(20):
            end_jobs(database, 1, first=n)
        ((last,),) = database.execute("select max(xid)::text::bigint from trioboss.archive").fetchall()
        ((own,),) = late.execute("select pg_current_xact_id()::text::bigint").fetchall()
        reader = reader_of(dsn, fromXid=str(own), toXid=str(2**50), numPartitions="3")
        some = reader_of(dsn, fromXid=str(last - 2), toXid=str(2**50), numPartitions="3")
        partitions, of_some = reader.partitions(), some.partitions()
        end_jobs(late, 1)
        late.commit()
    end_jobs(database, 2)
    add_day(database, "2031-05-05")
    end_jobs(database, 1, at=FAR)
    later_query = uuid4()
    monkeypatch.setattr(
        "trioboss.pipeline.history_reader.execution_of_task", lambda plan: uuid5(plan, str(later_query))
    )

    found, newest = (
        sorted(row["id"] for partition in planned for row in rows_of(of, partition))
        for of, planned in ((reader, partitions), (some, of_some))
    )

    assert found == ids_in(database)
    assert len(newest) == len(set(newest)) == 6


def test_a_few_new_rows_of_a_large_day_are_found_by_the_index(dsn, database):
    for n in range(20):
        end_jobs(database, 1, first=n)
    with open_database(dsn) as pipeline:
        sealed, tables = read_horizon(pipeline).sealed, list_day_tables(pipeline, "archive", Days())
        few, all_of_them = (
            plan_shares(pipeline, tables, 1, 1000, xids)[0].xids
            for xids in ((sealed - 3, sealed), (0, sealed))
        )

    assert len(few) == 1
    assert not all_of_them


# -- conditions


def test_the_server_applies_the_options_and_days_without_a_match_are_not_read(dsn, database, monkeypatch):
    for day in DAYS:
        add_day(database, day)
        end_jobs(database, 10, at=f"{day} 06:00+00")
        end_jobs(database, 10, "other", at=f"{day} 06:00+00")
        end_jobs(database, 10, "none", at=f"{day} 06:00+00")
    asked = []
    monkeypatch.setattr("trioboss.pipeline.chunks.copy_out", lambda _, text, *rest: asked.append(text) or [])

    ids_read(dsn, queue="email, other", since="2031-05-04", until="2031-05-05T00:00:00+00:00")
    monkeypatch.undo()

    assert {text.partition(" WHERE ")[0].rpartition(".")[2] for text in asked} == {
        '"archive_20310504" t',
        '"archive_20310505" t',  # the end is not included, but a day is a day
    }
    found = rows_read(
        dsn, columns=("queue", "completed_on"), queue="email, other", since="2031-05-04", until="2031-05-05"
    )
    assert {(row["queue"], row["completed_on"].day) for share in found for row in share} == {
        ("email", 4),
        ("other", 4),
    }


def test_only_the_columns_asked_for_are_fetched(spark, dsn, database):
    end_jobs(database, 3)

    assert read(spark, dsn, columns="queue, priority").columns == ["queue", "priority"]
    with pytest.raises(Exception, match="archive has no column 'nonsense'"):
        read(spark, dsn, columns="nonsense")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"table": "secrets"}, "table: 'secrets' is none of archive, attempt"),
        ({"tabel": "job"}, "tabel: no such option"),
        ({"chunkRows": "0"}, "chunkRows: '0' is not a number from 1 on"),
        ({"schema": 'x"; drop table y'}, "is not a schema name"),
        ({"startingXid": "soon"}, "startingXid: 'soon' is none of"),
        ({"queue": "a'; drop"}, "queue: .* is not a name"),
        ({"since": "yesterday"}, "since: 'yesterday' is not a time like"),
        ({"snapshot": "1:2:x"}, r"snapshot: '1:2:x' is not what pg_current_snapshot\(\) returns"),
        ({"table": "job", "since": "2031-01-01"}, "since: job is not history"),
        ({"table": "rejected", "queue": "q"}, "queue: rejected has no queues"),
        ({"table": "job", "toXid": "5"}, "fromXid, toXid: job is not history"),
    ],
)
def test_a_mistake_names_the_option(dsn, options, problem):
    table = TABLES.get(options.get("table"), TABLES["archive"])
    with pytest.raises((UsageError, ValueError), match=problem):
        BatchReader(ReadOptions.parse({"dsn": dsn, **options}), table.schema())


# -- retention and other changes of tables


def test_a_table_that_was_dropped_while_it_is_read_is_an_error_and_not_a_hole(dsn, database):
    add_day(database, "2031-05-05")
    end_jobs(database, 100, at=FAR)
    reader = reader_of(dsn, numPartitions="2", chunkRows="20")
    first, second = reader.partitions()
    rows_of(reader, first)
    database.execute("drop table trioboss.archive_20310505")

    with pytest.raises(DatabaseUnavailable, match="archive_20310505 was dropped or rewritten while"):
        rows_of(reader, second)


def test_a_table_that_was_rewritten_while_it_is_read_is_an_error(dsn, database):
    end_jobs(database, 100)
    reader = reader_of(dsn, numPartitions="2", chunkRows="20")
    first, second = reader.partitions()
    rows_of(reader, first)
    database.execute("vacuum full trioboss.archive")

    with pytest.raises(DatabaseUnavailable, match="was dropped or rewritten while it was being read"):
        rows_of(reader, second)


def test_retention_keeps_days_that_are_being_read(dsn, database):
    day = "2001-05-05"
    add_day(database, day)
    end_jobs(database, 10, at="2001-05-05 12:00+00")
    with open_database(dsn) as pipeline:
        assert may_be_dropped(pipeline, day)
        reader = reader_of(dsn)
        (partition,) = reader.partitions()
        database.execute("delete from trioboss.reader")
        rows_of(reader, partition)
        assert not may_be_dropped(pipeline, day)


def test_a_registration_is_renewed_while_a_task_reads(dsn, database, monkeypatch):
    end_jobs(database, 300)
    monkeypatch.setattr("trioboss.pipeline.registration._SECONDS", 0.003)
    written, run = [], Database.run

    def noted(self, name, **values):
        written.append(name)
        return run(self, name, **values)

    monkeypatch.setattr(Database, "run", noted)

    ids_read(dsn, numPartitions="1", chunkRows="20")

    assert written.count("register_read") > 3
