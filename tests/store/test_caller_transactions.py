"""conn=: every method that writes, as a part of the caller's transaction."""

import asyncio
import contextlib
import inspect
import threading

import psycopg
import pytest
import trio
from store_helpers import fail_for_good, receive, take_all, until_blocked

import trioboss
from trioboss.model.ids import make_id


class Changes:
    """Calls that each change something, by the name of the method, on a boss that is prepared for them."""

    def __init__(self, boss):
        self.boss = boss

    async def prepare(self):
        boss = self.boss
        for name in ("q", "doomed", "subscribed", "paused"):
            await boss.create_queue(name)
        await boss.pause("paused")
        await boss.subscribe("event", "subscribed")
        await boss.subscribe("other", "q")
        await boss.schedule("q", "* * * * *", key="old")
        self.failed = (await fail_for_good(boss, "q")).id
        self.cancelled = await boss.send("q")
        await boss.cancel("q", self.cancelled)
        await boss.send("q", "active")
        (self.active,) = await boss.fetch("q")
        self.queued = await boss.send("q", "queued")
        await boss.create_queue("dead")
        await boss.create_queue("failing", dead_letter="dead", retry_limit=0)
        await boss.send("failing")
        await boss.fail("failing", await boss.fetch("failing"), "no")

    def calls(self):
        boss = self.boss
        return {
            "create_queue": lambda conn: boss.create_queue("new", conn=conn),
            "create_queue partition": lambda conn: boss.create_queue("new", partition=True, conn=conn),
            "update_queue": lambda conn: boss.update_queue("q", retry_limit=9, conn=conn),
            "delete_queue": lambda conn: boss.delete_queue("doomed", conn=conn),
            "pause": lambda conn: boss.pause("q", conn=conn),
            "resume_queue": lambda conn: boss.resume_queue("paused", conn=conn),
            "send": lambda conn: boss.send("q", 1, conn=conn),
            "send id": lambda conn: boss.send("q", 1, id=make_id(), conn=conn),
            "send_after": lambda conn: boss.send_after("q", 1, 60, conn=conn),
            "send_throttled": lambda conn: boss.send_throttled("q", 1, 60, conn=conn),
            "send_debounced": lambda conn: boss.send_debounced("q", 1, 60, conn=conn),
            "send_once": lambda conn: boss.send_once("q", 1, "k", conn=conn),
            "send_singleton": lambda conn: boss.send_singleton("q", 1, conn=conn),
            "insert": lambda conn: boss.insert("q", [{"data": 1}, {"data": 2, "id": make_id()}], conn=conn),
            "publish": lambda conn: boss.publish("event", 1, conn=conn),
            "subscribe": lambda conn: boss.subscribe("event", "q", conn=conn),
            "unsubscribe": lambda conn: boss.unsubscribe("other", "q", conn=conn),
            "fetch": lambda conn: boss.fetch("q", conn=conn),
            "fetch_completed": lambda conn: boss.fetch_completed("q", conn=conn),
            "complete": lambda conn: boss.complete("q", self.active, conn=conn),
            "fail": lambda conn: boss.fail("q", self.active, conn=conn),
            "touch": lambda conn: boss.touch("q", self.active, conn=conn),
            "cancel": lambda conn: boss.cancel("q", self.queued, conn=conn),
            "resume": lambda conn: boss.resume("q", self.cancelled, conn=conn),
            "retry": lambda conn: boss.retry("q", self.failed, conn=conn),
            "redrive": lambda conn: boss.redrive("dead", conn=conn),
            "delete_job": lambda conn: boss.delete_job("q", self.queued, conn=conn),
            "delete_queued_jobs": lambda conn: boss.delete_queued_jobs("q", conn=conn),
            "delete_stored_jobs": lambda conn: boss.delete_stored_jobs("q", conn=conn),
            "delete_all_queued_jobs": lambda conn: boss.delete_all_queued_jobs(conn=conn),
            "update_job": lambda conn: boss.update_job("q", self.queued, data=2, conn=conn),
            "complete queued": lambda conn: boss.complete("q", self.queued, include_queued=True, conn=conn),
            "send or update": lambda conn: boss.send(
                "q", 2, id=self.queued, on_duplicate="update", conn=conn
            ),
            "delete_all_jobs": lambda conn: boss.delete_all_jobs("q", conn=conn),
            "clear_storage": lambda conn: boss.clear_storage(conn=conn),
            "schedule": lambda conn: boss.schedule("q", "0 3 * * *", conn=conn),
            "unschedule": lambda conn: boss.unschedule("q", "old", conn=conn),
        }


METHODS = list(Changes(None).calls())
LOCKING = ("create_queue partition", "clear_storage")  # nobody can read meanwhile
TABLES = ["queue", "all_jobs", "subscription", "schedule", "throttle"]


def contents(database):
    """All rows that a call could change."""
    return {
        table: sorted(map(repr, database.execute(f"select * from trioboss.{table}").fetchall()))
        for table in TABLES
    }


@pytest.fixture
async def changes(boss):
    """Calls that change something, and a boss that is prepared for them."""
    changes = Changes(boss)
    await changes.prepare()
    return changes


@pytest.fixture
def blocking(dsn):
    """A blocking connection of the caller."""
    with psycopg.connect(dsn) as connection:
        yield connection


def test_every_method_that_takes_a_connection_is_tested_here():
    takes_conn = {
        name
        for name, function in inspect.getmembers(trioboss.Boss, inspect.isfunction)
        if not name.startswith("_") and "conn" in inspect.signature(function).parameters
    }

    reading = {"get_job_by_id", "find_jobs"}
    assert takes_conn - reading == {method.split()[0] for method in METHODS}


@pytest.mark.parametrize("method", METHODS)
async def test_a_change_on_our_connection_happens_if_and_when_it_commits(boss, changes, database, method):
    before = contents(database)

    with contextlib.suppress(ZeroDivisionError):
        async with boss.transaction() as conn:
            await changes.calls()[method](conn)
            raise ZeroDivisionError
    assert contents(database) == before

    async with boss.transaction() as conn:
        await changes.calls()[method](conn)
        if method not in LOCKING:
            assert contents(database) == before
    assert contents(database) != before


@pytest.mark.parametrize("method", METHODS)
async def test_a_change_on_a_blocking_connection_is_rolled_back_or_commits_by_itself_in_autocommit(
    changes, database, blocking, method
):
    before = contents(database)

    await changes.calls()[method](blocking)
    if method not in LOCKING:
        assert contents(database) == before
    blocking.rollback()
    assert contents(database) == before

    blocking.autocommit = True
    await changes.calls()[method](blocking)
    assert contents(database) != before
    assert blocking.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


@pytest.mark.parametrize("method", ["send", "insert", "complete", "create_queue", "fetch"])
async def test_a_change_on_a_blocking_connection_is_there_when_it_commits(
    changes, database, blocking, method
):
    before = contents(database)

    await changes.calls()[method](blocking)
    blocking.commit()

    assert contents(database) != before


async def test_in_autocommit_a_load_is_all_or_none(boss, database, blocking):
    await boss.create_queue("q")
    blocking.autocommit = True

    with pytest.raises(trioboss.UnknownQueue):
        await boss.insert("q", [{}, {"id": make_id()}, {"dead_letter": "nowhere"}], conn=blocking)
    with pytest.raises(trioboss.PayloadError):
        await boss.insert("q", [{}, {"id": make_id()}, {"data": {1}}], conn=blocking)

    assert contents(database)["all_jobs"] == []


async def test_a_bad_load_leaves_a_blocking_transaction_as_it_was(boss, blocking):
    await boss.create_queue("q")
    await boss.send("q", "before", conn=blocking)
    with pytest.raises(trioboss.PayloadError):
        await boss.insert("q", [{"data": 1}, {"data": {2}}], conn=blocking)
    await boss.send("q", "after", conn=blocking)
    blocking.commit()

    assert await take_all(boss, "q") == ["before", "after"]


async def test_a_job_is_there_exactly_if_the_callers_rows_are(boss, blocking):
    await boss.create_queue("q")
    blocking.execute("create temporary table orders (id int)")
    blocking.commit()

    for order, commit in [(1, True), (2, False)]:
        blocking.execute("insert into orders values (%s)", [order])
        await boss.send("q", order, conn=blocking)
        blocking.commit() if commit else blocking.rollback()

    assert blocking.execute("select id from orders").fetchall() == [(1,)]
    assert await take_all(boss, "q") == [1]


async def test_a_job_can_be_settled_together_with_the_callers_rows(boss):
    await boss.create_queue("q")
    id = await boss.send("q")
    (job,) = await boss.fetch("q")

    async with boss.transaction() as conn:
        await conn.execute("create table public.results (n int)")
        await boss.complete("q", job, conn=conn)
        await conn.execute("drop table public.results")

    assert (await boss.get_job_by_id("q", id)).state == "completed"


async def test_a_queue_created_in_the_transaction_can_be_used_in_it(boss):
    async with boss.transaction() as conn:
        await boss.create_queue("q", conn=conn)
        await boss.send("q", 1, conn=conn)

    assert await take_all(boss, "q") == [1]


async def test_a_queue_whose_creation_was_rolled_back_is_unknown(boss):
    with contextlib.suppress(ZeroDivisionError):
        async with boss.transaction() as conn:
            await boss.create_queue("q", conn=conn)
            await boss.send("q", 1, conn=conn)
            raise ZeroDivisionError

    with pytest.raises(trioboss.UnknownQueue):
        await boss.send("q", 2)
    with pytest.raises(trioboss.UnknownQueue):
        await boss.fetch("q")


async def test_the_planner_settings_of_a_transaction_are_those_of_the_server(boss):
    async with boss.transaction() as conn:
        cursor = await conn.execute(
            "select current_setting('enable_seqscan'), current_setting('enable_bitmapscan')"
        )

        assert await cursor.fetchone() == ("on", "on")


@pytest.mark.parametrize("method", ["send", "insert", "complete", "create_queue", "delete_all_jobs"])
async def test_an_asyncio_connection_is_refused(boss, changes, dsn, method):
    connection = await connect_with_asyncio(dsn)

    with pytest.raises(
        trioboss.UsageError, match=r"^conn: psycopg.AsyncConnection: it belongs to asyncio: pass the conn"
    ):
        await changes.calls()[method](connection)


@pytest.mark.parametrize("conn", ["postgresql://", 5, object()])
async def test_an_object_that_is_no_connection_is_refused(boss, conn):
    await boss.create_queue("q")

    with pytest.raises(trioboss.UsageError, match=r"^conn: "):
        await boss.send("q", conn=conn)


async def connect_with_asyncio(dsn):
    """A connection that was made in an event loop which has ended."""
    made = []

    async def connect():
        made.append(await psycopg.AsyncConnection.connect(dsn))

    thread = threading.Thread(target=asyncio.run, args=(connect(),))
    thread.start()
    await trio.to_thread.run_sync(thread.join)
    made[0].pgconn.finish()
    return made[0]


@pytest.mark.parametrize("commit", [True, False])
async def test_workers_are_notified_when_the_caller_commits(boss, blocking, dsn, commit):
    await boss.create_queue("q")
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("listen trioboss")

        await boss.send("q", conn=blocking)
        await boss.insert("q", [{}], conn=blocking)
        listener.execute("notify trioboss, 'not yet'")
        before = receive(listener, until="not yet")
        blocking.commit() if commit else blocking.rollback()
        listener.execute("notify trioboss, 'over'")
        after = receive(listener, until="over")

    assert before == []
    assert after == (["q"] if commit else [])


@pytest.mark.parametrize("policy", ["standard", "singleton"])
async def test_a_fetch_needs_no_second_connection_of_the_pool(dsn, policy):
    async with trioboss.open_boss(dsn, pool_size=1, supervise=False, schedule=False) as boss:
        await boss.create_queue("q", policy=policy)
        await boss.send("q")
        with trio.fail_after(60):
            async with boss.transaction() as conn:
                assert len(await boss.fetch("q", conn=conn)) == 1


async def test_a_job_whose_retry_slot_is_taken_meanwhile_fails_and_the_transaction_goes_on(boss, database):
    await boss.create_queue("q", policy="stately", retry_limit=0)
    first = await boss.send("q")
    await boss.fail("q", await boss.fetch("q"))
    second = await boss.send("q", retry_limit=5)
    running = await boss.fetch("q")

    async def fail_the_second() -> None:
        async with boss.transaction() as conn:
            await boss.send("q", "more", conn=conn)
            await boss.fail("q", running, conn=conn)

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery, boss.transaction() as conn:
            await boss.retry("q", first, conn=conn)
            nursery.start_soon(fail_the_second)
            await until_blocked(database)

    assert (await boss.get_job_by_id("q", second)).state == "failed"
    assert sorted(job.state for job in await boss.find_jobs("q")) == ["created", "failed", "retry"]
