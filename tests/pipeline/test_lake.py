"""The lake: each row once and no batch in part, whatever is killed, overtaken, deleted or restored."""

import attrs
import psycopg
import pytest
from pipeline_helpers import (
    end_jobs,
    files_of_lake,
    rows_of_history,
    rows_of_lake,
    write_without_spark,
)

import trioboss
from trioboss.cli import main
from trioboss.errors import UsageError
from trioboss.pipeline import archive, read_lake
from trioboss.pipeline.database import open_database
from trioboss.pipeline.export import ExportIncomplete, FilesLost, LakeExport
from trioboss.pipeline.files import Files
from trioboss.pipeline.jobs.archive import forget_lake
from trioboss.pipeline.jobs.synth import synth
from trioboss.pipeline.manifest import Manifest

HAS_LOCK = """
    select pid from pg_locks l join pg_database d on d.oid = l.database
    where l.locktype = 'advisory' and d.datname = current_database() and pid <> pg_backend_pid()
"""


@pytest.fixture
def quick(monkeypatch):
    """Batches that are written without Spark."""
    monkeypatch.setattr(LakeExport, "_write", write_without_spark)


def release_lock(database):
    """End the session that has the lake's lock, as a lost network does; the export does not notice at once."""
    database.execute(f"select pg_terminate_backend(pid, 5000) from ({HAS_LOCK}) l")


def assert_same(lake, database):
    for table in ("archive", "attempt"):
        assert rows_of_lake(lake, table) == rows_of_history(database, table)


def exported_to(database):
    return database.execute("select exported::text::bigint from trioboss.lake").fetchone()[0]


def test_an_export_whose_files_vanish_before_the_commit_fails_and_marks_nothing(
    spark, dsn, database, tmp_path, monkeypatch
):
    end_jobs(database, 10)

    def lossy(*given):
        written = write_without_spark(*given)
        next((tmp_path / "_staging").rglob("*.parquet")).unlink()
        return written

    monkeypatch.setattr(LakeExport, "_write", lossy)
    with pytest.raises(ExportIncomplete, match="the files have 0 of 10 jobs, 0 of 0 attempts: export again"):
        archive(dsn, tmp_path, spark=spark)
    assert exported_to(database) == 0

    monkeypatch.setattr(LakeExport, "_write", write_without_spark)
    archive(dsn, tmp_path, spark=spark)
    assert_same(tmp_path, database)


def test_spark_and_the_footers_count_the_same_rows_and_a_lost_file_is_noticed(
    spark, dsn, database, tmp_path, monkeypatch
):
    end_jobs(database, 10)
    write = LakeExport._write

    def lossy(export, *given):
        written = write(export, *given)
        assert written == 10
        next((tmp_path / "_staging").rglob("*.parquet")).unlink()
        return written

    monkeypatch.setattr(LakeExport, "_write", lossy)
    with pytest.raises(ExportIncomplete):
        archive(dsn, tmp_path, spark=spark)


def test_a_committed_file_that_vanishes_is_an_error_each_time_and_holds_retention(
    spark, dsn, database, tmp_path, quick, monkeypatch
):
    end_jobs(database, 10)
    move = Files.move

    def vanish(files, source, target):
        if source.endswith(".parquet"):
            files.delete(source)
        move(files, source, target)

    monkeypatch.setattr(Files, "move", vanish)
    with pytest.raises(FilesLost, match=r"is gone, and .* is not there either"):
        archive(dsn, tmp_path, spark=spark)
    monkeypatch.setattr(Files, "move", move)
    release_lock(database)

    with pytest.raises(FilesLost, match=f"restore it and export again, or drop .*{tmp_path} --drop-pending"):
        archive(dsn, tmp_path, spark=spark)
    assert exported_to(database) == 0
    assert files_of_lake(tmp_path) == []

    release_lock(database)
    assert (
        main(["pipeline", "archive", "--dsn", dsn, "--to", str(tmp_path), "--drop-pending", "--nice", "0"])
        == 0
    )
    assert_same(tmp_path, database)


def test_dropping_a_pending_batch_where_there_is_none_changes_nothing(spark, dsn, database, tmp_path, quick):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark)

    assert archive(dsn, tmp_path, spark=spark, drop_pending=True).jobs == 0
    assert_same(tmp_path, database)


def test_readers_see_a_batch_as_a_whole_or_not_at_all(spark, dsn, database, tmp_path, monkeypatch):
    for day in ("2031-05-03", "2031-05-04", "2031-05-05"):
        end_jobs(database, 5, at=f"{day} 12:00+00")
    seen, move = [], Files.move

    def noted(files, source, target):
        move(files, source, target)
        if Files(spark, tmp_path).exists("_manifest/0000000001.lake.json"):
            seen.append(read_lake(spark, tmp_path).count())

    monkeypatch.setattr(Files, "move", noted)
    archive(dsn, tmp_path, spark=spark)

    assert seen == [0, 0, 0, 0, 15]


def test_a_reader_misses_a_file_that_was_deleted_from_the_lake(spark, dsn, database, tmp_path, quick):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark)
    (tmp_path / files_of_lake(tmp_path)[0]).unlink()

    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        read_lake(spark, tmp_path).count()


def test_checkpoints_keep_the_manifest_small(spark, dsn, database, tmp_path, quick, monkeypatch):
    monkeypatch.setattr("trioboss.pipeline.manifest._CHECKPOINT_BATCHES", 3)
    for _ in range(8):
        end_jobs(database, 1)
        archive(dsn, tmp_path, spark=spark)

    names = sorted(path.name for path in (tmp_path / "_manifest").iterdir() if not path.name.startswith("."))
    assert names == [
        "0000000001.lake.json", "0000000006.checkpoint.json", "0000000007.json", "0000000008.json",
    ]  # fmt: skip
    assert len(files_of_lake(tmp_path)) == 8
    assert [file.path for file in Manifest(Files(spark, tmp_path)).contents().files] == files_of_lake(
        tmp_path
    )
    assert_same(tmp_path, database)


def test_a_reader_that_meets_a_new_checkpoint_reads_that(spark, dsn, database, tmp_path, quick, monkeypatch):
    monkeypatch.setattr("trioboss.pipeline.manifest._CHECKPOINT_BATCHES", 2)
    end_jobs(database, 1)
    archive(dsn, tmp_path, spark=spark)
    manifest, list_entries = Manifest(Files(spark, tmp_path)), Manifest._list
    calls = []

    def late(self):
        found = list_entries(self)
        if not calls:
            calls.append(found)
            end_jobs(database, 1)
            with monkeypatch.context() as patches:
                patches.setattr(Manifest, "_list", list_entries)
                archive(dsn, tmp_path, spark=spark)
        return found

    monkeypatch.setattr(Manifest, "_list", late)

    assert manifest.contents().batch == 2


# -- whose lake it is


def test_a_second_export_to_the_same_lake_is_turned_away(spark, dsn, database, tmp_path, quick):
    archive(dsn, tmp_path, spark=spark)
    identity = Manifest(Files(spark, tmp_path)).identity()
    with open_database(dsn) as other:
        other.run("lock_lake", lake=identity.id)

        with pytest.raises(UsageError, match="another export to this lake is running"):
            archive(dsn, tmp_path, spark=spark)


def test_a_lake_takes_the_history_of_one_schema_of_one_database(
    spark, dsn, server_dsn, template, database, tmp_path, quick
):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark, hold=True)
    with trioboss.SyncBoss(dsn, schema="other"):
        pass

    with pytest.raises(UsageError, match=r"has the history of schema trioboss .*, and this is schema other"):
        archive(dsn, tmp_path, spark=spark, schema="other")
    with trioboss.testing.temporary_database(server_dsn, template) as elsewhere:
        with pytest.raises(UsageError, match="the lake has the history of schema trioboss of database"):
            archive(elsewhere, tmp_path, spark=spark)
        with pytest.raises(UsageError, match="cannot be adopted, because this database has never exported"):
            archive(elsewhere, tmp_path, spark=spark, adopt=True)
        with psycopg.connect(elsewhere) as other:
            assert other.execute("select count(*) from trioboss.lake").fetchone() == (0,)
    assert_same(tmp_path, database)


def test_a_lake_is_adopted_after_an_upgrade_of_the_server(spark, dsn, database, tmp_path, quick):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark)
    manifest = Manifest(Files(spark, tmp_path))
    identity = manifest.identity()
    manifest.change(attrs.evolve(identity, origin=attrs.evolve(identity.origin, server="1")))
    end_jobs(database, 5)

    with pytest.raises(UsageError, match="adopt this one if the server was upgraded by pg_upgrade"):
        archive(dsn, tmp_path, spark=spark)
    assert archive(dsn, tmp_path, spark=spark, adopt=True).jobs == 5
    assert archive(dsn, tmp_path, spark=spark).jobs == 0


def test_paths_through_links_are_one_lake(spark, dsn, database, tmp_path, quick):
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    end_jobs(database, 5)
    archive(dsn, tmp_path / "lake", spark=spark)
    end_jobs(database, 5)
    archive(dsn, tmp_path / "link", spark=spark)

    assert database.execute("select count(*) from trioboss.lake").fetchone() == (1,)
    assert_same(tmp_path / "lake", database)


@pytest.mark.parametrize("way", ["link", "lake/", "lake/../lake"])
def test_a_lake_is_forgotten_by_any_path_to_it(spark, dsn, database, tmp_path, quick, way):
    (tmp_path / "lake").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "lake")
    archive(dsn, tmp_path / "lake", spark=spark)

    assert forget_lake(dsn, f"{tmp_path}/{way}", spark=spark) == 1


def test_a_folder_that_is_no_lake_is_refused(spark, dsn, database, tmp_path, quick):
    (tmp_path / "jobs").mkdir()
    with pytest.raises(UsageError, match="has jobs in it, but is not a lake"):
        archive(dsn, tmp_path, spark=spark)
    synth(0, tmp_path / "synthetic", spark=spark)
    with pytest.raises(UsageError, match="has the history of no database: it was made by `synth`"):
        archive(dsn, tmp_path / "synthetic", spark=spark)
    with pytest.raises(UsageError, match="there is no lake here"):
        read_lake(spark, tmp_path)


@pytest.mark.parametrize(
    ("restore", "problem"),
    [
        (
            "update trioboss.lake set batch = 0, exported = '0'",
            "the lake has 1 batches, and the database has 0 of them",
        ),
        (None, "the lake has 0 batches, and the database has 1 of them"),
    ],
)
def test_a_backup_of_either_side_is_noticed(spark, dsn, database, tmp_path, quick, restore, problem):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark)
    if restore is not None:
        database.execute(restore)
    else:
        (tmp_path / "_manifest" / "0000000001.json").unlink()

    with pytest.raises(UsageError, match=problem):
        archive(dsn, tmp_path, spark=spark)


def test_a_lake_ahead_of_the_database_is_noticed(spark, dsn, database, tmp_path, quick):
    end_jobs(database, 5)
    archive(dsn, tmp_path, spark=spark)
    entry = tmp_path / "_manifest" / "0000000001.json"
    (tmp_path / "_manifest" / ".0000000001.json.crc").unlink()
    entry.write_text(entry.read_text().replace('"end": ', '"end": 9999999'))

    with pytest.raises(UsageError, match="export it to a new lake"):
        archive(dsn, tmp_path, spark=spark)
