"""Waiting for jobs, and for workers that stop: timeouts hold, and invalid ones are refused."""

import math
from datetime import timedelta
from uuid import uuid4

import pytest
import trio
from worker_helpers import TIMEOUT, closed, next_of

import trioboss
from trioboss.events import ListenerDown

WRONG = ["abc", math.nan, -1, True, timedelta(seconds=-1)]


async def test_a_timeout_ends_a_wait_while_the_database_is_away(boss, dsn, server_dsn):
    id = await boss.send("long", start_after=3600)
    async with boss.events() as events:
        with closed(server_dsn, dsn):
            await next_of(ListenerDown, events)
            with trio.fail_after(TIMEOUT), pytest.raises(TimeoutError):
                await boss.wait_for("long", id, timeout=0.1)


@pytest.mark.parametrize("timeout", WRONG)
async def test_an_invalid_timeout_is_named(boss, timeout):
    with pytest.raises(trioboss.UsageError, match=r"^timeout: "):
        await boss.wait_for("long", uuid4(), timeout=timeout)


async def test_a_timeout_may_be_a_timedelta(boss):
    id = await boss.send("long", start_after=3600)

    with pytest.raises(TimeoutError):
        await boss.wait_for("long", id, timeout=timedelta(milliseconds=10))


@pytest.mark.parametrize("grace", WRONG)
async def test_an_invalid_grace_is_named_and_stops_nothing(boss, grace):
    await boss.work("long", trio.sleep)

    with pytest.raises(trioboss.UsageError, match=r"^grace: "):
        await boss.off_work("long", grace=grace)

    assert [worker.stopping for worker in boss.statistics().workers] == [False]


async def test_a_second_off_work_shortens_the_first(boss):
    began = trio.Event()

    async def handle(job):
        began.set()
        await trio.sleep_forever()

    await boss.work("long", handle)
    id = await boss.send("long")
    await began.wait()

    with trio.fail_after(TIMEOUT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: boss.off_work("long", grace=3600))
            while not boss.statistics().workers[0].stopping:  # noqa: ASYNC110 (it has no event)
                await trio.sleep(0.01)
            await boss.off_work("long", grace=0)

    job = await boss.get_job_by_id("long", id)
    assert (job.state, job.retry_count) == ("retry", 0)


async def test_a_handler_may_stop_its_own_worker(boss):
    async def handle(job):
        worker.stop(60)
        return "done"

    worker = await boss.work("long", handle)
    id = await boss.send("long")

    with trio.fail_after(TIMEOUT):
        assert (await boss.wait_for("long", id)).output == "done"
        await worker.stopped.wait()
