"""Slots in real time: handlers in threads, and handlers without checkpoints."""

import threading

import pytest
import trio
import trio.testing
from scripted_ports import make_job

from trioboss.errors import LeaseLost
from trioboss.machines.attempt import CancelReason

IN_REAL_TIME = True


async def test_jobs_without_checkpoints_let_other_tasks_run(work, open_worker):
    work.send(5000)
    turns = []

    async def handler(job):
        for _ in range(2000):
            pass

    async def count_iterations():
        while True:
            await trio.lowlevel.checkpoint()
            turns.append(len(work.active))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_iterations)
        async with open_worker(handler, concurrency=1, prefetch=5000):
            await work.until(lambda: len(work.outcomes) == 5000)
        nursery.cancel_scope.cancel()

    assert len(turns) > 20


async def test_a_thread_that_is_left_running_keeps_its_slot_and_no_other(work, open_worker):
    first, second = make_job("linger", expire_in=0.3), make_job("quick")
    work.retries = False
    work.add(first)
    release = threading.Event()
    order = []

    def handler(job):
        order.append(job.data)
        if job.data == "linger":
            release.wait(20)

    async with open_worker(handler, thread=True) as worker:
        await work.until(lambda: work.outcomes)
        assert work.outcomes[0][2].outcome == "expired"
        work.add(second)
        worker.dispatchers["q"].ring()
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert worker.slots.room() == 0
        assert second.id not in work.active
        release.set()
        with trio.fail_after(20):
            await work.until(lambda: len(work.outcomes) == 2)

    assert order == ["linger", "quick"]


async def test_a_batch_in_a_thread_that_is_left_running_keeps_its_whole_slot(work, open_worker):
    work.retries = False
    work.add(make_job(expire_in=0.3), make_job(expire_in=0.3))
    release = threading.Event()

    def handler(jobs):
        release.wait(20)

    async with open_worker(handler, thread=True, batch_size=3) as worker:
        await work.until(lambda: len(work.outcomes) == 2)
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert worker.slots.room() == 0
        release.set()


async def test_a_thread_handler_that_is_cancelled_before_it_starts_leaves_no_thread(work, open_worker):
    work.add(make_job("never"))
    ran = []

    async with open_worker(ran.append, thread=True, grace=0) as worker:
        await work.until_running()
        worker.stop(0)

    assert worker.slots.room() == 1


@pytest.mark.parametrize("failure", [ValueError("in a thread"), SystemExit(1)])
async def test_an_exception_in_a_thread_is_the_failure(work, open_worker, failure):
    work.retries = False
    work.send()

    def handler(job):
        raise failure

    async with open_worker(handler, thread=True):
        await work.until(lambda: work.outcomes)

    assert type(failure).__name__ in work.outcomes[0][2].error


async def test_the_job_of_a_thread_has_the_methods_of_an_async_one(work, open_worker):
    work.add(make_job({"x": 1}, heartbeat=10.0))
    seen = []

    def handler(job):
        job.progress(0.5)
        job.touch()
        job.extend(60)
        seen.append((job.data, job.attempt, job.cancelled, job.id is not None))
        job.complete("early")
        raise job.retry()

    async with open_worker(handler, thread=True):
        await work.until(lambda: work.outcomes)

    assert seen == [({"x": 1}, 1, None, True)]
    assert [call for call, _ in work.calls] == ["progress", "complete"]
    assert len(work.renewals) == 1
    assert work.outcomes[0][2] == '"early"'


async def test_a_thread_whose_job_was_cancelled_gets_an_error_from_the_job(work, open_worker):
    (job,) = work.send()
    told = []
    running, go_on, ended = trio.Event(), threading.Event(), trio.Event()
    token = trio.lowlevel.current_trio_token()

    def handler(job):
        trio.from_thread.run_sync(running.set)
        go_on.wait(20)
        try:
            job.progress(1)
        except BaseException as error:
            told.append(type(error))
            raise
        finally:
            token.run_sync_soon(ended.set)

    async with open_worker(handler, thread=True) as worker:
        await running.wait()
        work.lose(job)
        worker.lease_checker.check(worker.slots.running, CancelReason.CANCELLED)
        await work.until(lambda: work.checks)
        go_on.set()
        with trio.fail_after(20):
            await ended.wait()

    assert told == [LeaseLost]
    assert not work.outcomes
