"""Reports of histories that a real queue has written, from the database and from a lake."""

import json
from contextlib import redirect_stdout
from datetime import timedelta
from io import StringIO

import psycopg
import pytest
from spark_ui import queries_of

from trioboss.api.sync import SyncBoss
from trioboss.errors import UsageError
from trioboss.pipeline import archive
from trioboss.pipeline.history import Source
from trioboss.pipeline.jobs import report as report_job
from trioboss.testing import temporary_database


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    return tmp_path_factory.mktemp("report") / "lake"


@pytest.fixture(scope="module")
def lived(spark, server_dsn, template, lake):
    """A database with a job that completed, one that failed and was retried, and one that was cancelled and resumed.

    Each of their ends is in the lake.
    """
    with temporary_database(server_dsn, template) as dsn, SyncBoss(dsn, migrate=False) as boss:
        boss.create_queue("q", retry_limit=0)
        plain, retried, resumed = (boss.send("q", {"n": n}) for n in range(3))
        boss.cancel("q", resumed)
        for job in boss.fetch("q", batch_size=2):
            boss.complete("q", job) if job.id == plain else boss.fail("q", job, ValueError("no 1"))
        archive(dsn, lake, spark=spark)
        boss.retry("q", retried)
        boss.resume("q", resumed)
        for job in boss.fetch("q", batch_size=2):
            boss.complete("q", job)
        archive(dsn, lake, spark=spark)
        yield dsn


@pytest.fixture(scope="module")
def printed(spark, lived, tmp_path_factory):
    """The report of the database, as the command makes it: the rows, the folder, and what is printed."""
    folder, made, out = tmp_path_factory.mktemp("database"), [], StringIO()
    with pytest.MonkeyPatch.context() as patches, redirect_stdout(out):
        make = report_job.report
        patches.setattr(
            report_job, "report", lambda *given, **more: made.append(make(*given, **more)) or made[0]
        )
        assert report_job.main(["--dsn", lived, "--out", str(folder), "--json"]) == 0
    return made[0], folder, json.loads(out.getvalue())


@pytest.fixture(scope="module")
def of_database(printed):
    return printed[0]


def rounded(rows):
    """Spark adds up seconds in the order in which rows arrive, and the last digit of a sum depends on it."""
    return [
        {name: round(value, 9) if isinstance(value, float) else value for name, value in row.items()}
        for row in rows
    ]


def test_a_job_counts_once_from_the_database_and_from_a_lake_however_often_it_ended(
    spark, lived, lake, of_database, tmp_path
):
    of_lake = report_job.report(Source(lake=lake), tmp_path, spark=spark)

    for report in (of_database, of_lake):
        (queue,) = report.queues
        assert (queue["jobs"], queue["completed"], queue["failed"], queue["cancelled"]) == (3, 3, 0, 0)
    assert rounded(of_lake.queues) == rounded(of_database.queues)
    assert rounded(of_lake.points) == rounded(of_database.points)


@pytest.mark.parametrize("before", [pytest.param("the first ends", marks=pytest.mark.soak), "the last ends"])
def test_the_report_of_a_period_and_of_that_before_count_the_same_jobs_from_the_database_and_from_a_lake(
    spark, lived, lake, tmp_path, before
):
    """Of the three jobs, two ended again after all had ended for the first time: half of the time lies between."""
    with psycopg.connect(lived) as connection:
        ((first, last),) = connection.execute(
            "select min(least(completed_on, created_on)), max(completed_on) from trioboss.archive"
        ).fetchall()
    middle = first + (last - first) / 2
    period = {
        "the first ends": {"since": first - timedelta(hours=1), "until": middle},
        "the last ends": {"since": middle, "until": last + timedelta(microseconds=1)},
    }[before]

    of_database, of_lake = (
        report_job.report(source, tmp_path, spark=spark)
        for source in (Source(dsn=lived, **period), Source(lake=lake, **period))
    )

    assert counts(of_lake.queues) == counts(of_database.queues)
    assert rounded(of_lake.points) == rounded(of_database.points)
    assert rounded(of_lake.before.queues) == rounded(of_database.before.queues)
    assert of_lake.before.length == period["until"] - period["since"]
    if before == "the last ends":
        assert counts(of_lake.queues) == [(2, 0, 0)]
        assert counts(of_lake.before.queues) == [(1, 0, 0)]
        assert (tmp_path / "before" / "_SUCCESS").exists()


def counts(queues):
    return [(queue["jobs"], queue["failed"], queue["cancelled"]) for queue in queues]


def test_a_report_without_a_beginning_is_compared_with_nothing(of_database):
    assert of_database.before is None


def test_the_queries_of_a_report_name_their_tables_in_the_ui_of_spark(spark, of_database):
    described = {query.description for query in queries_of(spark, "trioboss report")}

    tables = {"hours", "queues", "errors", "keys", "slowest", "dead_letters", "page"}
    assert {f"trioboss report: {table}" for table in tables} <= described


def test_the_report_of_a_database_has_its_queues_and_errors(printed):
    _, folder, out = printed

    assert [queue["queue"] for queue in out["queues"]] == ["q"]
    assert [error["fingerprint"] for error in out["errors"]] == ["ValueError: no <n>"]
    assert "ValueError: no &lt;n&gt;" in (folder / "report.html").read_text("utf-8")
    assert (folder / "hours" / "_SUCCESS").exists()


def test_a_folder_that_no_report_has_written_is_not_replaced(spark, lived, tmp_path):
    key = tmp_path / "keys" / "id_rsa"
    key.parent.mkdir()
    key.write_text("x")

    with pytest.raises(UsageError, match=r"out: .*/keys is there and is no table of a report"):
        report_job.report(Source(dsn=lived), tmp_path, spark=spark)

    assert key.read_text() == "x"
    assert [path.name for path in tmp_path.iterdir()] == ["keys"]
