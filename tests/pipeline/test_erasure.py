"""Erasure: the jobs of a person are gone from the lake and from Postgres, whatever is killed."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from erasure_helpers import before_each_deletion, send_and_fail
from lake_helpers import (
    assert_delta_follows,
    assert_same,
    ids_of_delta,
)
from lake_steps import NoSpark, do_without_spark
from pipeline_helpers import (
    add_day,
    end_jobs,
    rows_of_lake,
)

from trioboss.cli import main
from trioboss.pipeline import archive, compact, erase
from trioboss.pipeline.export import ExportFenced


def names_of(proof):
    return {tuple(name) for name in proof["jobs"]}


def erased(arguments, capsys):
    assert main(["pipeline", "erase", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def bytes_of(lake):
    return b"".join(path.read_bytes() for path in Path(lake).rglob("*") if path.is_file())


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


def test_a_row_that_only_removed_files_of_a_delta_lake_still_have_is_erased(
    dsn, database, tmp_path, monkeypatch
):
    do_without_spark(monkeypatch)
    day = f"{datetime.now(UTC) - timedelta(days=40):%Y-%m-%d}"
    add_day(database, day)
    end_jobs(database, 1, at=f"{day} 12:00+00")
    ((id,),) = database.execute("select id::text from trioboss.archive").fetchall()
    archive(dsn, tmp_path, spark=NoSpark(), format="delta")
    compact(dsn, tmp_path, spark=NoSpark(), keep_days=30)
    database.execute("delete from trioboss.archive")
    assert id.encode() in bytes_of(tmp_path)

    proof = erase(dsn, "email", ids=[id], lake=tmp_path, spark=NoSpark())

    assert proof.files_deleted == 1
    assert id.encode() not in bytes_of(tmp_path)


def test_the_proof_lists_the_lakes_that_were_not_searched(dsn, database, tmp_path, monkeypatch, capsys):
    do_without_spark(monkeypatch)
    monkeypatch.setattr("trioboss.pipeline.arguments.get_session", lambda *_: NoSpark())
    for name in ("one", "two"):
        archive(dsn, tmp_path / name, spark=NoSpark())

    which = ["--lake", str(tmp_path / "one"), "--queue", "email", "--id", str(uuid4())]
    assert main(["pipeline", "erase", "--dsn", dsn, *which]) == 0

    printed = capsys.readouterr()
    assert json.loads(printed.out)["other_lakes"] == [f"file:{tmp_path}/two"]
    assert f"not searched: file:{tmp_path}/two: erase there, too" in printed.err


def test_a_copy_in_postgres_of_a_job_that_only_the_lake_has_is_erased(
    spark, dsn, database, tmp_path, failing
):
    id, copy = send_and_fail(failing, "email", "x", singleton_key="ann")
    archive(dsn, tmp_path, spark=spark)
    database.execute("delete from trioboss.archive where id = %s", [id])
    database.execute("delete from trioboss.attempt")
    database.execute("update trioboss.archive set key = null")

    done = erase(dsn, "email", key="ann", lake=tmp_path, spark=spark)

    assert done.jobs == sorted([("email", id), ("dead", copy)])
    assert database.execute("select count(*) from trioboss.archive").fetchone() == (0,)


def test_an_erasure_whose_lake_another_export_takes_proves_nothing(dsn, database, tmp_path, monkeypatch):
    do_without_spark(monkeypatch)
    archive(dsn, tmp_path, spark=NoSpark())
    end_jobs(database, 1)
    ((id,),) = database.execute("select id::text from trioboss.archive").fetchall()
    before_each_deletion(monkeypatch, lambda: database.execute("update trioboss.lake set token = token + 1"))

    with pytest.raises(ExportFenced):
        erase(dsn, "email", ids=[id], lake=tmp_path, spark=NoSpark())
