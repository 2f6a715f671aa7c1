"""A handler is cancelled, whoever ends its job, and from wherever."""

import pytest
import trio
from worker_helpers import TIMEOUT

import trioboss


@pytest.fixture
async def other(dsn):
    """A boss that runs no jobs, in the place of another process."""
    async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False) as other:
        yield other


ENDS = {
    "complete": lambda other, id: other.complete("q", id),
    "fail": lambda other, id: other.fail("q", id, "no"),
    "complete as a job": lambda other, id: complete_as_job(other, id),
    "cancel": lambda other, id: other.cancel("q", id),
    "delete_job": lambda other, id: other.delete_job("q", id),
    "delete_queue": lambda other, id: other.delete_queue("q"),
    "delete_queue and create_queue": lambda other, id: recreate(other),
    "delete_all_jobs": lambda other, id: other.delete_all_jobs("q"),
    "clear_storage": lambda other, id: other.clear_storage(),
}


async def complete_as_job(other, id):
    await other.complete("q", await other.get_job_by_id("q", id))


async def recreate(other):
    await other.delete_queue("q")
    await other.create_queue("q")


@pytest.mark.parametrize("partition", [False, True], ids=["common", "partitioned"])
@pytest.mark.parametrize("end", ENDS)
async def test_a_handler_is_cancelled_when_somebody_else_ends_its_job(boss, other, end, partition):
    started, reasons = trio.Event(), []
    ended = trio.Event()

    async def handle(job):
        started.set()
        try:
            await trio.sleep_forever()
        finally:
            reasons.append(job.cancelled)
            ended.set()

    await boss.create_queue("q", partition=partition, retry_limit=0)
    await boss.work("q", handle)
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT):
        await started.wait()
        await ENDS[end](other, id)
        await ended.wait()

    assert reasons == ["cancelled"]


async def test_the_worker_goes_on_after_a_queue_was_deleted_and_created_again(boss, other):
    started = trio.Event()
    done = trio.Event()

    async def handle(job):
        if job.data == "second":
            done.set()
            return
        started.set()
        await trio.sleep_forever()

    await boss.create_queue("q")
    await boss.work("q", handle)
    await boss.send("q", "first")
    with trio.fail_after(TIMEOUT):
        await started.wait()
        await recreate(other)
        await other.send("q", "second")
        await done.wait()


@pytest.mark.parametrize("method", ["complete", "fail"])
async def test_a_handler_that_names_its_own_job_by_id_goes_on(boss, method):
    went_on = trio.Event()

    async def settle(job):
        await getattr(boss, method)("q", job.id, "by id")

    async def handle(job):
        async with trio.open_nursery() as nursery:  # also in a task that it has started
            nursery.start_soon(settle, job)
        await trio.sleep(0.5)
        went_on.set()

    await boss.create_queue("q", retry_limit=0)
    worker = await boss.work("q", handle)
    id = await boss.send("q")
    with trio.fail_after(TIMEOUT):
        await went_on.wait()
        job = await boss.wait_for("q", id)
        await boss.off_work(worker)

    assert job.state == ("completed" if method == "complete" else "failed")
    ((counted),) = worker.statistics().dispatchers
    assert (counted.completed, counted.failed, counted.lost) == (
        (1, 0, 0) if method == "complete" else (0, 1, 0)
    )


async def test_a_handler_that_ends_the_job_of_another_cancels_that_one_alone(boss):
    ended = []
    both, other_ended = trio.Event(), trio.Event()
    ids = {}

    async def handle(job):
        ids[job.data] = job.id
        if len(ids) == 2:
            both.set()
        await both.wait()
        try:
            if job.data == "ender":
                await boss.complete("q", ids["other"])
                return
            await trio.sleep_forever()
        finally:
            ended.append((job.data, job.cancelled))
            if job.data == "other":
                other_ended.set()

    await boss.create_queue("q", retry_limit=0)
    await boss.work("q", handle, concurrency=2)
    jobs = [await boss.send("q", data) for data in ("ender", "other")]
    with trio.fail_after(TIMEOUT):
        for id in jobs:
            await boss.wait_for("q", id)
        await other_ended.wait()

    assert sorted(ended, key=str) == [("ender", None), ("other", "cancelled")]
