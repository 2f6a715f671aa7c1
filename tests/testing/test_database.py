"""The helpers for users' tests: servers and databases that leave nothing behind."""

import time

import psycopg
import pytest

from trioboss.postgres.databases import create_database, drop_database, replace_database
from trioboss.testing import temporary_database, temporary_server


@pytest.fixture(scope="module")
def server():
    with temporary_server(log_statement="all", max_connections=23) as server:
        yield server


def query(dsn, statement):
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


def names_of_databases(server):
    return query(server.dsn, "select array_agg(datname::text) from pg_database")


def test_a_temporary_server_takes_settings(server):
    assert query(server.dsn, "show max_connections") == "23"


def test_a_temporary_server_shows_its_log(server):
    query(server.dsn, "select 'a statement to be found'")

    assert "a statement to be found" in server.log.read_text()


def test_a_temporary_server_does_not_wait_for_the_disk(server):
    assert query(server.dsn, "show fsync") == "off"


def test_a_temporary_server_can_listen_on_tcp():
    with temporary_server(tcp=True) as server:
        assert query(server.dsn, "select inet_server_addr() is not null")


def test_a_temporary_server_removes_its_folder():
    with temporary_server() as server:
        assert server.data.exists()

    deadline = time.monotonic() + 20
    while server.home.exists():
        assert time.monotonic() < deadline, "the folder is still there"
        time.sleep(0.01)


def test_a_temporary_database_is_a_new_one(server):
    with temporary_database(server.dsn) as first, temporary_database(server.dsn) as second:
        assert query(first, "select current_database()") != query(second, "select current_database()")


def test_a_temporary_database_is_dropped_at_the_end(server):
    before = names_of_databases(server)

    with temporary_database(server.dsn):
        assert len(names_of_databases(server)) == len(before) + 1

    assert names_of_databases(server) == before


def test_a_temporary_database_is_dropped_after_an_error(server):
    before = names_of_databases(server)

    with pytest.raises(ZeroDivisionError), temporary_database(server.dsn):
        raise ZeroDivisionError

    assert names_of_databases(server) == before


def test_a_temporary_database_is_dropped_although_a_client_is_connected(server):
    before = names_of_databases(server)

    with temporary_database(server.dsn) as dsn:
        forgotten = psycopg.connect(dsn)

    assert names_of_databases(server) == before
    forgotten.close()


def test_a_temporary_database_can_be_a_copy(server):
    create_database(server.dsn, "original")
    query(replace_database(server.dsn, "original"), "create table kept as select 42 as answer")

    with temporary_database(server.dsn, template="original") as dsn:
        assert query(dsn, "select answer from kept") == 42

    drop_database(server.dsn, "original")


def test_a_database_may_have_any_name(server):
    name = """It's a "name"; drop table x --"""

    create_database(server.dsn, name)

    assert query(replace_database(server.dsn, name), "select current_database()") == name
    drop_database(server.dsn, name)
    assert name not in names_of_databases(server)


def test_dropping_a_database_twice_is_no_error(server):
    create_database(server.dsn, "twice")

    drop_database(server.dsn, "twice")
    drop_database(server.dsn, "twice")


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me@here:5433/old?sslmode=disable",
        "host=here port=5433 user=me dbname=old sslmode=disable",
    ],
)
def test_only_the_database_is_replaced_in_a_dsn(dsn):
    parts = psycopg.conninfo.conninfo_to_dict(replace_database(dsn, "new"))

    assert parts == {"host": "here", "port": "5433", "user": "me", "dbname": "new", "sslmode": "disable"}
