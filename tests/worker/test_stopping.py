"""A boss that stops, and workers that are started at that moment."""

import logging
import re

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


class StopLines(logging.Handler):
    """Keeps the lines of stops, and sets an event at the first."""

    def __init__(self):
        super().__init__()
        self.lines, self.logged = [], trio.Event()

    def emit(self, record):
        if record.getMessage().startswith("stopping"):
            self.lines.append(record.getMessage())
            self.logged.set()


@pytest.fixture
def stop_lines():
    logger, handler = logging.getLogger("trioboss"), StopLines()
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


async def test_a_program_logs_what_its_stop_waits_for(dsn, stop_lines):
    started = trio.Event()

    async def wait_for_the_stop(job):
        started.set()
        await stop_lines.logged.wait()

    with trio.fail_after(TIMEOUT):
        async with trioboss.open_boss(dsn, migrate=False, grace=90) as boss:
            await boss.create_queue("q")
            await boss.work("q", wait_for_the_stop)
            id = await boss.send("q")
            await started.wait()

    (line,) = stop_lines.lines
    assert re.fullmatch(rf"stopping: 1 min 30 s left for 1 running job, longest .* m?s: q {id}", line)


async def test_a_stop_that_waits_for_nothing_is_not_logged(dsn, stop_lines):
    async with trioboss.open_boss(dsn, migrate=False) as boss:
        await boss.create_queue("q")
        await boss.work("q", ignore)

    assert not stop_lines.lines
