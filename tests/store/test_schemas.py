"""Several schemas in one database never touch each other."""

import psycopg
import pytest
import trio
from store_helpers import fail_for_good, open_quiet_boss, receive, take, take_all

import trioboss
from trioboss.postgres.databases import drop_database, replace_database
from trioboss.testing import temporary_database

NAMES = ["Jobs", "jobs", "_select", "a" * 50]


@pytest.fixture(scope="module")
def shared_dsn(server_dsn):
    """A database with several schemas, some of which differ in case alone."""
    with temporary_database(server_dsn) as dsn:
        for name in NAMES:
            with trioboss.SyncBoss(dsn, schema=name):
                pass
        yield dsn


@pytest.fixture
async def bosses(shared_dsn):
    """A boss for each of two schemas that differ in case alone."""
    async with (
        open_quiet_boss(shared_dsn, schema="Jobs") as large,
        open_quiet_boss(shared_dsn, schema="jobs") as small,
    ):
        yield large, small
        for boss in (large, small):
            await boss.clear_storage()
            for queue in await boss.get_queues():
                await boss.delete_queue(queue.name)


@pytest.mark.parametrize("schema", NAMES)
async def test_a_schema_of_any_name_works(shared_dsn, schema):
    async with open_quiet_boss(shared_dsn, schema=schema) as boss:
        assert boss.schema == schema
        await boss.create_queue("own", policy="key_strict_fifo", partition=True)
        failed = await fail_for_good(boss, "own", singleton_key="k")
        await boss.retry("own", failed.id)
        await boss.insert("own", [{"singleton_key": "k"}])

        job = await take(boss, "own")
        await boss.complete("own", job)

        assert job.id == failed.id
        assert (await boss.get_queue_stats("own")).queued == 1
        await boss.delete_queue("own")


async def test_queues_of_one_schema_are_not_those_of_another(bosses):
    large, small = bosses
    await large.create_queue("q", policy="short")

    assert await small.get_queues() == []
    await small.create_queue("q", policy="singleton")
    assert (await large.get_queue("q")).policy == "short"
    await small.delete_queue("q")
    assert await large.get_queue("q") is not None


async def test_jobs_of_one_schema_are_not_those_of_another(bosses):
    for boss in bosses:
        await boss.create_queue("q", policy="exclusive")
    large, small = bosses

    id = await large.send("q", "large")
    assert await small.fetch("q") == []
    assert await small.send("q", "small", id=id) == id
    assert await take_all(large, "q") == ["large"]
    assert await take_all(small, "q") == ["small"]
    await large.complete("q", id)
    assert (await small.get_job_by_id("q", id)).state == "active"


async def test_tables_schedules_and_subscriptions_are_apart(bosses):
    large, small = bosses
    for boss in bosses:
        await boss.create_queue("q", partition=True)
    await large.schedule("q", "* * * * *")
    await large.subscribe("event", "q")

    await small.delete_queue("q")

    assert len(await large.publish("event", 1)) == 1
    assert await small.publish("event", 1) == []
    assert await take_all(large, "q") == [1]
    assert (len(await large.get_schedules()), len(await small.get_schedules())) == (1, 0)


async def test_clearing_one_schema_leaves_the_other(bosses):
    large, small = bosses
    for boss in bosses:
        await boss.create_queue("q")
        await boss.send("q", 1)

    await small.clear_storage()

    assert await take_all(large, "q") == [1]


async def test_a_notification_of_one_schema_is_not_received_in_another(bosses, shared_dsn):
    for boss in bosses:
        await boss.create_queue("q")
    with psycopg.connect(shared_dsn, autocommit=True) as listener, psycopg.connect(shared_dsn) as sender:
        listener.execute('listen "jobs"')
        await bosses[0].send("q", conn=sender)
        sender.commit()
        listener.execute("notify jobs, 'over'")
        assert receive(listener, until="over") == []

        await bosses[1].send("q", conn=sender)
        sender.commit()
        listener.execute("notify jobs, 'over'")
        assert receive(listener, until="over") == ["q"]


async def test_a_lock_in_one_schema_blocks_nobody_in_another(bosses, shared_dsn):
    for boss in bosses:
        await boss.create_queue("q", policy="key_strict_fifo")
    large, small = bosses

    with trio.fail_after(60):
        async with large.transaction() as conn:
            await large.send("q", "large", singleton_key="k", conn=conn)
            await small.send("q", "small", singleton_key="k")

    assert await take_all(large, "q") == ["large"]
    assert await take_all(small, "q") == ["small"]


async def test_one_schema_can_be_dropped_and_the_others_stay(shared_dsn, bosses):
    with trioboss.SyncBoss(shared_dsn, schema="doomed"):
        pass
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute("drop schema doomed cascade")

    assert await bosses[0].schema_version() == await bosses[1].schema_version() is not None


@pytest.mark.parametrize(
    "schema",
    [
        "",
        "1st",
        "a" * 51,
        "a-b",
        'a"b',
        "a b",
        "é",
        "a\n",
        "public;",
        "public",
        "information_schema",
        None,
        5,
    ],
)
async def test_a_bad_name_is_refused(dsn, schema):
    with pytest.raises(ValueError, match=r"(?s)^schema: .* is not a schema name"):
        async with trioboss.open_boss(dsn, schema=schema):
            pass
    with pytest.raises(ValueError, match=r"(?s)^schema: "):
        trioboss.SyncBoss(dsn, schema=schema)


@pytest.mark.parametrize(
    "plan", [trioboss.construction_plans, trioboss.migration_plans, trioboss.rollback_plans]
)
def test_a_bad_name_is_refused_in_plans_too(plan):
    with pytest.raises(ValueError, match=r"^schema: "):
        plan("x; drop schema public")


async def test_a_schema_may_have_the_name_of_one_of_our_tables(empty_dsn):
    async with trioboss.open_boss(
        empty_dsn, schema="live_job_common", supervise=False, schedule=False
    ) as boss:
        for name, partition in (("own", True), ("common", False)):
            await boss.create_queue(name, partition=partition)
            await boss.send(name, name)
            job = await take(boss, name)
            await boss.complete(name, job)
            assert job.data == name


def test_a_name_that_postgres_keeps_for_itself_is_refused(dsn):
    with pytest.raises(ValueError, match=r"^schema: 'pg_jobs'"):
        trioboss.SyncBoss(dsn, schema="pg_jobs")


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_hold_every_text_is_refused(server_dsn, encoding):
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        provider = "locale_provider libc" if connection.info.server_version >= 150000 else ""
        connection.execute(
            f"create database narrow template template0 encoding '{encoding}' {provider} lc_collate 'C' lc_ctype 'C'"
        )
    narrow = replace_database(server_dsn, "narrow")
    try:
        with pytest.raises(trioboss.UsageError, match=f"encoding of database 'narrow' is {encoding}"):
            async with trioboss.open_boss(narrow):
                pass
        with pytest.raises(trioboss.UsageError, match="trioboss needs UTF8"), trioboss.SyncBoss(narrow):
            pass
    finally:
        drop_database(server_dsn, "narrow")


def test_functions_of_others_in_the_schema_keep_their_rights(empty_dsn):
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("create schema shared")
        connection.execute("create function shared.theirs() returns int language sql as 'select 1'")
        with trioboss.SyncBoss(empty_dsn, schema="shared"):
            pass
        may = "select has_function_privilege('pg_monitor', 'shared.theirs()', 'execute')"
        assert connection.execute(may).fetchone() == (True,)


async def test_the_error_on_a_connection_to_another_database_names_the_missing_schema(boss, empty_dsn):
    await boss.create_queue("q")
    await boss.send("q")
    with psycopg.connect(empty_dsn) as elsewhere:
        for call in (lambda: boss.send("q", conn=elsewhere), lambda: boss.fetch("q", conn=elsewhere)):
            with pytest.raises(trioboss.StatementFailed, match="trioboss"):
                await call()
            elsewhere.rollback()
