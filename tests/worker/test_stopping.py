"""A boss that stops, and workers that are started at that moment."""

import pytest
import trio
from worker_helpers import TIMEOUT

import trioboss


async def ignore(job):
    pass


@pytest.mark.parametrize("kind", ["work", "on_complete"])
async def test_a_boss_that_stops_takes_no_more_workers(dsn, kind):
    refused = []

    with trio.fail_after(TIMEOUT):
        async with trioboss.open_boss(dsn, migrate=False) as boss:

            async def stop_and_work(job):
                boss.stop()
                while not boss.statistics().workers[0].stopping:  # noqa: ASYNC110 (it has no event)
                    await trio.sleep(0.01)
                with pytest.raises(trioboss.UsageError, match="stopping") as caught:
                    await getattr(boss, kind)("other", ignore)
                refused.append(caught)

            await boss.create_queue("q")
            await boss.create_queue("other")
            await boss.work("q", stop_and_work)
            await boss.send("q")
            await trio.sleep_forever()

    assert refused


async def test_a_worker_that_cannot_start_does_not_delay_the_stop(dsn):
    async def work_on_nothing(boss):
        with pytest.raises(trioboss.UnknownQueue):
            await boss.work("nowhere", ignore)

    with trio.fail_after(TIMEOUT):
        async with trio.open_nursery() as nursery, trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.wait_listening()
            nursery.start_soon(work_on_nothing, boss)
            while not boss.statistics().workers:
                await trio.lowlevel.checkpoint()
