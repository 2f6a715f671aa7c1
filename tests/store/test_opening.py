"""Opening a boss: defaults of its queues, connections by a function of the program, parameters of libpq."""

import contextlib
from datetime import timedelta

import psycopg
import pytest
import trio
from psycopg.rows import dict_row
from store_helpers import open_quiet_boss

import trioboss
from trioboss import UsageError
from trioboss.postgres.blocking import is_connected
from trioboss.testing import temporary_database


async def test_queues_get_the_defaults_of_their_boss(dsn):
    defaults = {"retry_limit": 0, "expire_in": timedelta(minutes=1), "policy": "short"}
    async with open_quiet_boss(dsn, defaults=defaults) as boss:
        await boss.create_queue("q", retry_limit=5)
        queue = await boss.get_queue("q")
    with trioboss.SyncBoss(dsn, migrate=False, defaults={"retry_limit": 9}) as blocking:
        blocking.create_queue("p")
        assert blocking.get_queue("p").retry_limit == 9

    assert (queue.retry_limit, queue.expire_in, queue.policy) == (5, 60.0, "short")
    with pytest.raises(UsageError, match=r"^retry_limit: "):
        trioboss.SyncBoss(dsn, defaults={"retry_limit": -1})
    with pytest.raises(TypeError, match="defaults: unexpected option 'retries'"):
        trioboss.SyncBoss(dsn, defaults={"retries": 1})


async def test_connections_are_opened_by_the_function_of_the_program(dsn):
    opened = []

    async def connect(conninfo, **arguments):
        opened.append(conninfo)
        return await trioboss.Connection.connect(conninfo, application_name="mine", **arguments)

    async with open_quiet_boss(dsn, connect=connect) as boss:
        await boss.create_queue("q")
        async with boss.transaction() as conn:
            names = await (await conn.execute("show application_name")).fetchone()
        with psycopg.connect(dsn) as other:
            counted = other.execute(
                "select count(*) from pg_stat_activity"
                " where application_name = 'trioboss' and datname = current_database()"
            ).fetchone()

    assert names == ("mine",)
    assert len(opened) >= 3  # of the schema, of the program, of the listener
    assert counted == (0,)


@pytest.mark.parametrize(
    ("broken", "problem"), [(lambda: 5, "not a trioboss.Connection"), (lambda: 1 // 0, "ZeroDivisionError")]
)
async def test_a_function_that_opens_nothing_is_named(dsn, broken, problem):
    async def connect(conninfo, **arguments):
        return broken()

    with pytest.raises(trioboss.TriobossError, match=f"connect: .*{problem}"):
        async with open_quiet_boss(dsn, connect=connect, connect_wait=timedelta(milliseconds=50)):
            pass


@pytest.mark.parametrize(
    ("connect", "problem"),
    [
        (5, "5 is not a function that opens a connection"),
        (lambda conninfo: None, "got an unexpected keyword argument 'autocommit'"),
        (lambda **arguments: None, "too many positional arguments"),
    ],
)
async def test_a_function_that_cannot_open_a_connection_is_refused(dsn, connect, problem):
    with pytest.raises(UsageError, match=f"^connect: {problem}"):
        async with open_quiet_boss(dsn, connect=connect):
            pass
    with pytest.raises(UsageError, match=f"^connect: {problem}"):
        trioboss.SyncBoss(dsn, connect=connect)


async def test_a_function_that_opens_connections_of_another_kind_is_told_which_it_needs(dsn):
    # The first is of psycopg, which does not know the arguments; the second does not wait.
    for connect, problem in (
        (
            psycopg.AsyncConnection.connect,
            'connection option "prepare": connect by trioboss.Connection.connect',
        ),
        (lambda conninfo, **arguments: None, "returned NoneType: it is not an async function"),
    ):
        with trio.fail_after(60), pytest.raises(UsageError, match=f"^connect: .*{problem}"):
            async with open_quiet_boss(dsn, connect=connect):
                pass

    def connect_with_more(conninfo, **arguments):
        return psycopg.connect(conninfo, prepare=True, **arguments)

    with pytest.raises(UsageError, match=r'^connect: .*"prepare": connect by psycopg\.Connection\.connect'):
        trioboss.SyncBoss(dsn, connect=connect_with_more).send("q")


def test_a_sync_boss_opens_connections_by_the_function_of_the_program(dsn):
    opened = []

    def connect(conninfo, **arguments):
        opened.append(conninfo)
        return psycopg.connect(conninfo, application_name="mine", row_factory=dict_row, **arguments)

    with trioboss.SyncBoss(dsn, connect=connect) as boss:
        boss.create_queue("q")
        with boss.transaction() as conn:
            assert conn.execute("show application_name").fetchone() == {"application_name": "mine"}
        before = len(opened)
        with psycopg.connect(dsn, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'mine'"
            )
        while all(map(is_connected, boss._idle)):
            pass  # until the end of the session has arrived here
        boss.send("q", 1)

        assert len(opened) == before + 1
        assert [job.data for job in boss.fetch("q")] == [1]


@pytest.mark.parametrize(
    ("broken", "error", "problem"),
    [
        (lambda: 5, UsageError, "connect: returned int, not a psycopg.Connection"),
        (lambda: 1 // 0, trioboss.DatabaseUnavailable, "connect: ZeroDivisionError"),
    ],
)
def test_a_function_of_a_sync_boss_that_opens_nothing_is_named(dsn, broken, error, problem):
    with pytest.raises(error, match=problem):
        trioboss.SyncBoss(dsn, connect=lambda conninfo, **arguments: broken()).send("q")


def test_a_sync_boss_needs_connections_in_autocommit(dsn):
    boss = trioboss.SyncBoss(dsn, connect=lambda conninfo, **arguments: psycopg.connect(conninfo))

    with pytest.raises(UsageError, match="connect: the connection is not in autocommit"):
        boss.send("q")


@pytest.mark.parametrize("migrate", [True, False])
def test_a_sync_boss_that_could_not_be_opened_is_opened_by_the_next_call(dsn, migrate):
    is_up = False

    def connect(conninfo, **arguments):
        if not is_up:
            raise ConnectionError("the server does not run yet")
        return psycopg.connect(conninfo, **arguments)

    with contextlib.closing(trioboss.SyncBoss(dsn, migrate=migrate, connect=connect)) as boss:
        for _ in range(2):
            with pytest.raises(trioboss.DatabaseUnavailable):
                boss.create_queue("q")
        is_up = True
        boss.create_queue("q")
        assert boss.send("q") is not None


def test_a_sync_boss_can_be_used_once_the_schema_is_there(server_dsn):
    with (
        temporary_database(server_dsn) as dsn,
        contextlib.closing(trioboss.SyncBoss(dsn, migrate=False)) as boss,
    ):
        with pytest.raises(trioboss.SchemaOutOfDate):
            boss.create_queue("q")
        with trioboss.SyncBoss(dsn):
            pass
        boss.create_queue("q")


async def test_parameters_of_libpq_override_the_dsn(dsn):
    async with open_quiet_boss(dsn, application_name="mine") as boss:
        async with boss.transaction() as conn:
            assert await (await conn.execute("show application_name")).fetchone() == ("mine",)
        assert "application_name=mine" in boss.dsn
    with pytest.raises(TypeError, match="'ssl': in trioboss it is sslmode"):
        trioboss.SyncBoss(dsn, ssl=True)
    with pytest.raises(TypeError, match="'database': in trioboss it is dbname"):
        async with trioboss.open_boss(dsn, database="x"):
            pass
    with pytest.raises(TypeError, match="'retry_limit': it is for queues: give it in defaults="):
        trioboss.SyncBoss(dsn, retry_limit=1)
    with pytest.raises(TypeError, match="unexpected option 'hots': did you mean 'host'"):
        trioboss.SyncBoss(dsn, hots="x")
