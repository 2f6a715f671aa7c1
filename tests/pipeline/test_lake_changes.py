"""Changes of a lake: compaction, erasure, retention, Delta. Nothing is lost or doubled, whatever is killed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import attrs
import duckdb
import pandas
import polars
import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pipeline_helpers import (
    Steps,
    add_day,
    end_jobs,
    fail_attempts,
    files_of_lake,
    rewrite_without_spark,
    rows_of_history,
    rows_of_lake,
    write_without_spark,
)

from trioboss.cli import main
from trioboss.errors import UsageError
from trioboss.pipeline import archive, compact, delta, erase, read_lake, rewriting
from trioboss.pipeline import columns as columns_module
from trioboss.pipeline.export import ExportIncomplete, LakeExport
from trioboss.pipeline.files import Files
from trioboss.pipeline.manifest import LakeFile, Manifest
from trioboss.pipeline.rewriting import find_old, find_small

DAYS = ("2031-05-01", "2031-05-02", "2031-05-03")


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def quick(monkeypatch):
    """Batches that are written without Spark."""
    monkeypatch.setattr(LakeExport, "_write", write_without_spark)
    monkeypatch.setattr(rewriting, "_write", rewrite_without_spark)


class Killed(BaseException):
    """Ends a command on the spot: nothing in the product catches it."""


def kill():
    raise Killed


def fill(database, n=2):
    """Some jobs in each of three days, and attempts."""
    for day in DAYS:
        end_jobs(database, n, at=f"{day} 12:00+00")
    fail_attempts(database, 1)


def assert_same(lake, database):
    for table in ("archive", "attempt"):
        assert rows_of_lake(lake, table) == rows_of_history(database, table)


def delta_of(lake, folder="jobs", **options):
    return DeltaTable(str(Path(lake, folder)), **options)


def ids_of_delta(lake, folder="jobs", column="id", **options):
    return sorted(delta_of(lake, folder, **options).to_pyarrow_table(columns=[column])[column].to_pylist())


def assert_delta_follows(lake):
    """The Delta tables have exactly the files of the manifest."""
    files = files_of_lake(lake)
    for folder in ("jobs", "attempts"):
        actions = pa.table(delta_of(lake, folder).get_add_actions(flatten=True))
        found = [f"{folder}/{path}" for path in actions["path"].to_pylist()]
        assert sorted(found) == sorted(path for path in files if path.startswith(f"{folder}/"))


def release_lock(database):
    database.execute(
        "select pg_terminate_backend(pid, 5000) from pg_locks l join pg_database d on d.oid = l.database"
        " where locktype = 'advisory' and datname = current_database() and pid <> pg_backend_pid()"
    )


# -- choices


def lake_file(day, size, folder="jobs"):
    return LakeFile(f"{folder}/date={day}/{uuid4()}.parquet", 1, size)


def test_small_files_of_a_day_are_joined_and_large_or_single_ones_are_not():
    small = [lake_file("2031-05-01", 10), lake_file("2031-05-01", 49)]
    others = [
        lake_file("2031-05-01", 50),
        lake_file("2031-05-02", 10),
        lake_file("2031-05-03", 10, "attempts"),
        lake_file("2031-05-03", 10),
    ]

    assert find_small([*others, *small], 100) == small
    assert find_small([*others, *small], 100, at_least=3) == []


def test_days_before_the_first_that_is_kept_are_old():
    old, new = lake_file("2031-05-01", 10), lake_file("2031-05-02", 10)

    assert find_old([new, old], datetime(2031, 5, 2).date()) == [old]


# -- compaction


def test_compaction_leaves_one_file_a_day_with_the_same_rows(spark, dsn, database, tmp_path):
    for day in DAYS:
        add_day(database, day)
    for _ in range(3):
        fill(database)
        archive(dsn, tmp_path, spark=spark)
    before = sorted(map(tuple, read_lake(spark, tmp_path).drop("date").collect()), key=str)

    done = compact(dsn, tmp_path, spark=spark)

    assert (done.joined, done.made, done.deleted) == (12, 4, 0)
    assert_same(tmp_path, database)
    assert len(files_of_lake(tmp_path)) == 4
    assert sorted(map(tuple, read_lake(spark, tmp_path).drop("date").collect()), key=str) == before
    assert len(list(Path(tmp_path).rglob("part-*.parquet"))) == 16  # for readers that have begun

    again = compact(dsn, tmp_path, spark=spark, keep_removed=0)

    assert (again.joined, again.deleted) == (0, 12)
    assert len(list(Path(tmp_path).rglob("part-*.parquet"))) == 4
    archive(dsn, tmp_path, spark=spark)
    assert_same(tmp_path, database)


@pytest.mark.soak
def test_a_compaction_killed_before_any_step_loses_and_doubles_nothing(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    killed_at, n = [], 0
    while n == 0 or n in killed_at:
        n += 1
        for _ in range(2):
            end_jobs(database, 1)
            archive(dsn, tmp_path, spark=spark, format="delta")
        with monkeypatch.context() as patches:
            Steps(patches, n, kill)
            try:
                compact(dsn, tmp_path, spark=spark)
            except Killed:
                killed_at.append(n)
        release_lock(database)
        assert_same(tmp_path, database)  # even before another command repairs anything
        compact(dsn, tmp_path, spark=spark)
        assert_same(tmp_path, database)
        assert_delta_follows(tmp_path)
    assert len(killed_at) >= 10


def test_a_compaction_that_loses_rows_is_refused(spark, dsn, database, tmp_path, quick, monkeypatch):
    for _ in range(2):
        fill(database)
        archive(dsn, tmp_path, spark=spark)
    monkeypatch.setattr(rewriting, "_write", lambda *_: 0)

    with pytest.raises(ExportIncomplete):
        compact(dsn, tmp_path, spark=spark)

    assert_same(tmp_path, database)


@pytest.mark.soak
def test_an_export_that_compacts_joins_the_files_of_a_day_once_there_are_many(
    spark, dsn, database, tmp_path, quick
):
    for _ in range(17):
        end_jobs(database, 1)
        archive(dsn, tmp_path, spark=spark, compact=True)

    assert len(files_of_lake(tmp_path)) == 2
    assert_same(tmp_path, database)


def test_old_days_are_dropped_and_files_are_deleted_after_the_time_for_readers(
    spark, dsn, database, tmp_path, quick
):
    today, long_ago = datetime.now(UTC), datetime.now(UTC) - timedelta(days=40)
    for day in (today, long_ago):
        add_day(database, f"{day:%Y-%m-%d}")
        end_jobs(database, 3, at=f"{day:%Y-%m-%d} 00:00+00")
    archive(dsn, tmp_path, spark=spark, format="delta")

    done = compact(dsn, tmp_path, spark=spark, keep_days=30)

    assert (done.dropped, done.deleted) == (1, 0)
    assert {row[3] for row in rows_of_lake(tmp_path)} == {f"{today:%Y-%m-%d}"}
    assert len(ids_of_delta(tmp_path)) == 3
    assert compact(dsn, tmp_path, spark=spark, keep_removed=0).deleted == 1
    # Rows that were dropped are not exported again.
    archive(dsn, tmp_path, spark=spark)
    assert len(rows_of_lake(tmp_path)) == 3


# -- Delta


@pytest.mark.soak
def test_a_delta_lake_has_each_batch_once_wherever_an_export_is_killed(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    killed_at, n = [], 0
    while n == 0 or n in killed_at:
        n += 1
        end_jobs(database, 1)
        fail_attempts(database, 1)
        with monkeypatch.context() as patches:
            Steps(patches, n, kill)
            try:
                archive(dsn, tmp_path, spark=spark, format="delta")
            except Killed:
                killed_at.append(n)
        release_lock(database)
        archive(dsn, tmp_path, spark=spark, format="delta")
        assert_delta_follows(tmp_path)
        assert ids_of_delta(tmp_path) == sorted(row[0] for row in rows_of_history(database))
    assert len(killed_at) >= 10
    assert ids_of_delta(tmp_path, "attempts", "job_id") == sorted(
        row[0] for row in rows_of_history(database, "attempt")
    )


def test_a_commit_of_delta_that_was_the_last_thing_before_a_kill_is_not_repeated(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    fill(database)
    commit = delta._commit

    def commit_and_kill(*given):
        commit(*given)
        kill()

    with monkeypatch.context() as patches:
        patches.setattr(delta, "_commit", commit_and_kill)
        with pytest.raises(Killed):
            archive(dsn, tmp_path, spark=spark, format="delta")
    release_lock(database)
    archive(dsn, tmp_path, spark=spark)
    archive(dsn, tmp_path, spark=spark)

    assert ids_of_delta(tmp_path) == sorted(row[0] for row in rows_of_history(database))
    batches = [entry["trioboss"]["batch"] for entry in delta_of(tmp_path).history() if "trioboss" in entry]
    assert batches == [1]


def test_a_parquet_lake_becomes_a_delta_lake_and_stays_one(spark, dsn, database, tmp_path, quick):
    fill(database)
    archive(dsn, tmp_path, spark=spark)
    fill(database)

    archive(dsn, tmp_path, spark=spark, format="delta")
    fill(database)
    archive(dsn, tmp_path, spark=spark)

    assert_delta_follows(tmp_path)
    assert ids_of_delta(tmp_path) == sorted(row[0] for row in rows_of_history(database))
    with pytest.raises(UsageError, match="is a Delta lake, and stays one"):
        archive(dsn, tmp_path, spark=spark, format="parquet")


def test_a_version_of_a_delta_lake_can_be_read_until_its_files_are_deleted(
    spark, dsn, database, tmp_path, quick
):
    for _ in range(2):
        fill(database)
        archive(dsn, tmp_path, spark=spark, format="delta")
    compact(dsn, tmp_path, spark=spark)
    newest = delta_of(tmp_path).version()

    counts = [read_lake(spark, tmp_path, version=newest - back).count() for back in range(3)]

    assert counts == [12, 12, 6]
    assert len(ids_of_delta(tmp_path, version=newest - 2)) == 6
    with pytest.raises(UsageError, match="version: jobs has no version 99"):
        read_lake(spark, tmp_path, version=99)


def test_a_parquet_lake_has_no_versions(spark, dsn, database, tmp_path, quick):
    fill(database)
    archive(dsn, tmp_path, spark=spark)

    with pytest.raises(UsageError, match="only a Delta lake has versions"):
        read_lake(spark, tmp_path, version=1)


def test_a_column_of_a_later_version_is_null_in_older_files(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    fill(database)
    table = columns_module.TABLES["archive"]
    older = attrs.evolve(table, columns=tuple(c for c in table.columns if c.name != "priority"))
    with monkeypatch.context() as patches:
        patches.setitem(columns_module.TABLES, "archive", older)
        archive(dsn, tmp_path, spark=spark, format="delta")
    assert "priority" not in {field.name for field in delta_of(tmp_path).schema().fields}
    fill(database)

    archive(dsn, tmp_path, spark=spark)

    assert "priority" in {field.name for field in delta_of(tmp_path).schema().fields}
    assert read_lake(spark, tmp_path).where("priority is null").count() == 12


# -- other engines


def test_duckdb_polars_and_pandas_read_a_lake_as_spark_does(spark, dsn, database, tmp_path):
    for day in DAYS:
        add_day(database, day)
    fill(database)
    archive(dsn, tmp_path, spark=spark, format="delta")
    expected = sorted(tuple(row) for row in read_lake(spark, tmp_path).selectExpr(
        "id", "queue", "state", "attempt", "unix_micros(completed_on)", "cast(date as string)").collect())  # fmt: skip

    files = [str(tmp_path / path) for path in files_of_lake(tmp_path) if path.startswith("jobs/")]
    by_duckdb = duckdb.sql(
        "select id, queue, state, attempt, epoch_us(completed_on), date::varchar"
        f" from read_parquet({files!r}, hive_partitioning = true)"
    ).fetchall()
    chosen = ["id", "queue", "state", "attempt", polars.col("completed_on").dt.epoch("us"), "date"]
    by_polars, by_delta = (
        frame.select(*chosen).with_columns(polars.col("date").cast(polars.String)).rows()
        for frame in (
            polars.read_parquet(files, hive_partitioning=True, hive_schema={"date": polars.Date}),
            polars.read_delta(str(tmp_path / "jobs")),
        )
    )

    by_pandas = pandas.concat(map(pandas.read_parquet, files))

    assert sorted(by_pandas["id"]) == [row[0] for row in expected]
    assert sorted(by_duckdb) == sorted(by_polars) == sorted(by_delta) == expected


# -- erasure


def names_of(proof):
    return {tuple(name) for name in proof["jobs"]}


def erased(arguments, capsys):
    assert main(["pipeline", "erase", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def bytes_of(lake):
    return b"".join(path.read_bytes() for path in Path(lake).rglob("*") if path.is_file())


def send_and_fail(boss, queue, data, **options):
    """A job that fails for good, and its dead letter job, which completes."""
    id = boss.send(queue, data, retry_limit=0, **options)
    (job,) = boss.fetch(queue)
    boss.fail(queue, job, {"message": f"no {data}"})
    (copy,) = boss.fetch("dead")
    boss.complete("dead", copy)
    return str(id), str(copy.id)


def test_an_erased_job_is_gone_from_the_lake_and_postgres_with_all_copies_of_its_data(
    spark, dsn, database, tmp_path, sync_boss, capsys
):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("email", dead_letter="dead")
    id, copy = send_and_fail(sync_boss, "email", "secret-one")
    other, other_copy = send_and_fail(sync_boss, "email", "kept-one")
    archive(dsn, tmp_path, spark=spark, format="delta")
    later, later_copy = send_and_fail(sync_boss, "email", "kept-two")
    archive(dsn, tmp_path, spark=spark)
    compact(dsn, tmp_path, spark=spark)  # leaves files with the row behind, for readers that have begun

    proof = erased(["--dsn", dsn, "--lake", str(tmp_path), "--queue", "email", "--id", id], capsys)

    assert names_of(proof) == {("email", id), ("dead", copy)}
    assert (proof["live"], proof["ended"], proof["attempts"]) == (0, 2, 1)
    assert (proof["rows_in_lake"], proof["rows_left"]) == (3, 0)
    assert id.encode() not in bytes_of(tmp_path)
    assert {row[0] for row in rows_of_lake(tmp_path)} == {other, other_copy, later, later_copy}
    assert_same(tmp_path, database)
    assert_delta_follows(tmp_path)
    assert ids_of_delta(tmp_path) == sorted([other, other_copy, later, later_copy])
    again = erased(["--dsn", dsn, "--lake", str(tmp_path), "--queue", "email", "--id", id], capsys)
    assert (again["jobs"], again["rows_in_lake"], again["ended"]) == ([], 0, 0)


@pytest.mark.soak
def test_all_jobs_of_a_key_are_erased_live_and_ended(spark, dsn, database, tmp_path, sync_boss, capsys):
    sync_boss.create_queue("dead")
    sync_boss.create_queue("email", dead_letter="dead")
    ended, copy = send_and_fail(sync_boss, "email", "x", singleton_key="ann")
    kept, _ = send_and_fail(sync_boss, "email", "y", singleton_key="bob")
    archive(dsn, tmp_path, spark=spark)
    live = str(sync_boss.send("email", "z", singleton_key="ann"))

    proof = erased(["--dsn", dsn, "--lake", str(tmp_path), "--queue", "email", "--key", "ann"], capsys)

    assert names_of(proof) == {("email", ended), ("dead", copy), ("email", live)}
    assert (proof["live"], proof["ended"], proof["attempts"], proof["rows_in_lake"]) == (1, 2, 1, 3)
    assert (kept,) in database.execute("select id::text from trioboss.archive").fetchall()
    assert_same(tmp_path, database)


@pytest.fixture
def erase_killed_at(spark, dsn, database, tmp_path, monkeypatch, quick):
    """Erases a job, killed before a step, and again. Spark does not write: files with rows of its queue are dropped."""

    def keep_others(export, table, files, staging, target, keep):
        kept = [file for file in files if "gone" not in queues_in(tmp_path, file.path)]
        return rewrite_without_spark(export, table, kept, staging, target, keep)

    def erase_killed(n):
        was_killed = False
        for queue in ("kept", "gone"):
            end_jobs(database, 1, queue)
            archive(dsn, tmp_path, spark=spark)
        ((id,),) = database.execute("select id::text from trioboss.archive where queue = 'gone'").fetchall()
        with monkeypatch.context() as patches:
            Steps(patches, n, kill)
            try:
                erase(dsn, "gone", ids=[id], lake=tmp_path, spark=spark)
            except Killed:
                was_killed = True
        release_lock(database)
        assert erase(dsn, "gone", ids=[id], lake=tmp_path, spark=spark).rows_left == 0
        assert_same(tmp_path, database)
        assert id.encode() not in bytes_of(tmp_path)
        return was_killed

    monkeypatch.setattr(rewriting, "_write", keep_others)
    return erase_killed


@pytest.mark.parametrize("n", [4, pytest.param(7, marks=pytest.mark.soak)])
def test_an_erasure_that_was_killed_and_is_run_again_is_complete(erase_killed_at, n):
    assert erase_killed_at(n)


@pytest.mark.soak
def test_an_erasure_killed_before_any_step_and_run_again_is_complete(erase_killed_at):
    n = 1
    while erase_killed_at(n):
        n += 1
    assert n > 7


def queues_in(lake, path):
    return set(polars.read_parquet(Path(lake, path))["queue"])


def test_jobs_are_erased_in_a_database_without_a_lake(dsn, database):
    end_jobs(database, 3)
    ids = [str(id) for (id,) in database.execute("select id from trioboss.archive")]

    done = erase(dsn, "email", ids=ids[:2])

    assert (done.ended, done.batch, done.rows_left) == (2, None, 0)
    assert database.execute("select count(*) from trioboss.archive").fetchone() == (1,)


def test_an_erasure_needs_to_know_which_jobs(dsn):
    with pytest.raises(UsageError, match="name the jobs"):
        erase(dsn, "email")


def test_removed_files_are_forgotten_by_a_checkpoint_once_they_are_deleted(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    monkeypatch.setattr("trioboss.pipeline.manifest._CHECKPOINT_BATCHES", 2)
    for _ in range(3):
        end_jobs(database, 1)
        archive(dsn, tmp_path, spark=spark)
    compact(dsn, tmp_path, spark=spark)
    manifest = Manifest(Files(spark, tmp_path))
    assert len(manifest.contents().removed) == 3
    compact(dsn, tmp_path, spark=spark, keep_removed=0)
    for _ in range(2):
        end_jobs(database, 1)
        archive(dsn, tmp_path, spark=spark)

    assert manifest.contents().removed == ()
    assert_same(tmp_path, database)
