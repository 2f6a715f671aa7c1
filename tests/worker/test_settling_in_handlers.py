"""Handlers that settle their own jobs with methods of a boss, also in a transaction of their own."""

import asyncio

import psycopg
import pytest
import trio
from worker_helpers import TIMEOUT, next_of

import trioboss
from trioboss.events import JobCancelled, JobCompleted, JobFailed, LateError, LeaseLostEvent


async def test_the_job_that_a_handler_gets_can_be_completed_in_its_transaction(boss, dsn, run_job):
    async def handle(job):
        async with boss.transaction() as conn:
            await boss.send("q2", "sent along", conn=conn)
            assert (await boss.complete("q", job, "manually", conn=conn)).affected == 1
        return "does not count"

    await boss.create_queue("q2")
    job, counted = await run_job(handle)

    assert (job.state, job.output) == ("completed", "manually")
    assert counted == (1, 0, 0)
    assert (await boss.get_queue_stats("q2")).ready == 1


async def test_a_completion_that_is_rolled_back_has_not_happened(boss, run_job):
    async def handle(job):
        async with boss.transaction() as conn:
            await boss.complete("q", job, "manually", conn=conn)
            raise ValueError("rolled back")

    job, counted = await run_job(handle)

    assert (job.state, job.output["message"]) == ("failed", "rolled back")
    assert counted == (0, 1, 0)


async def test_a_handler_that_rolls_a_completion_back_and_returns_has_completed_its_job(boss, run_job):
    async def handle(job):
        try:
            async with boss.transaction() as conn:
                await boss.complete("q", job, "manually", conn=conn)
                raise ValueError("rolled back")
        except ValueError:
            return "by return"

    job, counted = await run_job(handle)

    assert (job.state, job.output) == ("completed", "by return")
    assert counted == (1, 0, 0)


async def test_the_lease_of_a_handler_that_rolled_a_completion_back_is_renewed(boss, dsn):
    """While the transaction is open, the row is locked: the heartbeats of other jobs do not wait for it."""
    renewed = trio.Event()

    async def handle(job):
        if job.data == "other":
            await renewed.wait()
            return
        async with boss.transaction() as conn:
            await job.complete("manually", conn=conn)
            await until_renewed("other")
            await conn.execute("rollback")
        await until_renewed("input")
        renewed.set()
        assert job.cancelled is None

    async def until_renewed(data):
        """Wait until the heartbeat of a job is newer than now."""
        with psycopg.connect(dsn, autocommit=True) as other:
            (now,) = other.execute("select clock_timestamp()").fetchone()
            newer = "select from trioboss.job where data = to_jsonb(%s::text) and heartbeat_on > %s"
            while True:
                if other.execute(newer, [data, now]).fetchone() is not None:
                    return
                await trio.sleep(0.02)

    await boss.create_queue("q", retry_limit=0, heartbeat=4.0)
    await boss.work("q", handle, concurrency=2)
    ids = [await boss.send("q", data) for data in ("other", "input")]
    with trio.fail_after(TIMEOUT):
        ended = [await boss.wait_for("q", id) for id in ids]

    assert [(job.state, job.attempt, job.output) for job in ended] == [("completed", 1, None)] * 2


async def test_a_job_that_its_handler_has_completed_is_reported(boss, run_job):
    async def handle(job):
        await boss.complete("q", job, "manually")

    async with boss.events() as events:
        job, counted = await run_job(handle)
        assert (await next_of(JobCompleted, events)).id == job.id

    assert job.output == "manually"
    assert counted == (1, 0, 0)


async def test_a_job_that_its_handler_has_failed_is_reported(boss, run_job):
    async def handle(job):
        await boss.fail("q", job, ValueError("manually"))

    async with boss.events() as events:
        job, counted = await run_job(handle)
        assert (await next_of(JobFailed, events)).error == "ValueError: manually"

    assert (job.state, job.output["message"]) == ("failed", "manually")
    assert counted == (0, 1, 0)


async def test_a_handler_can_touch_and_cancel_its_job_with_the_boss(boss, run_job):
    async def handle(job):
        await boss.touch("q", job)
        await boss.cancel("q", job)

    job, counted = await run_job(handle)

    assert job.state == "cancelled"
    assert counted[:2] == (0, 0)


async def test_a_batch_can_be_completed_at_once(boss, run_job):
    async def handle(jobs):
        await boss.complete("q", jobs, "manually")

    job, counted = await run_job(handle, batch_size=3)

    assert job.output == "manually"
    assert counted == (1, 0, 0)


async def test_a_handler_in_a_thread_can_complete_its_job_in_its_transaction(dsn, run_job):
    def handle(job):
        with trioboss.SyncBoss(dsn, migrate=False) as sync_boss, psycopg.connect(dsn) as conn:
            sync_boss.complete("q", job, "manually", conn=conn)

    job, counted = await run_job(handle, thread=True)

    assert job.output == "manually"
    assert counted == (1, 0, 0)


@pytest.mark.parametrize("kind", ["thread", "asyncio"])
async def test_the_rows_of_a_handler_of_another_kind_and_its_completion_are_one_commit(dsn, run_job, kind):
    def in_thread(job):
        with trioboss.SyncBoss(dsn, migrate=False) as sync_boss, sync_boss.transaction() as conn:
            conn.execute("create table done (id uuid)")
            conn.execute("insert into done values (%s)", [job.id])
            sync_boss.complete(job.queue, job, "with the rows", conn=conn)
        return "not this"

    async def in_asyncio(job):
        return await asyncio.to_thread(in_thread, job)

    job, counted = await run_job(in_thread if kind == "thread" else in_asyncio, **{kind: True})

    assert (job.state, job.output) == ("completed", "with the rows")
    assert counted == (1, 0, 0)
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select id from done").fetchall() == [(job.id,)]


@pytest.mark.parametrize("kind", ["thread", "asyncio"])
async def test_a_handler_of_another_kind_that_asks_for_a_transaction_is_told_what_to_do(run_job, kind):
    def in_thread(job):
        with job.transaction():
            raise AssertionError("not reached")

    async def in_asyncio(job):
        async with job.transaction():
            raise AssertionError("not reached")

    job, _ = await run_job(in_thread if kind == "thread" else in_asyncio, **{kind: True})

    assert (job.state, job.output["name"]) == ("failed", "UsageError")
    assert "sync_boss.complete(job.queue, job, conn=conn)" in job.output["message"]


async def test_an_asyncio_handler_can_complete_its_job(boss, run_job):
    async def handle(job):
        import trio_asyncio

        await trio_asyncio.trio_as_aio(boss.complete)("q", job, "manually")

    job, counted = await run_job(handle, asyncio=True)

    assert job.output == "manually"
    assert counted == (1, 0, 0)


async def test_a_handler_may_clean_up_after_it_has_completed_its_job(boss):
    cleaned_up = trio.Event()

    async def handle(job):
        await boss.complete("q", job)
        await trio.sleep(1.5)
        cleaned_up.set()

    await boss.create_queue("q", heartbeat=1)
    await boss.work("q", handle)
    await boss.send("q")

    with trio.fail_after(TIMEOUT):
        await cleaned_up.wait()


async def test_nothing_of_a_worker_or_of_a_payload_gets_into_messages(boss, run_job):
    seen = []

    async def handle(job):
        seen.append(repr(job))
        await boss.complete("q", [[job]])

    job, _ = await run_job(handle)
    worker = await boss.work("q", handle)

    assert str(job.id) in seen[0]
    assert "input" not in seen[0]
    assert str(worker.id) in repr(worker)
    assert max(len(seen[0]), len(repr(worker)), len(job.output["message"])) < 300


# -- exceptions that come too late


async def complete_in_its_transaction(boss, job):
    async with job.transaction():
        pass


async def complete_at_once(boss, job):
    await job.complete("manually")


async def complete_in_a_transaction_of_its_own(boss, job):
    async with boss.transaction() as conn:
        await boss.complete("q", job, "manually", conn=conn)


@pytest.mark.parametrize(
    "settle", [complete_in_its_transaction, complete_at_once, complete_in_a_transaction_of_its_own]
)
async def test_an_exception_after_the_job_was_completed_is_logged_with_its_stack(
    boss, run_job, settle, caplog
):
    async def handle(job):
        await settle(boss, job)
        raise ValueError("too late")

    job, counted = await run_job(handle)

    assert (job.state, counted) == ("completed", (1, 0, 0))
    (record,) = [record for record in caplog.records if isinstance(getattr(record, "event", None), LateError)]
    assert (record.levelname, record.queue, record.job_id) == ("WARNING", "q", str(job.id))
    assert record.getMessage().endswith(
        "settled or cancelled, and its end has no effect: ValueError: too late"
    )
    assert 'raise ValueError("too late")' in caplog.text


@pytest.mark.parametrize(
    "settle", [complete_in_its_transaction, complete_at_once, complete_in_a_transaction_of_its_own]
)
async def test_an_output_that_is_returned_after_the_job_was_completed_is_reported(boss, run_job, settle):
    async def handle(job):
        await settle(boss, job)
        return "too late"

    async with boss.events(LateError) as events:
        job, counted = await run_job(handle)
        with trio.fail_after(TIMEOUT):
            event = await next_of(LateError, events)

    assert (job.output in (None, "manually"), counted) == (True, (1, 0, 0))
    assert (event.id, event.exception) == (job.id, None)
    assert "the output that it returned is dropped; pass it to job.complete(output)" in event.error


async def test_an_exception_of_a_cancelled_handler_is_logged(boss, caplog):
    began = trio.Event()

    async def handle(job):
        began.set()
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("in the clean-up")

    await boss.create_queue("q")
    await boss.work("q", handle)
    async with boss.events(LateError) as events:
        id = await boss.send("q")
        with trio.fail_after(TIMEOUT):
            await began.wait()
            await boss.cancel("q", id)
            await next_of(LateError, events)

    assert 'raise ValueError("in the clean-up")' in caplog.text


async def test_a_handler_that_learns_of_its_lost_lease_logs_no_late_error(boss, caplog):
    async def handle(job):
        await boss.delete_job("q", job.id)
        await job.touch()

    await boss.create_queue("q")
    worker = await boss.work("q", handle)
    async with boss.events(LeaseLostEvent, JobCancelled) as events:
        await boss.send("q")
        with trio.fail_after(TIMEOUT):
            await next_of((LeaseLostEvent, JobCancelled), events)
            await boss.off_work(worker)

    assert "which has no effect" not in caplog.text
