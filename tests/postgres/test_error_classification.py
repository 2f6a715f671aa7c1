"""Which errors of psycopg are translated into ours."""

import psycopg
import pytest
import trio
from postgres_helpers import scalar
from psycopg.conninfo import make_conninfo

from trioboss.errors import DatabaseUnavailable, OutcomeUnknown
from trioboss.postgres import open_connection, translate_errors
from trioboss.postgres.errors import is_refusal, unavailable

TERMINATE = "select pg_terminate_backend(pg_backend_pid())"


async def test_the_loss_of_a_connection_means_the_database_is_unavailable(conn):
    with pytest.raises(DatabaseUnavailable, match="terminating connection") as caught, translate_errors(conn):
        await conn.execute(TERMINATE)

    assert not isinstance(caught.value, OutcomeUnknown)
    assert isinstance(caught.value.__cause__, psycopg.errors.AdminShutdown)


async def test_the_loss_of_a_connection_during_a_commit_leaves_the_outcome_unknown(conn):
    with pytest.raises(OutcomeUnknown), translate_errors(conn, commits=True):
        await conn.execute(TERMINATE)


async def test_on_a_connection_that_was_lost_before_the_outcome_is_known(conn):
    await conn.close()

    with pytest.raises(DatabaseUnavailable) as caught, translate_errors(conn, commits=True):
        await conn.execute("select 1")

    assert not isinstance(caught.value, OutcomeUnknown)


async def test_an_error_of_a_statement_is_not_translated(conn):
    with pytest.raises(psycopg.errors.UndefinedTable), translate_errors(conn, commits=True):
        await conn.execute("select * from no_such_table")


async def test_an_operational_error_on_a_good_connection_is_not_translated(conn):
    await conn.execute("set statement_timeout = 1")

    with pytest.raises(psycopg.errors.QueryCanceled), translate_errors(conn, commits=True):
        await conn.execute("select pg_sleep(10)")


async def test_an_exception_that_is_not_psycopgs_is_not_translated(conn):
    with pytest.raises(ZeroDivisionError), translate_errors(conn):
        raise ZeroDivisionError


def test_errors_of_a_blocking_connection_are_translated_in_the_same_way(server_dsn):
    connection = psycopg.connect(server_dsn, autocommit=True)

    with connection, pytest.raises(OutcomeUnknown), translate_errors(connection, commits=True):
        connection.execute(TERMINATE)


async def test_a_server_that_shuts_down_is_recognized_by_its_sqlstate_even_without_a_connection():
    with pytest.raises(DatabaseUnavailable), translate_errors():
        raise psycopg.errors.CannotConnectNow("the database system is starting up")


@pytest.mark.parametrize(
    "message",
    [
        'connection failed: FATAL:  password authentication failed for user "me"',
        'FATAL:  no pg_hba.conf entry for host "1.2.3.4", user "me", database "d", no encryption',
        'FATAL:  role "me" does not exist',
        'FATAL:  role "me" is not permitted to log in',
        'FATAL:  database "d" does not exist',
        'FATAL:  permission denied for database "d"',
        "fe_sendauth: no password supplied",
        'FATAL:  Peer authentication failed for user "me"',
    ],
)
def test_a_refusal_is_recognized_by_its_message(message):
    assert is_refusal(psycopg.OperationalError(message))


@pytest.mark.parametrize(
    "message",
    [
        'connection to server at "127.0.0.1", port 1 failed: Connection refused',
        "FATAL:  the database system is starting up",
        "FATAL:  sorry, too many clients already",
        "FATAL:  terminating connection due to administrator command",
        'connection to server on socket "/tmp/.s.PGSQL.1" failed: No such file or directory',
    ],
)
def test_an_error_that_a_retry_may_overcome_is_not_a_refusal(message):
    assert not is_refusal(psycopg.OperationalError(message))


@pytest.fixture
async def guarded_dsn(server_dsn, admin):
    """The dsn of a role that needs a password."""
    hba = trio.Path(await scalar(admin, "show hba_file"))
    before = await hba.read_text()
    await admin.execute("create role guarded login password 'sesame'")
    await hba.write_text("local all guarded scram-sha-256\n" + before)
    await admin.execute("select pg_reload_conf()")
    yield make_conninfo(server_dsn, user="guarded", passfile=f"{hba.parent}/none")
    await hba.write_text(before)
    await admin.execute("select pg_reload_conf()")
    await admin.execute("drop role guarded")


async def refusal(dsn):
    with trio.fail_after(60):
        while True:
            try:
                async with open_connection(dsn):
                    pass  # the server has not reloaded pg_hba.conf yet
            except psycopg.OperationalError as error:
                return error


async def test_a_missing_password_is_recognized_by_its_sqlstate(guarded_dsn):
    error = await refusal(guarded_dsn)

    assert error.sqlstate == "28P01"
    assert is_refusal(error)


async def test_a_wrong_password_is_a_refusal_whose_message_does_not_contain_it(guarded_dsn):
    error = await refusal(make_conninfo(guarded_dsn, password="mellon"))

    assert is_refusal(error)
    assert "mellon" not in str(unavailable(error))
    async with open_connection(make_conninfo(guarded_dsn, password="sesame")) as connection:
        assert await scalar(connection, "select current_user::text") == "guarded"
