"""Spark's UI shows which step of which command a query belongs to, and how many rows the source has read."""

from contextlib import suppress

import psycopg
import pytest
from pipeline_helpers import end_jobs, fail_attempts, read
from spark_ui import queries_of

from trioboss.pipeline import Source, archive, audit, capacity, compact, erase, load
from trioboss.pipeline.describing import describe_queries

DESCRIPTION = "spark.job.description"


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


class RemoteSession:
    """The part of a session of Spark Connect that has to do with tags."""

    def __init__(self):
        self.tags, self.seen = set(), []

    def addTag(self, tag):
        self.tags.add(tag)
        self.seen.append(set(self.tags))

    def removeTag(self, tag):
        self.tags.remove(tag)


RemoteSession.__module__ = "pyspark.sql.connect.session"


def test_the_page_of_a_query_shows_the_rows_and_bytes_that_the_source_has_read(spark, dsn, database):
    end_jobs(database, 30)

    with describe_queries(spark, "count"):
        assert read(spark, dsn, columns="id,queue").count() == 30

    (query,) = queries_of(spark, "trioboss count")
    (scan,) = [metrics for name, metrics in query.metrics.items() if "BatchScan" in name]
    assert scan["number of output rows"] == "30"
    assert "data returned from Python workers" in scan


def fail_in_steps(spark):
    """The descriptions that Spark gets in three steps, of which the last fails."""
    told = []
    with describe_queries(spark, "all"):
        with describe_queries(spark, "report"):
            told.append(spark.sparkContext.getLocalProperty(DESCRIPTION))
        told.append(spark.sparkContext.getLocalProperty(DESCRIPTION))
        with suppress(ZeroDivisionError), describe_queries(spark, "audit"):
            raise ZeroDivisionError
        told.append(spark.sparkContext.getLocalProperty(DESCRIPTION))
    return told


def test_steps_are_nested_and_the_description_of_the_program_comes_back(spark):
    spark.sparkContext.setJobDescription("my notebook")
    try:
        assert fail_in_steps(spark) == ["trioboss all: report", "trioboss all", "trioboss all"]
        assert spark.sparkContext.getLocalProperty(DESCRIPTION) == "my notebook"
    finally:
        spark.sparkContext.setLocalProperty(DESCRIPTION, None)


def test_a_client_of_spark_connect_tags_its_queries():
    remote = RemoteSession()

    with describe_queries(remote, "load a,b"), describe_queries(remote, "read the columns"):
        pass

    assert remote.seen == [
        {"trioboss load a b"},
        {"trioboss load a b", "trioboss load a b: read the columns"},
    ]
    assert remote.tags == set()


@pytest.mark.soak
def test_every_query_of_a_command_names_the_command_and_the_step(spark, dsn, database, sync_boss, tmp_path):
    sync_boss.create_queue("orders")
    known = len(queries_of(spark, ""))
    lake = tmp_path / "lake"
    for first in (0, 20):
        end_jobs(database, 20, first=first)
        fail_attempts(database, 1)
        archive(dsn, lake, spark=spark)
    compact(dsn, lake, spark=spark)
    erase(dsn, "email", key="key1", lake=lake, spark=spark)
    (tmp_path / "rows.csv").write_text("n\n1\n2\n")
    load([str(tmp_path / "rows.csv")], "orders", dsn, spark=spark)
    audit(Source(dsn), spark=spark)
    capacity(Source(dsn), spark=spark)

    described = [query.description for query in queries_of(spark, "")][known:]

    assert set(described) == {
        "trioboss archive: export jobs",
        "trioboss archive: export attempts",
        "trioboss compact",
        "trioboss erase: find",
        "trioboss erase: rewrite",
        "trioboss erase: search for what is left",
        "trioboss load orders",
        "trioboss audit",
        "trioboss capacity",
    }
