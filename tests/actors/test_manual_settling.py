"""A job that its handler settles itself: it is counted once, and the handler may go on."""

import pytest
import trio
from scripted_ports import Fault, make_job

from trioboss.errors import LeaseLost
from trioboss.events import JobCompleted, JobFailed, JobStuck, LeaseLostEvent
from trioboss.machines.attempt import CancelReason
from trioboss.model.states import JobState


def counted(worker):
    ((counted),) = worker.statistics().dispatchers
    return counted.completed, counted.failed, counted.lost


async def run_one(work, open_worker, handler, **options):
    """Run a job until its handler has ended; return its worker."""
    work.add(make_job(**options))
    async with open_worker(handler) as worker:
        await work.until_running()
        while worker.slots.running:
            await worker.slots.empty.wait()
    return worker


async def test_a_handler_that_has_completed_its_job_goes_on_without_renewals(work, open_worker):
    cleaned_up = []

    async def handler(job):
        await job.complete("early")
        await trio.sleep(100)
        cleaned_up.append(job.cancelled)

    await run_one(work, open_worker, handler, heartbeat=8.0)

    assert cleaned_up == [None]
    assert not work.renewals


async def test_a_renewal_that_is_refused_after_a_manual_completion_cancels_nothing(work, open_worker):
    cleaned_up = []
    work.inject("renew", Fault(error=None, seconds=1.0))

    async def handler(job):
        await trio.sleep(2.5)  # a renewal is under way
        await job.complete("early")
        await trio.sleep(100)
        cleaned_up.append(job.cancelled)

    await run_one(work, open_worker, handler, heartbeat=8.0)

    assert cleaned_up == [None]


async def test_a_check_does_not_cancel_a_handler_that_has_settled_its_job(work, open_worker):
    work.add(make_job())
    cleaned_up = []

    async def handler(job):
        await job.complete("early")
        await trio.sleep(10)
        cleaned_up.append(job.cancelled)

    async with open_worker(handler) as worker:
        await work.until(lambda: work.outcomes)
        worker.lease_checker.check(worker.slots.running, CancelReason.CANCELLED)
        await work.until(lambda: work.checks)

    assert cleaned_up == [None]


async def test_a_handler_that_has_completed_its_job_is_cancelled_when_the_job_would_expire(
    work, open_worker, events
):
    ended = []

    async def handler(job):
        await job.complete("early")
        try:
            await trio.sleep_forever()
        finally:
            ended.append((trio.current_time(), job.cancelled))

    worker = await run_one(work, open_worker, handler, expire_in=30.0)

    assert ended == [(30.0, "expired")]
    assert counted(worker) == (1, 0, 0)
    (event,) = await events.wait_for(JobCompleted)
    assert event.ran == 30.0


async def test_a_job_that_was_completed_is_counted_once_although_its_handler_gets_stuck(
    work, open_worker, events
):
    async def handler(job):
        await job.complete("early")
        with trio.CancelScope(shield=True):
            await trio.sleep(100)

    worker = await run_one(work, open_worker, handler, expire_in=30.0)

    await events.wait_for(JobStuck)
    assert counted(worker) == (1, 0, 0)


@pytest.mark.parametrize("state", [JobState.RETRY, JobState.FAILED])
async def test_a_job_that_its_handler_failed_manually_is_reported_as_failed(work, open_worker, events, state):
    (job,) = work.send()

    async def handler(handed):
        work.lose(job)
        handed.settled_manually(state, "why", committed=True)

    async with open_worker(handler) as worker:
        (event,) = await events.wait_for(JobFailed)

    assert (event.error, event.state) == ("why", state)
    assert counted(worker) == (0, 1, 0)


async def test_a_handler_that_reports_progress_after_completing_gets_an_error_and_goes_on(work, open_worker):
    cleaned_up = []

    async def handler(job):
        await job.complete("early")
        with pytest.raises(LeaseLost):
            await job.progress(1)
        await trio.sleep(1)
        cleaned_up.append(job.cancelled)

    await run_one(work, open_worker, handler)

    assert cleaned_up == [None]


# -- in a transaction of the handler's own


@pytest.mark.parametrize("ends", ["commit", "roll back"])
async def test_a_lease_is_renewed_until_the_handlers_transaction_has_committed(work, open_worker, ends):
    cancelled = []
    job = make_job(heartbeat=8.0)

    async def handler(handed):
        await trio.sleep(1)
        work.locked.add(job.id)
        handed.settled_manually(JobState.COMPLETED, "", committed=False)
        await trio.sleep(20)  # the transaction is open
        work.locked.clear()
        if ends == "commit":
            work.lose(job)
        await trio.sleep(20)
        cancelled.append(handed.cancelled)

    work.add(job)
    async with open_worker(handler) as worker:
        await work.until_running()
        while worker.slots.running:
            await worker.slots.empty.wait()

    # After a commit the next renewal finds no lease, and is the last one.
    assert work.renewals[-1][0] == (22 if ends == "commit" else 40)
    assert cancelled == [None]


async def test_a_handler_whose_settlement_was_rolled_back_is_cancelled_when_its_lease_is_lost(
    work, open_worker, events
):
    ended = []
    job = make_job(heartbeat=8.0)

    async def handler(handed):
        handed.settled_manually(JobState.COMPLETED, "", committed=False)  # and rolled back at once
        await trio.sleep(5)
        work.lose(job)
        try:
            await trio.sleep_forever()
        finally:
            ended.append((trio.current_time(), handed.cancelled))

    work.add(job)
    async with open_worker(handler) as worker:
        await events.wait_for(LeaseLostEvent)

    assert ended == [(6, "lease_lost")]
    assert counted(worker) == (0, 0, 1)


async def test_a_row_that_another_transaction_has_locked_does_not_confirm_the_lease(
    work, open_worker, events
):
    job = make_job(heartbeat=8.0)
    work.locked.add(job.id)

    async def handler(handed):
        await trio.sleep_forever()

    work.add(job)
    async with open_worker(handler):
        await events.wait_for(LeaseLostEvent)

    assert trio.current_time() == pytest.approx(7.2)
