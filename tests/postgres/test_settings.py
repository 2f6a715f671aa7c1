"""The connection parameters and settings of our sessions."""

import psycopg
import pytest
from postgres_helpers import scalar
from psycopg.conninfo import make_conninfo

from trioboss.errors import UsageError
from trioboss.postgres import Connection, open_connection
from trioboss.postgres.dsn import parse_dsn, session_parameters
from trioboss.postgres.settings import SESSION_SETTINGS
from trioboss.postgres.wire import BoundStatement
from trioboss.sql import Statement


async def setting(connection, name):
    return await scalar(connection, "select current_setting(%s)", [name])


@pytest.mark.parametrize("wanted", SESSION_SETTINGS, ids=lambda wanted: wanted.name)
async def test_our_sessions_have_our_settings(conn, wanted):
    assert wanted.value == await setting(conn, wanted.name)
    assert wanted.reason


async def test_our_sessions_have_our_name_and_encoding(conn):
    assert await setting(conn, "application_name") == "trioboss"
    assert await setting(conn, "client_encoding") == "UTF8"


async def test_a_setting_in_the_dsn_overrides_ours(server_dsn):
    options = "-c jit=on -c timezone=Asia/Tokyo --plan-cache-mode=auto"
    dsn = make_conninfo(server_dsn, application_name="mine", options=options)
    async with open_connection(dsn) as connection:
        assert await setting(connection, "application_name") == "mine"
        assert await setting(connection, "jit") == "on"
        assert await setting(connection, "TimeZone") == "Asia/Tokyo"
        assert await setting(connection, "plan_cache_mode") == "auto"


async def test_the_encoding_cannot_be_overridden(server_dsn):
    async with open_connection(make_conninfo(server_dsn, client_encoding="latin1")) as connection:
        assert await setting(connection, "client_encoding") == "UTF8"


@pytest.mark.parametrize(("before", "after"), [("off", "on"), ("local", "local"), ("on", "on")])
async def test_synchronous_commit_is_only_ever_raised_from_off(server_dsn, admin, before, after):
    await admin.execute(f"alter role postgres set synchronous_commit = '{before}'")
    try:
        async with open_connection(server_dsn) as connection:
            assert after == await setting(connection, "synchronous_commit")
    finally:
        await admin.execute("alter role postgres reset synchronous_commit")


async def test_the_callers_settings_override_ours(server_dsn):
    mine = {"synchronous_commit": "off", "timezone": "Europe/Berlin", "work_mem": "8MB"}
    async with open_connection(server_dsn, settings=mine) as connection:
        assert await setting(connection, "synchronous_commit") == "off"
        assert await setting(connection, "TimeZone") == "Europe/Berlin"
        assert await setting(connection, "work_mem") == "8MB"


async def test_an_unknown_setting_is_an_error_and_closes_the_connection(server_dsn, admin):
    dsn = make_conninfo(server_dsn, application_name="closed")
    with pytest.raises(psycopg.errors.UndefinedObject):
        async with open_connection(dsn, settings={"no_such": "1"}):
            pass

    count = "select count(*)::int from pg_stat_activity where application_name = 'closed'"
    while await scalar(admin, count):  # the backend ends a moment after its client
        pass


async def test_settings_survive_a_rollback(server_dsn):
    async with await Connection.connect(server_dsn, settings={"work_mem": "8MB"}) as connection:
        await connection.execute("select 1")
        await connection.rollback()

        assert await setting(connection, "work_mem") == "8MB"


async def test_connect_without_settings_changes_nothing(server_dsn):
    async with await Connection.connect(server_dsn) as connection:
        assert await setting(connection, "jit") == "on"


async def test_behind_a_pooler_only_the_settings_that_it_tracks_are_applied(server_dsn):
    async with open_connection(server_dsn, prepare=False) as connection:
        assert await setting(connection, "TimeZone") == "UTC"
        assert await setting(connection, "jit") == "on"


async def test_one_keepalive_setting_in_the_dsn_disables_all_of_ours():
    assert session_parameters("")["keepalives_idle"] == 10

    mine = session_parameters("keepalives_idle=77")

    assert mine["keepalives_idle"] == "77"
    assert "keepalives_count" not in mine
    assert "tcp_user_timeout" not in mine


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://user:sec/ret@host/db",
        "host=h password=sec ret",
        "postgresql://user:sec%ret@host/db",
    ],
)
async def test_the_error_for_a_dsn_that_cannot_be_parsed_does_not_quote_it(dsn):
    with pytest.raises(UsageError) as caught:
        parse_dsn(dsn)

    assert "sec" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


async def test_a_session_that_cannot_be_reset_is_closed(server_dsn):
    """A short statement_timeout that a user has left in it may end the reset, too."""
    async with open_connection(server_dsn) as connection:
        once = BoundStatement(Statement("once", "create temp table once ()", ()))
        await connection.begin_session(once)

        await connection.reset_session()

        assert connection.closed
