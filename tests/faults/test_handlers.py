"""Handlers that change a session, and handlers that send many jobs."""

import pytest
import trio

import trioboss


@pytest.mark.parametrize(
    "statement",
    [
        "set search_path = nowhere",
        "set statement_timeout = 1",
        "set default_transaction_read_only = on",
        "set default_transaction_isolation = 'serializable'",
        "set timezone = 'Asia/Tokyo'",
        "deallocate all",
        "select pg_advisory_lock(1)",
        "unlisten *",
    ],
)
async def test_B9_what_a_handler_leaves_in_a_session_affects_no_other_job(dsn, statement):
    async def handler(job):
        if job.data == "change":
            async with boss.transaction() as conn:
                await conn.execute(statement.encode())
        async with boss.transaction() as conn:
            await conn.execute("select pg_sleep(0.01)")
            await conn.execute("create table if not exists public.t (x int)")
            held = await conn.execute(
                "select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
            )
            assert await held.fetchall() == [] or job.data == "change"
        return job.data

    with trio.fail_after(30):
        async with trioboss.open_boss(dsn, migrate=False, pool_size=1) as boss:
            await boss.create_queue("q", retry_limit=0)
            await boss.work("q", handler)
            await boss.wait_for("q", await boss.send("q", "change"))
            after = [await boss.wait_for("q", await boss.send("q", number)) for number in range(3)]

    assert [(job.state, job.output) for job in after] == [("completed", number) for number in range(3)]


async def test_B10_handlers_that_send_many_jobs_need_no_second_connection(dsn):
    """Each job sends two more, down to a depth of seven."""

    async def handler(job):
        if job.data > 0:
            for _ in range(2):
                await boss.send("q", job.data - 1)

    with trio.fail_after(30):
        async with trioboss.open_boss(dsn, migrate=False, pool_size=1) as boss:
            await boss.create_queue("q")
            await boss.work("q", handler, concurrency=20)
            await boss.send("q", 6)
            stats = await boss.get_queue_stats("q")
            while stats.completed < 2**7 - 1:
                stats = await boss.get_queue_stats("q")

    assert (stats.completed, stats.queued, stats.active) == (2**7 - 1, 0, 0)
