"""Lakes that are Delta tables, too, and other engines that read them."""

import attrs
import duckdb
import pandas
import polars
import pytest
from lake_helpers import (
    DAYS,
    Killed,
    assert_delta_follows,
    delta_of,
    fill,
    ids_of_delta,
    kill,
    release_lock,
)
from pipeline_helpers import (
    add_day,
    end_jobs,
    files_of_lake,
    rows_of_history,
)

from trioboss.errors import UsageError
from trioboss.pipeline import archive, compact, delta, read_lake
from trioboss.pipeline import columns as columns_module


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
    end_jobs(database, 1, "eu/orders")
    archive(dsn, tmp_path, spark=spark)

    assert_delta_follows(tmp_path)
    assert "eu/orders" in ids_of_delta(tmp_path, column="queue")
    assert ids_of_delta(tmp_path) == sorted(row[0] for row in rows_of_history(database))
    with pytest.raises(UsageError, match="is a Delta lake, and stays one"):
        archive(dsn, tmp_path, spark=spark, format="parquet")


@pytest.mark.parametrize("name", ["a b", "ä", "a%b", "a#b"])
def test_a_delta_lake_may_have_an_unusual_path(spark, dsn, database, tmp_path, quick, name):
    fill(database)
    archive(dsn, tmp_path / name, spark=spark, format="delta")

    assert ids_of_delta(tmp_path / name) == sorted(row[0] for row in rows_of_history(database))


def test_a_path_that_the_package_deltalake_would_change_is_refused(spark, dsn, tmp_path):
    with pytest.raises(UsageError, match="cannot be a Delta lake, because the package deltalake takes %20"):
        archive(dsn, tmp_path / "a%20b", spark=spark, format="delta")
    assert list(tmp_path.iterdir()) == []


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
