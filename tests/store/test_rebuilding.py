"""Tables are made and dropped beside open transactions, and nobody else has to wait for that."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import date
from functools import partial
from typing import Any

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.testing import temporary_database

TIMEOUT = 40  # seconds: others must not wait at all, and a slow machine is no failure
ROUNDS = 5


@pytest.fixture
def dsn(server_dsn, template):
    """A database of its own, because tests drop days of history. A new table waits for others for as long as here."""
    with temporary_database(server_dsn, template) as dsn:
        yield make_conninfo(dsn, options="-c lock_timeout=60s")


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@asynccontextmanager
async def waiting(
    database: psycopg.Connection[Any], statement: str, call: Callable[[], Awaitable[object]]
) -> AsyncIterator[None]:
    """Let a call wait for the transaction that the block holds open. It goes on when the block ends."""
    waiters = (
        "select from pg_stat_activity where state = 'active' and query like %s and pid <> pg_backend_pid()"
    )
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            while not database.execute(waiters, [f"%{statement}%"]).fetchall():  # noqa: ASYNC110
                await trio.sleep(0.01)
            yield


async def work_as_usual(boss: trioboss.Boss) -> None:
    """The calls of others, which must not wait."""
    with trio.fail_after(TIMEOUT):
        for number in range(ROUNDS):
            first, second = await boss.send("busy", number), await boss.send("busy", number)
            done, broken = await boss.fetch("busy", batch_size=2)
            await boss.complete("busy", done)
            await boss.fail("busy", broken)
            assert {first, second} == {done.id, broken.id}
            assert await boss.get_job_by_id("busy", done.id) is not None


async def test_a_queue_gets_its_table_between_the_statements_of_others(boss, dsn, database):
    await boss.create_queue("busy", retry_limit=0)
    with psycopg.connect(dsn) as caller:
        await boss.send("busy", "left open", conn=caller)
        create = waiting(database, "set_up_queue", lambda: boss.create_queue("new", partition=True))
        async with create:
            await work_as_usual(boss)
            caller.rollback()
    await boss.send("new", 1)
    assert len(await boss.fetch("new")) == 1


async def test_a_queue_with_its_own_table_is_deleted_between_the_statements_of_others(boss, dsn, database):
    await boss.create_queue("busy", retry_limit=0)
    await boss.create_queue("old", partition=True)
    with psycopg.connect(dsn) as caller:
        await boss.send("old", "left open", conn=caller)
        async with waiting(database, "delete_queue", lambda: boss.delete_queue("old")):
            await work_as_usual(boss)
            caller.rollback()
    assert await boss.get_queue("old") is None


async def until_waiting_for_row(database: psycopg.Connection[Any]) -> None:
    """Return when a session waits for the row of a queue, which is a wait for the transaction that wrote it."""
    waiters = (
        "select from pg_stat_activity where datname = current_database() and wait_event = 'transactionid' "
        "and query not like '%delete_queue%'"
    )
    with trio.fail_after(60):
        while not database.execute(waiters).fetchall():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def until_trying(database: psycopg.Connection[Any], sessions: int) -> None:
    """Return when so many sessions pause between their tries to lock a table."""
    pauses = "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
    with trio.fail_after(60):
        while len(database.execute(pauses).fetchall()) < sessions:  # noqa: ASYNC110
            await trio.sleep(0.01)


@asynccontextmanager
async def create_at_once(boss: trioboss.Boss, dsn: str, *names: str) -> AsyncIterator[None]:
    """Have several create queues while an open transaction keeps them from getting their tables."""
    with psycopg.connect(dsn) as caller, trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            await boss.send("busy", "left open", conn=caller)
            for name in names:
                nursery.start_soon(partial(boss.create_queue, name, partition=True))
            yield
            caller.rollback()
    assert {queue.name for queue in await boss.get_queues()} == {"busy", *names}


async def test_all_who_create_the_same_queue_with_its_own_table_succeed(boss, dsn, database):
    """Those that wait for the first one hold no table for which that one waits."""
    await boss.create_queue("busy")
    async with create_at_once(boss, dsn, "new", "new", "new"):
        await until_waiting_for_row(database)


async def test_two_queues_get_their_own_tables_at_the_same_time(boss, dsn, database):
    """Neither keeps a lock on the common table, which both need, from one try to the next."""
    await boss.create_queue("busy")
    async with create_at_once(boss, dsn, "one", "two"):
        await until_trying(database, 2)


async def test_a_queue_is_deleted_beside_a_subscription_to_its_completions(boss, dsn, database):
    """The subscriber waits for the row of the queue, and holds no table that is to be dropped."""
    await boss.create_queue("old", partition=True)

    async def subscribe() -> None:
        with pytest.raises(trioboss.UnknownQueue):
            await boss.fetch_completed("old")

    with psycopg.connect(dsn) as caller:
        await boss.send("old", "left open", conn=caller)
        delete = waiting(database, "delete_queue", lambda: boss.delete_queue("old"))
        async with delete, trio.open_nursery() as nursery:
            await until_trying(database, 1)
            nursery.start_soon(subscribe)
            await until_waiting_for_row(database)
            caller.rollback()
    assert await boss.get_queue("old") is None


async def test_two_queues_with_completions_are_deleted_at_the_same_time(boss, dsn, database):
    """Their tables are dropped before anything is deleted from the common table, which dropping locks, too."""
    for name in ("one", "two"):
        await boss.create_queue(name, partition=True)
        await boss.fetch_completed(name)
        await boss.complete(name, await boss.send(name), include_queued=True)
    with psycopg.connect(dsn) as caller, trio.fail_after(60):
        await boss.send("one", "left open", conn=caller)
        await boss.send("two", "left open", conn=caller)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(boss.delete_queue, "one")
            nursery.start_soon(boss.delete_queue, "two")
            await until_trying(database, 2)
            caller.rollback()
    assert await boss.get_queues() == []


@pytest.mark.parametrize("method", ["create_queue", "delete_queue"])
async def test_a_lock_timeout_is_reported_as_a_busy_queue(boss, dsn, method):
    await boss.create_queue("busy")
    await boss.create_queue("old", partition=True)
    call = {
        "create_queue": lambda conn: boss.create_queue("new", partition=True, conn=conn),
        "delete_queue": lambda conn: boss.delete_queue("old", conn=conn),
    }
    with psycopg.connect(dsn) as caller:
        caller.execute("set lock_timeout = '100ms'")
        async with boss.transaction() as conn:
            await boss.send("busy", "left open", conn=conn)
            await boss.send("old", "left open", conn=conn)
            with pytest.raises(trioboss.QueueBusy, match="an open transaction uses"):
                await call[method](caller)
    assert [queue.name for queue in await boss.get_queues()] == ["busy", "old"]


def remove_last_days(database: psycopg.Connection[Any]) -> list[str]:
    """Drop the last tables, as if a day had passed since they were made."""
    last = "select max(relname) from pg_class where relkind = 'r' and relname ~ %s"
    names = [
        database.execute(last, [rf"^{history}_\d+$"]).fetchone()[0] for history in ("archive", "attempt")
    ]
    for name in names:
        database.execute(f"drop table trioboss.{name}")
    return names


def exists(database: psycopg.Connection[Any], name: str) -> bool:
    return database.execute("select to_regclass(%s) is not null", [f"trioboss.{name}"]).fetchone()[0]


async def test_tables_of_coming_days_are_made_beside_an_open_settlement(boss, dsn, database):
    await boss.create_queue("busy", retry_limit=0)
    await boss.send("busy")
    days = remove_last_days(database)
    with psycopg.connect(dsn) as caller:
        await boss.complete("busy", await boss.fetch("busy"), conn=caller)
        with trio.fail_after(TIMEOUT):
            await boss._execute(boss._store.retention.prune())
        assert [exists(database, day) for day in days] == [True, True]
        await work_as_usual(boss)


async def test_a_reader_of_history_delays_the_tables_of_coming_days(boss, dsn, database):
    await boss.create_queue("busy", retry_limit=0)
    days = remove_last_days(database)
    with psycopg.connect(dsn) as reader:
        reader.execute("select count(*) from trioboss.all_jobs")
        reader.execute("select count(*) from trioboss.attempt")
        with trio.fail_after(TIMEOUT):
            await boss._execute(boss._store.retention.prune())
        assert [exists(database, day) for day in days] == [False, False]
        await work_as_usual(boss)
    await boss._execute(boss._store.retention.prune())
    assert [exists(database, day) for day in days] == [True, True]


async def test_a_reader_of_history_delays_the_drop_of_old_days(boss, dsn, database):
    await boss.create_queue("busy", retry_limit=0)
    old = date(2000, 1, 1)
    database.execute("select trioboss.add_days(%s, 0)", [old])
    with psycopg.connect(dsn) as reader:
        reader.execute("select count(*) from trioboss.all_jobs")
        with trio.fail_after(TIMEOUT), pytest.raises(trioboss.DatabaseUnavailable, match="lock timeout"):
            await boss._execute(boss._store.retention.prune())
        await work_as_usual(boss)
    await boss._execute(boss._store.retention.prune())
    assert not exists(database, f"archive_{old:%Y%m%d}")


async def test_days_that_are_late_lock_nobody_out(boss, database):
    """With a large default table nothing is attached, which would read it whole under a lock; the leader reports it."""
    await boss.create_queue("q")
    days = [
        f"archive_{day}"
        for (day,) in database.execute("select to_char(current_date + 30, 'YYYYMMDD')").fetchall()
    ]
    database.execute("alter table trioboss.archive_default alter column data set storage plain")
    database.execute(
        "insert into trioboss.archive (seq, created_on, start_after, completed_on, id, priority, attempt, retry_count, "
        "outcome, queue, data) select 1, now(), now(), now() + interval '40 days', gen_random_uuid(), 0, 1, 0, "
        "'completed', 'q', to_jsonb(repeat('x', 5000)) from generate_series(1, 3000)"
    )
    assert database.execute("select trioboss.add_days(current_date + 30, 0)").fetchone() == (
        2,
    )  # of attempt alone
    assert not exists(database, days[0])
    rescue = await boss._execute(boss._store.maintenance.rescue_leases(60.0, 0.0, warnings=True))
    assert [kind for _, kind, _ in rescue.warnings] == ["late_days"]

    with database.transaction():
        database.execute("set local history.scan_limit = '1GB'")
        database.execute("select trioboss.add_days(current_date + 30, 0)")
    assert exists(database, days[0])
    for (name,) in database.execute(
        "select inhrelid::regclass::text from pg_inherits where inhrelid::regclass::text ~ '_[0-9]{8}$' "
        "and right(inhrelid::regclass::text, 8)::date > current_date + 20"
    ).fetchall():
        database.execute(f"drop table {name}")
    database.execute("truncate trioboss.archive_default")
