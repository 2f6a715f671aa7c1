"""A caller's open transaction delays the outcome of the job that it has changed, and no other job of the worker."""

import psycopg
import pytest
import trio
from worker_helpers import TIMEOUT, eventually

import trioboss
from trioboss.model.states import JobState


class Held:
    """A worker that runs one job until it is let go, and completes all others at once."""

    def __init__(self, boss) -> None:
        self.boss = boss
        self.started, self.go_on = trio.Event(), trio.Event()

    async def handle(self, job):
        if job.data == "held":
            self.started.set()
            await self.go_on.wait()
            if job.attempt == 1 and job.singleton_key:
                raise ValueError("it broke")

    async def postponed(self):
        """Let the job end, and wait until its outcome is postponed."""
        async with self.boss.events(trioboss.QueueWarning) as warnings:
            self.go_on.set()
            async for warning in warnings:
                if warning.warning == "postponed":
                    return warning

    async def finish(self, *data):
        """Send other jobs, and wait for their ends."""
        ids = [await self.boss.send("q", each) for each in data]
        return [(await self.boss.wait_for("q", id)).state for id in ids]


@pytest.fixture
async def held(boss):
    await boss.create_queue("q", retry_limit=1)
    held = Held(boss)
    await boss.work("q", held.handle, concurrency=3)
    return held


@pytest.fixture
async def connection(dsn):
    with psycopg.connect(dsn) as connection:
        yield connection


CHANGES = {
    "cancel": lambda boss, connection, id: boss.cancel("q", id, conn=connection),
    "delete_job": lambda boss, connection, id: boss.delete_job("q", id, conn=connection),
    "complete": lambda boss, connection, id: boss.complete("q", id, conn=connection),
    "fail": lambda boss, connection, id: boss.fail("q", id, "no", conn=connection),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_other_jobs_end_while_a_transaction_has_changed_one(held, sync_boss, connection, change):
    id = await held.boss.send("q", "held")
    with trio.fail_after(TIMEOUT):
        await held.started.wait()
        CHANGES[change](sync_boss, connection, id)
        warning = await held.postponed()
        states = await held.finish("one", "two", "three", "four")
        assert str(id) in warning.message
        assert states == [JobState.COMPLETED] * 4

        connection.rollback()
        assert (await held.boss.wait_for("q", id)).state is JobState.COMPLETED


async def test_the_outcome_is_refused_once_the_transaction_has_ended_the_job(held, sync_boss, connection):
    id = await held.boss.send("q", "held")
    with trio.fail_after(TIMEOUT):
        await held.started.wait()
        sync_boss.cancel("q", id, conn=connection)
        await held.postponed()
        async with held.boss.events(trioboss.LeaseLostEvent) as lost:
            connection.commit()
            assert (await anext(lost)).id == id

    assert sync_boss.get_job_by_id("q", id).state is JobState.CANCELLED


async def test_other_jobs_end_while_a_transaction_sends_the_singleton_of_one_that_failed(
    held, sync_boss, connection
):
    id = await held.boss.send_singleton("q", "held", singleton_key="k")
    with trio.fail_after(TIMEOUT):
        await held.started.wait()
        assert sync_boss.send_singleton("q", "next", singleton_key="k", conn=connection) is not None
        await held.postponed()
        assert await held.finish("one", "two") == [JobState.COMPLETED] * 2

        connection.rollback()
        # Its key is free again: it is tried a second time, and completes.
        assert (await held.boss.wait_for("q", id)).state is JobState.COMPLETED


async def test_a_worker_that_stops_waits_for_the_transaction_and_settles(dsn, sync_boss, connection):
    async with trioboss.open_boss(dsn, grace=TIMEOUT) as boss:
        await boss.create_queue("q")
        held = Held(boss)
        worker = await boss.work("q", held.handle)
        id = await boss.send("q", "held")
        with trio.fail_after(TIMEOUT):
            await held.started.wait()
            sync_boss.cancel("q", id, conn=connection)
            await held.postponed()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(boss.off_work, worker)
                await trio.testing.wait_all_tasks_blocked(0.01)
                connection.rollback()

    assert sync_boss.get_job_by_id("q", id).state is JobState.COMPLETED


async def cancel_a_worker_with_a_postponed_outcome(dsn, sync_boss, connection, *, then=lambda: None):
    """Return the id of the job. ``then`` is called between the postponement and the cancellation."""
    with trio.CancelScope() as scope:
        async with trioboss.open_boss(dsn) as boss:
            await boss.create_queue("q", retry_limit=1)
            held = Held(boss)
            await boss.work("q", held.handle)
            id = await boss.send("q", "held")
            with trio.fail_after(TIMEOUT):
                await held.started.wait()
                sync_boss.cancel("q", id, conn=connection)
                await held.postponed()
            then()
            scope.cancel()
    return id


async def test_a_worker_that_is_cancelled_tries_a_postponed_outcome_once_more(dsn, sync_boss, connection):
    id = await cancel_a_worker_with_a_postponed_outcome(dsn, sync_boss, connection, then=connection.rollback)

    assert sync_boss.get_job_by_id("q", id).state is JobState.COMPLETED


async def test_a_worker_that_is_cancelled_beside_the_transaction_reports_what_it_could_not_settle(
    dsn, sync_boss, connection, caplog
):
    id = await cancel_a_worker_with_a_postponed_outcome(dsn, sync_boss, connection)

    assert "stopped beside an open transaction" in caplog.text
    connection.rollback()
    assert sync_boss.get_job_by_id("q", id).state is JobState.ACTIVE


async def test_other_keys_go_on_while_a_transaction_has_changed_one_job(boss, sync_boss, connection):
    await boss.create_queue("q", policy="key_strict_fifo")
    held = Held(boss)
    await boss.work("q", held.handle, concurrency=3)
    id = await boss.send("q", "held", singleton_key="changed")
    with trio.fail_after(TIMEOUT):
        await held.started.wait()
        sync_boss.cancel("q", id, conn=connection)
        held.go_on.set()
        others = [await boss.send("q", n, singleton_key=f"other {n}") for n in range(5)]
        assert [(await boss.wait_for("q", other)).state for other in others] == [JobState.COMPLETED] * 5

        connection.commit()
        after = await boss.send("q", "after", singleton_key="changed")
        assert (await boss.wait_for("q", after)).state is JobState.COMPLETED


async def end_beside(connection, boss, workers, grace):
    """A worker process whose job has ended, and whose outcome waits for the connection's transaction."""
    id = await boss.send("long", 0.5, retry_limit=0)
    worker = await workers.start("-q", "long", "--grace", grace)
    await worker.prints("began", id)
    connection.execute("update trioboss.live_job set notes = notes where id = %s", [id])
    await worker.prints("postponed", id)
    worker.signal()
    await worker.prints("stopping")
    return id, worker


async def test_a_process_that_stops_waits_for_the_transaction_for_its_grace(boss, workers, connection):
    id, worker = await end_beside(connection, boss, workers, "60")
    await trio.sleep(3)  # longer than a stop takes that does not wait: there is no event to wait for

    connection.rollback()

    assert await worker.ends() == 0
    assert (await boss.get_job_by_id("long", id)).state is JobState.COMPLETED


async def test_a_process_that_cannot_settle_a_finished_job_gives_it_back(boss, workers, connection):
    id, worker = await end_beside(connection, boss, workers, "0.1")

    assert await worker.ends() == 1
    connection.rollback()

    job = await eventually(boss, "long", id, JobState.RETRY)
    assert job.retry_count == 0
    outcomes = connection.execute("select outcome from trioboss.attempt where job_id = %s", [id]).fetchall()
    assert outcomes == [("released",)]
