"""Handlers that do to the database, and to themselves, what they should not."""

import pytest
import trio

import trioboss


@pytest.mark.parametrize(
    "harm",
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
async def test_B9_what_a_handler_does_to_a_session_of_ours_harms_no_other_job(dsn, harm):
    async def handler(job):
        if job.data == "harm":
            async with boss.transaction() as conn:
                await conn.execute(harm.encode())
        async with boss.transaction() as conn:
            await conn.execute("select pg_sleep(0.01)")
            await conn.execute("create table if not exists public.t (x int)")
            held = await conn.execute(
                "select from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"
            )
            assert await held.fetchall() == [] or job.data == "harm"
        return job.data

    with trio.fail_after(30):
        async with trioboss.open_boss(dsn, migrate=False, pool_size=1) as boss:
            await boss.create_queue("q", retry_limit=0)
            await boss.work("q", handler)
            await boss.wait_for("q", await boss.send("q", "harm"))
            after = [await boss.wait_for("q", await boss.send("q", number)) for number in range(3)]

    assert [(job.state, job.output) for job in after] == [("completed", number) for number in range(3)]


async def test_B10_handlers_that_send_many_jobs_need_no_second_connection(dsn):
    """Nor do jobs that send jobs that send jobs."""

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
