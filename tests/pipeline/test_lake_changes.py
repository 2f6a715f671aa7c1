"""Compaction and retention of a lake: nothing is lost or doubled, whatever is killed."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import duckdb
import pandas
import polars
import pytest
from lake_helpers import (
    DAYS,
    assert_same,
    fill,
    ids_of_delta,
)
from pipeline_helpers import (
    add_day,
    end_jobs,
    files_of_lake,
    rows_of_lake,
)

from trioboss.errors import UsageError
from trioboss.pipeline import archive, compact, list_files, read_lake, rewriting
from trioboss.pipeline.export import ExportIncomplete
from trioboss.pipeline.files import Files
from trioboss.pipeline.manifest import LakeFile, Manifest
from trioboss.pipeline.rewriting import find_old, find_small

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
    for _ in range(2):
        fill(database)
        archive(dsn, tmp_path, spark=spark)
    before = sorted(map(tuple, read_lake(spark, tmp_path).drop("date").collect()), key=str)

    done = compact(dsn, tmp_path, spark=spark)

    assert (done.joined, done.made, done.deleted) == (8, 4, 0)
    assert_same(tmp_path, database)
    assert len(files_of_lake(tmp_path)) == 4
    assert sorted(map(tuple, read_lake(spark, tmp_path).drop("date").collect()), key=str) == before
    archive(dsn, tmp_path, spark=spark)
    assert_same(tmp_path, database)


def test_engines_that_read_all_files_of_a_folder_see_each_row_once_after_a_compaction(
    dsn, database, tmp_path, spark, quick
):
    for _ in range(3):
        fill(database)
        archive(dsn, tmp_path, spark=spark)
    n = len(rows_of_lake(tmp_path))

    compact(dsn, tmp_path, spark=spark)

    pattern = f"{tmp_path}/jobs/**/*.parquet"
    assert duckdb.sql(f"select count(*) from read_parquet('{pattern}')").fetchall() == [(n,)]
    assert polars.scan_parquet(pattern).select(polars.len()).collect().item() == n
    assert len(pandas.read_parquet(tmp_path / "jobs")) == n
    assert spark.read.parquet(f"{tmp_path}/jobs").count() == n


def test_the_list_of_a_lakes_files_needs_no_spark_and_has_each_row_once(
    dsn, database, tmp_path, spark, quick
):
    for _ in range(2):
        fill(database)
        archive(dsn, tmp_path, spark=spark, format="delta")
    compact(dsn, tmp_path, spark=spark)  # leaves the files that it replaced

    for table, columns in (("archive", "id"), ("attempt", "job_id")):
        found = polars.read_parquet(list_files(tmp_path, table))[columns].to_list()
        assert sorted(found) == [row[0] for row in rows_of_lake(tmp_path, table)]
    with pytest.raises(UsageError, match="there is no lake here"):
        list_files(tmp_path / "nowhere")


def test_only_a_delta_lake_keeps_replaced_files(dsn, tmp_path, spark, quick):
    archive(dsn, tmp_path, spark=spark)

    with pytest.raises(UsageError, match="keep-removed: only a Delta lake keeps files that were replaced"):
        compact(dsn, tmp_path, spark=spark, keep_removed=1)


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
