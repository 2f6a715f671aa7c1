"""Sends at the same time share a commit, and are independent of each other."""

import psycopg
import pytest
import trio
import trio.testing
from store_helpers import open_quiet_boss, take_all

import trioboss
from trioboss.runtime import send_batching


async def send_all(boss, queue, values):
    """Send them at the same time; return the ids in the order of the values."""
    ids = {}

    async def send(value):
        ids[value] = await boss.send(queue, value)

    async with trio.open_nursery() as nursery:
        for value in values:
            nursery.start_soon(send, value)
    return [ids[value] for value in values]


def commits(database, queue):
    """How many transactions have sent the jobs of a queue."""
    query = "select count(distinct xmin::text) from trioboss.live_job where queue = %s"
    return database.execute(query, [queue]).fetchone()[0]


async def test_sends_that_wait_for_one_under_way_are_committed_together(boss, database):
    await boss.create_queue("q")
    await boss.send("q", "cached")
    ids = await send_all(boss, "q", range(50))

    assert len(set(ids)) == 50
    assert commits(database, "q") == 3  # the first, the one under way, and all the others
    assert sorted(await take_all(boss, "q"), key=str) == sorted([*range(50), "cached"], key=str)


async def test_sends_are_batched_for_each_queue(boss):
    for queue in ("a", "b"):
        await boss.create_queue(queue)
        await boss.send(queue, -1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(send_all, boss, "a", range(10))
        nursery.start_soon(send_all, boss, "b", range(10, 20))

    assert sorted(await take_all(boss, "a")) == [-1, *range(10)]
    assert sorted(await take_all(boss, "b")) == [-1, *range(10, 20)]


async def test_a_job_of_a_batch_is_like_one_sent_alone(boss, database):
    options = {"retry_limit": 7, "retry_delay": 3, "expire_in": 99, "retention": 1000, "heartbeat": 5}
    await boss.create_queue("q", **options, retry_backoff=True, delete_after=10, max_lease_extensions=2)
    await boss.send("q", {"é": "€ \\ \" '"}, priority=0)
    await boss.send("q", {"é": "€ \\ \" '"})
    rows = database.execute(
        "select to_jsonb(j) - '{id,seq,created_on,start_after,keep_until}'::text[], keep_until - created_on, "
        "start_after - created_on from trioboss.job j order by seq"
    ).fetchall()

    assert rows[0] == rows[1]


async def test_a_batch_may_have_jobs_without_data(boss):
    await boss.create_queue("q")
    await boss.send("q")
    await boss.send("q")

    assert await take_all(boss, "q") == [None, None]


async def test_a_queue_that_was_deleted_meanwhile_is_named_to_every_sender(boss, dsn):
    await boss.create_queue("q")
    await boss.send("q", 0)
    async with open_quiet_boss(dsn) as other:
        await other.delete_queue("q")
    refused = []

    async def send(value):
        with pytest.raises(trioboss.UnknownQueue):
            await boss.send("q", value)
        refused.append(value)

    async with trio.open_nursery() as nursery:
        for value in range(5):
            nursery.start_soon(send, value)

    assert len(refused) == 5


async def test_the_policy_that_a_queue_got_meanwhile_holds(boss, dsn):
    await boss.create_queue("q")
    await boss.send("q", 0)
    async with open_quiet_boss(dsn) as other:
        await other.delete_queue("q")
        await other.create_queue("q", policy="exclusive")
    ids = await send_all(boss, "q", range(5))

    assert len([id for id in ids if id is not None]) == 1


async def test_a_job_that_the_database_refuses_fails_no_other_send(boss, database):
    await boss.create_queue("q")
    await boss.send("q", 0)
    database.execute(
        "alter table trioboss.live_job_common add constraint no_bad_jobs check (data <> '\"bad\"') not valid"
    )
    try:
        refused = []

        async def send(value):
            try:
                await boss.send("q", value)
            except trioboss.StatementFailed:
                refused.append(value)

        async with trio.open_nursery() as nursery:
            for value in (1, 2, "bad", 3):
                nursery.start_soon(send, value)
    finally:
        database.execute("alter table trioboss.live_job_common drop constraint no_bad_jobs")

    assert refused == ["bad"]
    assert sorted(await take_all(boss, "q")) == [0, 1, 2, 3]


@pytest.fixture
async def locked(boss, database):
    """A transaction that locks the table of a queue: sends wait until it ends."""
    await boss.create_queue("q")
    await boss.send("q", "cached")
    with psycopg.connect(boss.dsn) as lock_holder:
        lock_holder.execute("lock table trioboss.live_job_common in exclusive mode")
        yield lock_holder


async def test_cancelling_the_send_under_way_cancels_no_other(boss, locked):
    sent = []

    async def send(value):
        await boss.send("q", value)
        sent.append(value)

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as cancelled:
                cancelled.start_soon(send, "under way")
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(send, "waiting")
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        locked.rollback()

    assert sent == ["waiting"]
    assert sorted(await take_all(boss, "q")) == ["cached", "waiting"]


async def test_a_send_that_is_cancelled_while_it_waits_sends_nothing(boss, locked):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(boss.send, "q", "under way")
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0):
            await boss.send("q", "cancelled")
        locked.rollback()

    assert sorted(await take_all(boss, "q")) == ["cached", "under way"]


async def test_a_line_that_is_too_long_for_one_statement_leaves_in_parts(boss, database, monkeypatch):
    monkeypatch.setattr(send_batching, "_MAX_SENDS", 3)
    await boss.create_queue("q")
    await boss.send("q", -1)
    await send_all(boss, "q", range(9))

    assert sorted(await take_all(boss, "q")) == list(range(-1, 9))
