"""A DataFrame gives the same answers however often it is used, and in whatever query: those of the table as it is."""

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from pipeline_helpers import end_jobs, read
from query_shapes import COLUMNS, Delete, Insert, collected, steps
from small_spark import jdbc_jar

import trioboss
from trioboss.pipeline.columns import TABLES
from trioboss.testing import temporary_server


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        end_jobs(connection, 6, "email")
        end_jobs(connection, 4, "other")
        yield connection


@pytest.fixture
def history(spark, dsn, database):
    return read(spark, dsn)


def test_a_filter_of_one_query_does_not_leak_into_the_next(history):
    assert history.where("queue = 'email'").count() == 6

    assert history.count() == 10


def test_a_view_shows_all_rows_after_a_query_with_a_filter(spark, history):
    history.createOrReplaceTempView("history")
    spark.sql("select * from history where queue = 'other'").collect()

    assert spark.sql("select * from history").count() == 10


def test_an_anti_join_with_a_filtered_self_leaves_the_others(history):
    email = history.where("queue = 'email'").select("id")

    assert history.join(email, "id", "left_anti").count() == 4


def test_a_union_of_two_filters_has_the_rows_of_both(history):
    both = history.where("queue = 'email'").union(history.where("queue = 'other'"))

    assert both.count() == 10


def test_rows_that_are_new_appear_in_a_frame_that_was_counted_before(history, database):
    before = history.count()
    end_jobs(database, 5)

    assert (before, history.count()) == (10, 15)


def known_rows(spark, dsn):
    """The rows as psycopg reads them, in a DataFrame of their own: what any query is to be compared with."""
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "select id::text, queue, outcome::text, priority, key, seq from trioboss.archive"
        ).fetchall()
    return spark.createDataFrame(rows, TABLES["archive"].schema(COLUMNS))


def compare(spark, dsn, steps, make_known):
    """Run all queries on one DataFrame and on one that is known to be right, and change the table between them."""
    with psycopg.connect(dsn, autocommit=True) as database:
        database.execute("delete from trioboss.archive")
        end_jobs(database, 12, "email")
        end_jobs(database, 7, "other", first=12, state="failed")
        ours = read(spark, dsn, numPartitions="3", chunkRows="1")
        ours.createOrReplaceTempView("reused")
        view, added = spark.table("reused"), 100
        for step in steps:
            if isinstance(step, Insert):
                end_jobs(database, step.count, step.queue, first=added)
                added += step.count
            elif isinstance(step, Delete):
                database.execute("delete from trioboss.archive where seq %% 4 = %s", [step.remainder])
            else:
                known = make_known(spark, dsn)
                assert collected(step.build(ours, view)) == collected(step.build(known, known))


@settings(max_examples=settings().max_examples // 20, suppress_health_check=list(HealthCheck))
@given(steps=steps())
def test_every_shape_of_query_has_the_rows_of_the_table_as_it_is(spark, dsn, steps):
    compare(spark, dsn, steps, known_rows)


@pytest.fixture(scope="module")
def tcp_dsn():
    """A migrated database that Java can reach: its driver does not speak through Unix sockets."""
    with temporary_server(tcp=True) as server, trioboss.SyncBoss(server.dsn):
        yield server.dsn


def jdbc_rows(spark, dsn):
    """The rows as Spark's own source reads them."""
    with psycopg.connect(dsn) as connection:
        info = connection.info
        host, port, name, user, password = info.host, info.port, info.dbname, info.user, info.password
    query = "select id::text, queue, outcome::text as state, priority, key as singleton_key, seq from trioboss.archive"
    options = {
        "url": f"jdbc:postgresql://{host}:{port}/{name}",
        "user": user,
        "password": password,
        "dbtable": f"({query}) archive",
        "driver": "org.postgresql.Driver",
    }
    return spark.read.format("jdbc").options(**options).load()


@pytest.mark.soak
@settings(suppress_health_check=list(HealthCheck))
@given(steps=steps())
def test_every_shape_of_query_has_the_rows_that_sparks_jdbc_source_gives(spark, tcp_dsn, steps):
    if jdbc_jar() is None:
        pytest.skip("no JDBC driver: install Debian's libpostgresql-jdbc-java, or set TRIOBOSS_JDBC_JAR")
    compare(spark, tcp_dsn, steps, jdbc_rows)
