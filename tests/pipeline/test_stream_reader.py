"""The stream side of the source."""

import threading

import psycopg
import pytest
from pipeline_helpers import add_day, end_jobs, ids_in, open_transaction
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from trioboss.errors import UsageError
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import open_database
from trioboss.pipeline.options import ReadOptions
from trioboss.pipeline.stream_reader import DataLost, StreamReader
from trioboss.postgres.blocking import execute_blocking
from trioboss.sql import Catalog
from trioboss.store import Context, make_store

ALL = ReadAllAvailable()


class Follower:
    """Does what Spark does with a stream, one batch at a time."""

    def __init__(self, dsn, **options):
        parsed = ReadOptions.parse({"dsn": dsn, **options})
        self.reader = StreamReader(parsed, TABLES[parsed.table].schema(("id", "xid")))
        self.offset = self.reader.initialOffset()

    def next(self, limit=ALL):
        """The rows of the next batch."""
        end = self.reader.latestOffset(self.offset, limit)
        rows = self.read(self.offset, end) if end != self.offset else []
        self.offset = end
        return rows

    def read(self, start, end):
        parts = self.reader.partitions(start, end)
        return [row for part in parts for batch in self.reader.read(part) for row in batch.to_pylist()]


def ids(rows):
    return sorted(row["id"] for row in rows)


def test_each_row_comes_once_and_a_batch_without_news_is_none(dsn, database):
    follower = Follower(dsn)
    end_jobs(database, 3)
    first = follower.next()
    end_jobs(database, 2)
    second = follower.next()

    assert (len(first), len(second), follower.next()) == (3, 2, [])
    assert ids(first + second) == ids_in(database)


def test_a_row_that_commits_late_is_not_skipped(dsn, database):
    follower = Follower(dsn)
    with open_transaction(dsn) as late:
        end_jobs(late, 1)
        end_jobs(database, 2)  # overtakes it
        assert follower.next() == []
        late.commit()

    assert ids(follower.next()) == ids_in(database)


@pytest.mark.soak
def test_with_many_writers_that_overtake_each_other_nothing_is_lost_or_doubled(dsn, database):
    follower, seen, over = Follower(dsn), [], threading.Event()

    def write(number):
        with psycopg.connect(dsn) as connection:
            for n in range(40):
                end_jobs(connection, 1 + n % 3)
                if (n + number) % 4:  # some transactions are long, and hold several
                    connection.commit()

    def sample():
        while not over.is_set():
            seen.extend(follower.next(ReadMaxRows(7)))

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    sampler = threading.Thread(target=sample)
    for thread in [sampler, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    sampler.join()
    while rows := follower.next(ReadMaxRows(7)):
        seen += rows

    assert ids(seen) == ids_in(database)
    assert len(seen) > 200


def test_a_batch_read_again_is_the_same(dsn, database):
    follower = Follower(dsn)
    end_jobs(database, 5)
    start = follower.offset
    first = follower.next()
    end_jobs(database, 5)

    assert ids(follower.read(start, follower.offset)) == ids(first)


def test_a_batch_has_about_as_many_rows_as_allowed_and_never_half_a_transaction(dsn, database):
    for n in (3, 3, 50, 1):
        end_jobs(database, n)
    follower = Follower(dsn)

    assert [len(follower.next(ReadMaxRows(6))) for _ in range(4)] == [6, 50, 1, 0]


def test_a_stream_begins_where_it_is_told_to(dsn, database):
    end_jobs(database, 3)
    latest = Follower(dsn, startingXid="latest")
    end_jobs(database, 2)

    assert len(latest.next()) == 2
    assert len(Follower(dsn, startingXid=str(latest.offset["xid"])).next()) == 0


def test_a_database_that_is_another_one_is_noticed(dsn):
    follower = Follower(dsn)
    follower.offset = {"xid": 2**40}

    with pytest.raises(UsageError, match="restored from a dump, or is another one"):
        follower.next()


def test_only_history_can_be_followed(dsn):
    with pytest.raises(UsageError, match="table: 'job' is not history"):
        StreamReader(ReadOptions.parse({"dsn": dsn, "table": "job"}), TABLES["job"].schema())


def test_a_stream_goes_on_from_its_checkpoint(spark, dsn, database, tmp_path):
    seen = []

    def run():
        stream = spark.readStream.format("trioboss").options(dsn=dsn, table="archive", columns="id").load()
        query = (
            stream.writeStream.foreachBatch(lambda rows, _: seen.append([row.id for row in rows.collect()]))
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    end_jobs(database, 3)
    run()
    end_jobs(database, 2)
    run()

    assert [len(batch) for batch in seen if batch] == [3, 2]
    assert sorted(id for batch in seen for id in batch) == ids_in(database)


# -- rows that retention has deleted


DAYS = ("2001-05-03", "2001-05-04")


def retire(dsn, day):
    """The effect of retention on a day that is over."""
    with open_database(dsn) as pipeline:
        for history in ("archive", "attempt"):
            pipeline.run("drop_day", history=history, day=day)


@pytest.fixture
def stale(dsn, database):
    """A stream that has read the first of three rows: one on each of two old days, and one of today."""
    for day in DAYS:
        add_day(database, day)
        end_jobs(database, 1, at=f"{day} 12:00+00")
    end_jobs(database, 1)
    follower = Follower(dsn)
    assert len(follower.next(ReadMaxRows(1))) == 1
    return follower


def test_a_stream_fails_when_retention_has_deleted_rows_that_it_has_not_read(dsn, stale):
    retire(dsn, DAYS[1])

    with pytest.raises(DataLost, match="retention has deleted rows of archive up to transaction"):
        stale.next()


def test_a_stream_goes_on_when_retention_has_deleted_only_rows_that_it_has_read(dsn, stale):
    retire(dsn, DAYS[0])

    assert len(stale.next()) == 2


def test_a_batch_that_was_planned_before_fails_too(dsn, stale):
    """Spark stores the end of a batch, and reads only its rows when it is restarted."""
    end = stale.reader.latestOffset(stale.offset, ALL)
    retire(dsn, DAYS[1])

    with pytest.raises(DataLost):
        stale.reader.partitions(stale.offset, end)


def test_rows_that_retention_deletes_one_by_one_count(dsn, database, stale):
    """A day of which one row is kept for ever is not dropped as a whole."""
    end_jobs(database, 1, at=f"{DAYS[1]} 13:00+00")
    database.execute(
        "update trioboss.archive set options = '{\"delete_after\": 0}' where date_part('hour', completed_on) = 13"
    )
    database.execute("delete from trioboss.reader")

    execute_blocking(database, make_store(Context(Catalog("trioboss"))).retention.prune(), database)

    assert database.execute("select count(*) from trioboss.archive").fetchone() == (2,)
    with pytest.raises(DataLost):
        stale.next()


def test_with_fail_on_data_loss_off_the_stream_goes_on(dsn, stale):
    retire(dsn, DAYS[1])
    tolerant = Follower(dsn, failOnDataLoss="false")
    tolerant.offset = stale.offset

    assert len(tolerant.next()) == 1


def test_a_new_stream_begins_with_the_rows_that_there_are(dsn, stale):
    retire(dsn, DAYS[0])

    assert len(Follower(dsn).next()) == 2
