"""Our transactions on blocking connections of psycopg, and sessions of our own."""

import secrets
import socket
import threading
from contextlib import closing, contextmanager

import psycopg
import pytest
from postgres_helpers import ADD, ECHO, ONE, as_int, bind
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import dict_row
from psycopg.types.string import StrDumper

from trioboss.errors import DatabaseUnavailable, UsageError
from trioboss.postgres import run_blocking
from trioboss.postgres.blocking import open_blocking
from trioboss.sql import Statement

READY = b"Z\x00\x00\x00\x05I"  # ReadyForQuery: the end of the login


@pytest.fixture
def own(server_dsn):
    """A connection of our own, in autocommit."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def theirs(server_dsn):
    """A caller's connection, as psycopg opens it."""
    connection = psycopg.connect(server_dsn)
    yield connection
    connection.close()


@pytest.fixture
def insert(own):
    """A statement that inserts a number into a table for this test."""
    name = "b_" + secrets.token_hex(6)
    own.execute(f"create table {name} (i int)")
    yield Statement(name, f"insert into {name} values ($1)", ("i",))
    own.execute(f"drop table {name}")


def stored(connection, insert) -> list[int]:
    return [i for (i,) in connection.execute(f"select i from {insert.name} order by i").fetchall()]


@pytest.mark.parametrize("prepare", [True, False])
def test_the_shape_of_the_results_is_the_same(own, prepare):
    results = run_blocking(own, [[bind(ADD, 1, 2), bind(ADD, 3, 4)], [], [bind(ONE)]], prepare=prepare)

    assert [[as_int(result) for result in transaction] for transaction in results] == [[3, 7], [], [1]]
    assert results[0][0].fformat(0) == 1


def test_none_is_sent_and_returned_as_null(own):
    ((result,),) = run_blocking(own, [[bind(ECHO, None)]], prepare=True)

    assert result.get_value(0, 0) is None


def test_in_autocommit_each_transaction_is_atomic_and_commits_by_itself(own, insert):
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        run_blocking(
            own,
            [[bind(insert, 1)], [bind(insert, 2), bind(insert, "x")], [bind(insert, 3)]],
            prepare=True,
        )

    assert stored(own, insert) == [1]


@pytest.mark.parametrize(("prepare", "names"), [(True, 1), (False, 0)])
def test_only_our_own_connections_prepare(own, prepare, names):
    for n in range(8):
        run_blocking(own, [[bind(ADD, n, 1)]], prepare=prepare)

    count = "select count(*) from pg_prepared_statements where statement like '%int4%'"
    assert (names,) == own.execute(count).fetchone()


@pytest.mark.parametrize("command", ["discard all", "alter table {} add column extra int"])
def test_stale_statements_are_prepared_again(server_dsn, own, insert, command):
    everything = Statement("everything", f"select * from {insert.name}", ())
    transactions = [[bind(insert, 1), bind(everything)]]
    run_blocking(own, transactions, prepare=True)
    with own.cursor() as cursor:
        # Not through psycopg's own methods: psycopg must not notice it.
        cursor.connection.pgconn.exec_(command.format(insert.name).encode())

    run_blocking(own, transactions, prepare=True)

    assert stored(own, insert) == [1, 1]


def test_a_callers_transaction_is_joined(own, theirs, insert):
    theirs.execute("select 1")
    run_blocking(theirs, [[bind(insert, 1), bind(insert, 2)], [bind(insert, 3)]], prepare=False)
    assert stored(own, insert) == []
    theirs.commit()

    assert stored(own, insert) == [1, 2, 3]


def test_the_implicit_transaction_of_psycopg_is_begun(own, theirs, insert):
    run_blocking(theirs, [[bind(insert, 1)]], prepare=False)
    assert theirs.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    theirs.rollback()
    run_blocking(theirs, [[bind(insert, 2), bind(insert, 3)]], prepare=False)
    assert theirs.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
    theirs.rollback()

    assert stored(own, insert) == []
    assert not theirs.autocommit


def test_a_callers_transaction_block_in_autocommit_is_joined(own, server_dsn, insert):
    with psycopg.connect(server_dsn, autocommit=True) as theirs, theirs.transaction(force_rollback=True):
        run_blocking(theirs, [[bind(insert, 1)], [bind(insert, 2)]], prepare=False)

    assert stored(own, insert) == []


def test_inside_a_callers_pipeline_the_transactions_are_part_of_it(own, theirs, insert):
    with theirs.pipeline():
        theirs.execute("select 1")
        ((result,),) = run_blocking(theirs, [[bind(ADD, 1, 2)]], prepare=False)
        run_blocking(theirs, [[bind(insert, 1)]], prepare=False)
        cursor = theirs.execute("select 2")
        assert cursor.fetchone() == (2,)
    theirs.commit()

    assert as_int(result) == 3
    assert stored(own, insert) == [1]


def test_a_callers_row_factory_and_adapters_do_not_matter(theirs):
    theirs.row_factory = dict_row
    theirs.adapters.register_dumper(str, StrDumper)
    theirs.adapters.register_dumper(bytes, StrDumper)

    ((result,),) = run_blocking(theirs, [[bind(ADD, 1, 2)]], prepare=False)

    assert as_int(result) == 3


def test_a_connection_in_another_encoding_is_refused(server_dsn):
    latin = psycopg.connect(server_dsn, client_encoding="latin1")
    with latin, pytest.raises(UsageError, match="LATIN1"):
        run_blocking(latin, [[bind(ECHO, "ä")]], prepare=False)


@pytest.fixture
def broken_pipelines(monkeypatch):
    def fail(self):
        raise psycopg.errors.AdminShutdown("gone")
        yield

    monkeypatch.setattr(psycopg.Pipeline, "_exit_gen", fail)


def test_a_callers_connection_whose_pipeline_breaks_is_not_closed(theirs, broken_pipelines):
    with pytest.raises(psycopg.OperationalError):
        run_blocking(theirs, [[bind(ONE), bind(ONE)]], prepare=False)
    assert not theirs.closed


def test_the_error_that_breaks_a_pipeline_is_the_one_that_is_raised(own, broken_pipelines):
    with pytest.raises(psycopg.errors.AdminShutdown, match="gone"):
        run_blocking(own, [[bind(ONE), bind(ONE)]], prepare=True)
    assert own.closed


@contextmanager
def connection_lost_after_login(dsn: str):
    """Give the dsn of a proxy that closes the connection at the first message after the login."""
    found = conninfo_to_dict(dsn)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        client, _ = listener.accept()
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{found['host']}/.s.PGSQL.{found['port']}")
        with closing(client), closing(server):
            answer = b""
            while not answer.endswith(READY):
                server.sendall(client.recv(65536))
                client.sendall(answer := server.recv(65536))
            client.recv(65536)

    thread = threading.Thread(target=serve)
    thread.start()
    port = listener.getsockname()[1]
    with closing(listener):
        yield make_conninfo(dsn, host="127.0.0.1", port=port, sslmode="disable", gssencmode="disable")
        thread.join()


def test_a_connection_lost_while_its_session_is_set_up_raises_unavailable(server_dsn):
    with connection_lost_after_login(server_dsn) as dsn, pytest.raises(DatabaseUnavailable):
        open_blocking(dsn)
