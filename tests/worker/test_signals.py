"""SIGTERM loses nothing, and ends soon after the grace time. A second signal ends at once, and still loses nothing."""

import signal

import pytest
import trio
from worker_helpers import PATIENCE, eventually


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_short_job_comes_to_its_end(boss, workers, number):
    id = await boss.send("long", 0.5)
    worker = await workers.start("-q", "long")
    await worker.says("began", id)

    worker.signal(number)

    assert await worker.ends() == 0
    job = await boss.get_job_by_id("long", id)
    assert (job.state, job.attempt) == ("completed", 1)


async def test_a_hang_up_that_is_ignored_stays_ignored(boss, workers):
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        worker = await workers.start("-q", "short")
    finally:
        signal.signal(signal.SIGHUP, before)
    first = await boss.send("short", 1)
    await worker.says("began", first)

    worker.signal(signal.SIGHUP)

    second = await boss.send("short", 2)
    await worker.says("began", second)
    worker.signal()
    assert await worker.ends() == 0


async def test_a_long_job_is_given_back_with_no_attempt_spent(boss, workers):
    id = await boss.send("long")
    worker = await workers.start("-q", "long", "--grace", "0.2")
    await worker.says("began", id)

    worker.signal()

    assert await worker.ends() == 0
    assert worker.matching("stopping", id)
    job = await boss.get_job_by_id("long", id)
    assert (job.state, job.retry_count) == ("retry", 0)


async def test_jobs_that_wait_stay_where_they_are(boss, workers):
    first = await boss.send("long", 0.5)
    worker = await workers.start("-q", "long", "-c", "1")
    await worker.says("began", first)
    second = await boss.send("long", 0.5)

    worker.signal()

    assert await worker.ends() == 0
    assert (await boss.get_job_by_id("long", second)).state == "created"
    assert not worker.matching("began", second)


async def test_a_second_signal_does_not_wait_and_still_gives_back(boss, workers):
    id = await boss.send("long")
    worker = await workers.start("-q", "long", "--grace", "3600")
    await worker.says("began", id)

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert await worker.ends() == 0
    job = await boss.get_job_by_id("long", id)
    assert (job.state, job.retry_count) == ("retry", 0)


async def test_a_handler_that_ignores_everything_keeps_neither_the_process_nor_its_neighbours(boss, workers):
    stubborn, other = await boss.send("stubborn"), await boss.send("long")
    worker = await workers.start("-q", "long", "-q", "stubborn", "--grace", "3600")
    await worker.says("began", stubborn)
    await worker.says("began", other)

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert await worker.ends() == 1
    assert worker.matching("leaving without it")
    job = await boss.get_job_by_id("long", other)
    assert (job.state, job.retry_count) == ("retry", 0)
    with trio.fail_after(PATIENCE):
        await eventually(boss, "stubborn", stubborn, "retry")


async def test_a_handler_that_ignores_its_cancellation_is_left_behind_after_the_grace(boss, workers):
    id = await boss.send("stubborn")
    worker = await workers.start("-q", "stubborn", "--grace", "0.1")
    await worker.says("began", id)

    worker.signal()

    assert await worker.ends() == 1
    assert worker.matching("leaving without it")
    job = await boss.get_job_by_id("stubborn", id)
    assert (job.state, job.retry_count) == ("retry", 0)


async def test_a_neighbour_in_the_same_worker_is_given_back_as_well(boss, workers):
    """Both run in slots of one `work` call."""
    await boss.create_queue("mixed/a")
    stubborn, other = await boss.send("mixed/a", "stubborn"), await boss.send("mixed/a")
    worker = await workers.start(app="worker_apps:mixed")
    await worker.says("began", stubborn)
    await worker.says("began", other)

    worker.signal(signal.SIGTERM)
    worker.signal(signal.SIGINT)

    assert await worker.ends() == 1
    job = await boss.get_job_by_id("mixed/a", other)
    assert (job.state, job.retry_count) == ("retry", 0)


# -- several processes


async def test_a_supervisor_passes_both_signals_on(boss, workers):
    id = await boss.send("long")
    supervisor = await workers.start("-q", "long", "--processes", "2", "--grace", "3600")
    await supervisor.says("began", id)

    supervisor.signal(signal.SIGTERM)
    supervisor.signal(signal.SIGINT)

    assert await supervisor.ends() == 0
    job = await boss.get_job_by_id("long", id)
    assert (job.state, job.retry_count) == ("retry", 0)


async def test_processes_whose_supervisor_is_killed_stop_gracefully(boss, workers):
    id = await boss.send("long")
    supervisor = await workers.start("-q", "long", "--processes", "2", "--grace", "0.2")
    await supervisor.says("began", id)

    supervisor.signal(signal.SIGKILL)

    await supervisor.says("stopping", id)
    assert (await eventually(boss, "long", id, "retry")).retry_count == 0
