"""The lake: each row once, whatever happens to the export."""

import threading
import time
from itertools import pairwise

import psycopg
import pytest
from pipeline_helpers import (
    Killed,
    Killer,
    add_day,
    end_jobs,
    fail_attempts,
    open_transaction,
    rows_of_history,
    rows_of_lake,
)

from trioboss.errors import UsageError
from trioboss.pipeline import archive, read_lake
from trioboss.pipeline.database import open_database
from trioboss.pipeline.files import Files
from trioboss.pipeline.jobs.archive import _Export
from trioboss.pipeline.manifest import Manifest


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def assert_same(lake, database):
    for table in ("archive", "attempt"):
        assert rows_of_lake(lake, table) == rows_of_history(database, table)


def test_a_lake_has_what_history_has_and_an_export_adds_what_is_new(spark, dsn, database, tmp_path):
    for day, queue in [("2031-05-03", "email"), ("2031-05-04", "007"), ("2031-05-04", "a/b")]:
        add_day(database, day)
        end_jobs(database, 3, queue, at=f"{day} 23:59:59.999+00")
    fail_attempts(database, 2)

    first = archive(dsn, tmp_path, spark=spark)
    with open_transaction(dsn) as late:
        end_jobs(late, 1, "late")
        end_jobs(database, 2, "email")
        assert archive(dsn, tmp_path, spark=spark).jobs == 0
        late.commit()
    second = archive(dsn, tmp_path, spark=spark)

    assert (first.jobs, first.attempts, second.jobs, second.attempts) == (9, 2, 3, 0)
    assert_same(tmp_path, database)
    assert (tmp_path / "jobs" / "date=2031-05-04" / "queue=a%2Fb").is_dir()
    queues = {row.queue for row in read_lake(spark, str(tmp_path)).select("queue").distinct().collect()}
    assert queues == {"email", "007", "a/b", "late"}


def test_a_large_history_is_exported_in_batches(spark, dsn, database, tmp_path):
    for n in range(4):
        end_jobs(database, 5, first=n)
    said = []

    exported = archive(dsn, tmp_path, spark=spark, batch_rows=10, progress=said.append)

    assert exported.jobs == 20
    assert [said_of.rows for said_of in said if said_of.what.startswith("batch")] == [10, 10]
    assert_same(tmp_path, database)


def test_an_export_reads_by_short_statements(spark, dsn, database, tmp_path, monkeypatch):
    end_jobs(database, 300)
    committed = []

    for number, rows in enumerate((1_000, 1_000, 1)):  # the first one of a database has more to do
        monkeypatch.setattr("trioboss.pipeline.jobs.archive._CHUNK_ROWS", rows)
        archive(dsn, tmp_path / str(number), spark=spark)
        committed.append(count_commits(database))

    in_large_bites, in_small_ones = (after - before for before, after in pairwise(committed))
    ((blocks,),) = database.execute(
        "select count(distinct (ctid::text::point)[0]) from trioboss.archive"
    ).fetchall()
    assert in_small_ones >= in_large_bites + blocks / 2


def count_commits(database) -> int:
    """Of all sessions but this one, which is elsewhere: they tell theirs when they are over."""
    name, deadline = database.info.dbname, time.monotonic() + 30.0
    with psycopg.connect(database.info.dsn, dbname="postgres", autocommit=True) as aside:
        others = "select from pg_stat_activity where datname = %s and pid <> %s"
        while aside.execute(others, [name, database.info.backend_pid]).rowcount:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        counted = "select xact_commit from pg_stat_database where datname = %s"
        return aside.execute(counted, [name]).fetchone()[0]


def test_an_export_killed_between_any_two_steps_and_run_again_has_each_row_once(
    spark, dsn, database, tmp_path, monkeypatch
):
    """Every change of the lake and of the database is a step; what a killed export left is what the next one finds."""
    killed_at, n = [], 0
    while n in killed_at or n == 0:
        n += 1
        end_jobs(database, 1, "one")
        end_jobs(database, 1, "two")
        with monkeypatch.context() as patches:
            killer = Killer(patches, n)
            mark = _Export._mark
            patches.setattr(
                _Export, "_mark", lambda *a, mark=mark, killer=killer, **k: (killer.step(), mark(*a, **k))
            )
            try:
                archive(dsn, tmp_path, spark=spark)
            except Killed:
                killed_at.append(n)
        archive(dsn, tmp_path, spark=spark)
        assert_same(tmp_path, database)
        assert Files(spark, tmp_path).names("_aside") == []
        assert not [name for name in Files(spark, tmp_path).names("_manifest") if not name.endswith(".json")]
    assert len(killed_at) >= 10


def test_retention_told_to_hold_keeps_what_the_lake_does_not_have(spark, dsn, database, tmp_path):
    day = "2001-05-05"
    add_day(database, day)
    with open_database(dsn) as pipeline:
        archive(dsn, tmp_path, spark=spark, hold=True)
        end_jobs(database, 3, at=f"{day} 12:00+00")
        assert pipeline.run("is_day_over", day=day) == [(False,)]

        archive(dsn, tmp_path, spark=spark)
        database.execute("delete from trioboss.reader")
        assert pipeline.run("is_day_over", day=day) == [(True,)]

        fail_attempts(database, 1, at=f"{day} 12:00+00")
        assert pipeline.run("is_day_over", day=day) == [(False,)]
        archive(dsn, tmp_path, spark=spark, hold=False)
        database.execute("delete from trioboss.reader")
        assert pipeline.run("is_day_over", day=day) == [(True,)]


def test_a_second_export_to_the_same_lake_is_turned_away(spark, dsn, database, tmp_path):
    with open_database(dsn) as other:
        other.run("lock_lake", lake=Files(spark, tmp_path).root)

        with pytest.raises(UsageError, match="another export to this lake is running"):
            archive(dsn, tmp_path, spark=spark)


def test_a_lake_of_another_database_is_noticed(spark, dsn, database, tmp_path):
    (tmp_path / "_manifest").mkdir()
    (tmp_path / "_manifest" / "0000000007.json").write_text(
        f'{{"version": 1, "number": 7, "first": 0, "end": {2**40}, "rows": {{}}, "moves": []}}'
    )

    with pytest.raises(UsageError, match="export it to a new lake"):
        archive(dsn, tmp_path, spark=spark)
    assert Manifest(Files(spark, tmp_path)).last().number == 7


def test_an_export_that_follows_goes_on_until_it_is_told_to_stop(spark, dsn, database, tmp_path):
    stop = threading.Event()
    end_jobs(database, 2)

    def report(progress):
        """After the first batch there is news; after the second it is enough."""
        if progress.what == "batch 1":
            end_jobs(database, 1)
        if progress.what == "batch 2":
            stop.set()

    exported = archive(dsn, tmp_path, spark=spark, follow=True, interval=0.01, stop=stop, progress=report)

    assert exported.jobs == 3
    assert_same(tmp_path, database)
