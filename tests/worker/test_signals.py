"""SIGTERM loses no job and ends the process soon after the grace. A second signal ends it at once, and loses none."""

import signal

import pytest
import trio
from worker_helpers import TIMEOUT, eventually


async def is_released(boss, queue, id):
    """Whether the job is queued again, and no retry is spent."""
    job = await boss.get_job_by_id(queue, id)
    return (job.state, job.retry_count) == ("retry", 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_short_job_is_completed_after_a_signal(boss, workers, number):
    id = await boss.send("long", 0.5)
    worker = await workers.start("-q", "long")
    await worker.prints("began", id)

    worker.signal(number)

    assert await worker.ends() == 0
    job = await boss.get_job_by_id("long", id)
    assert (job.state, job.attempt) == ("completed", 1)


async def test_a_sighup_that_is_ignored_stays_ignored(boss, workers):
    """As with nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        worker = await workers.start("-q", "short")
    finally:
        signal.signal(signal.SIGHUP, before)
    first = await boss.send("short", 1)
    await worker.prints("began", first)

    worker.signal(signal.SIGHUP)

    second = await boss.send("short", 2)
    await worker.prints("began", second)
    worker.signal()
    assert await worker.ends() == 0


async def test_a_long_job_is_released_without_spending_a_retry(boss, workers):
    id = await boss.send("long")
    worker = await workers.start("-q", "long", "--grace", "0.2")
    await worker.prints("began", id)

    worker.signal()

    assert await worker.ends() == 0
    assert worker.matching("stopping", id)
    assert await is_released(boss, "long", id)


async def test_queued_jobs_are_not_claimed_after_a_signal(boss, workers):
    first = await boss.send("long", 0.5)
    worker = await workers.start("-q", "long", "-c", "1")
    await worker.prints("began", first)
    second = await boss.send("long", 0.5)

    worker.signal()

    assert await worker.ends() == 0
    assert (await boss.get_job_by_id("long", second)).state == "created"
    assert not worker.matching("began", second)


async def test_a_second_signal_stops_at_once_and_releases_jobs(boss, workers):
    id = await boss.send("long")
    worker = await workers.start("-q", "long", "--grace", "3600")
    await worker.prints("began", id)

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert await worker.ends() == 0
    assert await is_released(boss, "long", id)


async def test_a_handler_that_ignores_everything_keeps_neither_the_process_nor_other_jobs(boss, workers):
    stubborn, other = await boss.send("stubborn"), await boss.send("long")
    worker = await workers.start("-q", "long", "-q", "stubborn", "--grace", "3600")
    await worker.prints("began", stubborn)
    await worker.prints("began", other)

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert await worker.ends() == 1
    assert worker.matching("exiting without it")
    assert await is_released(boss, "long", other)
    with trio.fail_after(TIMEOUT):
        await eventually(boss, "stubborn", stubborn, "retry")


async def test_a_process_exits_after_the_grace_although_a_handler_ignores_its_cancellation(boss, workers):
    id = await boss.send("stubborn")
    worker = await workers.start("-q", "stubborn", "--grace", "0.1")
    await worker.prints("began", id)

    worker.signal()

    assert await worker.ends() == 1
    assert worker.matching("exiting without it")
    assert await is_released(boss, "stubborn", id)


async def test_another_job_of_the_same_worker_is_released_as_well(boss, workers):
    """Both run in slots of one `work` call."""
    await boss.create_queue("mixed/a")
    stubborn, other = await boss.send("mixed/a", "stubborn"), await boss.send("mixed/a")
    worker = await workers.start(app="worker_apps:mixed")
    await worker.prints("began", stubborn)
    await worker.prints("began", other)

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert await worker.ends() == 1
    assert await is_released(boss, "mixed/a", other)


# -- several processes


async def test_a_supervisor_forwards_both_signals(boss, workers):
    id = await boss.send("long")
    supervisor = await workers.start("-q", "long", "--processes", "2", "--grace", "3600")
    await supervisor.prints("began", id)

    supervisor.signal(signal.SIGTERM)
    supervisor.signal(signal.SIGINT)

    assert await supervisor.ends() == 0
    assert await is_released(boss, "long", id)


async def test_processes_whose_supervisor_is_killed_stop_gracefully(boss, workers):
    id = await boss.send("long")
    supervisor = await workers.start("-q", "long", "--processes", "2", "--grace", "0.2")
    await supervisor.prints("began", id)

    supervisor.signal(signal.SIGKILL)

    await supervisor.prints("stopping", id)
    assert (await eventually(boss, "long", id, "retry")).retry_count == 0
