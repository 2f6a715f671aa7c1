"""Exports to a lake: what gets there, when, and what keeps it away."""

import threading
import time
from itertools import pairwise

import psycopg
import pytest
from pipeline_helpers import (
    add_day,
    end_jobs,
    fail_attempts,
    files_of_lake,
    may_be_dropped,
    open_transaction,
    rows_of_history,
    rows_of_lake,
    write_without_spark,
)

import trioboss
from trioboss.pipeline import archive, read_lake
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.export import LakeExport, Sizes
from trioboss.pipeline.held_back import find_held_back
from trioboss.pipeline.jobs import archive as archive_job
from trioboss.pipeline.planning import read_horizon
from trioboss.testing import temporary_server

ODD_NAMES = {"__HIVE_DEFAULT_PARTITION__", "/" * 200, "..", "a/../b", "007", "null", "A", "a"}


@pytest.fixture
def quick(monkeypatch):
    """Batches that are written without Spark."""
    monkeypatch.setattr(LakeExport, "_write", write_without_spark)


def assert_same(lake, database):
    for table in ("archive", "attempt"):
        assert rows_of_lake(lake, table) == rows_of_history(database, table)


def test_a_lake_has_what_history_has_and_an_export_adds_what_is_new(spark, dsn, database, tmp_path):
    for number, queue in enumerate(sorted(ODD_NAMES)):
        day = f"2031-05-0{1 + number % 3}"
        add_day(database, day)
        end_jobs(database, 3, queue, at=f"{day} 23:59:59.999+00")
    fail_attempts(database, 2)

    first = archive(dsn, tmp_path, spark=spark)
    with open_transaction(dsn) as late:
        end_jobs(late, 1, "late")
        end_jobs(database, 2, "email")
        assert archive(dsn, tmp_path, spark=spark, wait=0).jobs == 0
        late.commit()
    second = archive(dsn, tmp_path, spark=spark)

    assert (first.jobs, first.attempts, second.jobs, second.attempts) == (24, 2, 3, 0)
    assert_same(tmp_path, database)
    queues = {row.queue for row in read_lake(spark, tmp_path).select("queue").distinct().collect()}
    assert queues == {*ODD_NAMES, "email", "late"}


def test_a_busy_history_makes_one_file_for_each_table_and_day(spark, dsn, database, tmp_path):
    for queue in ("one", "two", "three"):
        end_jobs(database, 5, queue)
        fail_attempts(database, 2, queue)

    archive(dsn, tmp_path, spark=spark)

    assert len(files_of_lake(tmp_path)) == 2


def test_a_large_history_is_exported_in_batches(spark, dsn, database, tmp_path, quick):
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
        monkeypatch.setattr(
            "trioboss.pipeline.jobs.archive.Sizes", lambda *given, rows=rows: Sizes(*given, rows)
        )
        archive(dsn, tmp_path / str(number), spark=spark)
        committed.append(count_commits(database))

    of_large_chunks, of_small_ones = (after - before for before, after in pairwise(committed))
    ((blocks,),) = database.execute(
        "select count(distinct (ctid::text::point)[0]) from trioboss.archive"
    ).fetchall()
    assert of_small_ones >= of_large_chunks + blocks / 2


def count_commits(database) -> int:
    """Of all sessions but this one, which is elsewhere: a session reports its commits when it ends."""
    name, deadline = database.info.dbname, time.monotonic() + 30.0
    with psycopg.connect(database.info.dsn, dbname="postgres", autocommit=True) as aside:
        others = "select from pg_stat_activity where datname = %s and pid <> %s"
        while aside.execute(others, [name, database.info.backend_pid]).rowcount:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        counted = "select xact_commit from pg_stat_database where datname = %s"
        return aside.execute(counted, [name]).fetchone()[0]


def test_retention_told_to_hold_keeps_rows_that_are_not_in_the_lake(spark, dsn, database, tmp_path, quick):
    day = "2001-05-05"
    add_day(database, day)
    with open_database(dsn) as pipeline:
        archive(dsn, tmp_path, spark=spark, hold=True)
        end_jobs(database, 3, at=f"{day} 12:00+00")
        assert not may_be_dropped(pipeline, day)

        archive(dsn, tmp_path, spark=spark)
        assert may_be_dropped(pipeline, day)

        fail_attempts(database, 1, at=f"{day} 12:00+00")
        assert not may_be_dropped(pipeline, day)
        archive(dsn, tmp_path, spark=spark, hold=False)
        end_jobs(database, 3, at=f"{day} 12:00+00")
        assert may_be_dropped(pipeline, day)


def test_a_lake_that_is_forgotten_holds_nothing(spark, dsn, database, tmp_path, quick, capsys):
    archive(dsn, tmp_path / "lake", spark=spark, hold=True)

    assert archive_job.main(["--dsn", dsn, "--to", str(tmp_path / "lake"), "--forget", "--nice", "0"]) == 0

    assert "1 lakes forgotten" in capsys.readouterr().out
    assert database.execute("select count(*) from trioboss.lake").fetchone() == (0,)


# -- transactions that stay open


def test_an_export_held_back_names_the_transaction_and_has_an_exit_code_for_it(
    spark, dsn, database, tmp_path, quick, capsys
):
    end_jobs(database, 2)
    with open_transaction(dsn) as late:
        end_jobs(database, 5)
        fail_attempts(database, 1)
        arguments = ["--dsn", dsn, "--to", str(tmp_path), "--wait", "0", "--nice", "0"]
        code, pid = archive_job.main(arguments), late.info.backend_pid
        out, err = capsys.readouterr()

    assert code == 3
    assert out.startswith("2 jobs and 0 attempts exported")
    assert "incomplete: 6 rows cannot be exported until transaction" in err
    assert (
        f"(process {pid}, role postgres, database {database.info.dbname}, idle in transaction, open for"
        in err
    )
    assert archive_job.main(arguments) == 0


def test_an_export_waits_for_transactions_that_end_soon(spark, dsn, database, tmp_path, quick, monkeypatch):
    with open_transaction(dsn) as late:
        end_jobs(database, 5)

        def end_it(*given):
            found = find_held_back(*given)
            if not late.closed:
                late.close()
            return found

        monkeypatch.setattr(archive_job, "find_held_back", end_it)
        exported = archive(dsn, tmp_path, spark=spark, wait=60)

    assert (exported.jobs, exported.held_back) == (5, None)


def test_a_transaction_that_is_younger_than_the_export_holds_nothing_back(dsn, database):
    end_jobs(database, 5)
    with open_database(dsn) as pipeline:
        end = read_horizon(pipeline).next
        with open_transaction(dsn):
            end_jobs(database, 5)
            assert find_held_back(pipeline, end) is None


def test_a_prepared_transaction_is_named():
    with (
        temporary_server(max_prepared_transactions=1) as server,
        trioboss.SyncBoss(server.dsn),
        psycopg.connect(server.dsn, autocommit=True) as database,
        open_database(server.dsn) as pipeline,
    ):
        database.execute("begin; select pg_current_xact_id(); prepare transaction 'forgotten'")
        end_jobs(database, 5)
        found = find_held_back(pipeline, read_horizon(pipeline).next)

    assert "until transaction" in str(found)
    assert "(prepared transaction 'forgotten', open for 0 s)" in str(found)


# -- following


def test_an_export_that_follows_goes_on_until_it_is_told_to_stop(spark, dsn, database, tmp_path, quick):
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


class Ticks:
    """A stop that counts how often an export waits, and does something each time."""

    def __init__(self, limit, act=lambda tick: None):
        self.waited, self._limit, self._act = [], limit, act

    def is_set(self):
        return len(self.waited) >= self._limit

    def wait(self, timeout):
        self.waited.append(timeout)
        self._act(len(self.waited))
        return self.is_set()


def test_an_export_that_follows_makes_one_batch_in_an_interval_however_busy_the_queue_is(
    spark, dsn, database, tmp_path, quick
):
    ticks = Ticks(3, lambda _: [end_jobs(database, 1) for _ in range(5)])

    archive(dsn, tmp_path, spark=spark, follow=True, interval=60.0, stop=ticks)

    assert len(files_of_lake(tmp_path)) == 2
    assert all(50 < seconds <= 60 for seconds in ticks.waited)


def test_an_export_at_rest_runs_a_few_cheap_statements_in_an_interval(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark)
    asked, run = [], Database.run

    def noted(pipeline, name, **values):
        asked.append(name)
        return run(pipeline, name, **values)

    def begin(tick):
        if tick == 1:
            monkeypatch.setattr(Database, "run", noted)

    archive(dsn, tmp_path, spark=spark, follow=True, interval=60.0, stop=Ticks(3, begin))

    at_rest = ["read_horizon", "find_new", "find_new", "read_horizon", "read_horizon"]
    assert asked == at_rest * 2


def test_an_export_that_follows_reports_a_transaction_that_stays_open_once(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    monkeypatch.setattr(archive_job, "_LONG", 0.0)
    said = []
    with open_transaction(dsn):
        end_jobs(database, 5)
        archive(dsn, tmp_path, spark=spark, follow=True, interval=0.0, stop=Ticks(3), progress=said.append)

    assert len(said) == 1
    assert "5 rows cannot be exported until transaction" in str(said[0])
