"""Jobs that were cancelled elsewhere, leases that were given up, and two attempts of one job in one process."""

import math

import attrs
import trio
import trio.testing
from scripted_ports import Fault, ids, make_job, outputs

from trioboss.events import JobCompleted, LeaseLostEvent
from trioboss.machines.attempt import CancelReason


async def sleep_as_told(job):
    await trio.sleep(job.data)


async def test_a_cancel_notification_is_checked_before_a_job_is_cancelled(work, open_worker):
    jobs = [make_job(5), make_job(5)]
    work.add(*jobs)
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running(2)
        work.lose(jobs[0])
        worker.lease_checker.check(worker.slots.running, CancelReason.CANCELLED)
        await work.until(lambda: work.outcomes)

    assert ids(jobs)[1:] == list(outputs(work))
    assert work.checks == [(0, set(ids(jobs)))]


async def test_a_check_that_fails_is_repeated(work, open_worker):
    (job,) = jobs = [make_job(50)]
    work.add(*jobs)
    work.inject("check", Fault(), Fault(error=None, seconds=math.inf), Fault())
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        work.lose(job)
        worker.lease_checker.check(worker.slots.running, CancelReason.CANCELLED)
        await worker.slots.empty.wait()
        assert trio.current_time() < 10

    assert not work.outcomes


async def test_a_job_that_is_cancelled_while_its_claim_is_under_way_is_cancelled_here(work, open_worker):
    (job,) = jobs = [make_job(50)]
    work.add(*jobs)
    work.inject("settle_and_claim", Fault(error=None, after=True, seconds=2))
    async with open_worker(sleep_as_told) as worker:
        await work.until(lambda: work.active)
        work.lose(job)
        worker.dispatchers["q"].cancelled_elsewhere()
        await worker.slots.empty.wait()
        assert trio.current_time() == 2

    assert not work.outcomes


async def test_a_dispatcher_whose_presence_is_lost_claims_nothing_and_recovers_the_leases_it_gave_up(
    work, open_worker
):
    (job,) = jobs = [make_job(1000)]
    work.add(*jobs)
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        before = len(work.statements)
        for running in list(worker.slots.running):
            running.cancel(CancelReason.LEASE_LOST)
        worker.dispatchers["q"].presence_lost()
        work.send()
        worker.dispatchers["q"].ring()
        await trio.sleep(60)
        assert len(work.statements) == before
        worker.dispatchers["q"].reconnected()
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0] == (job.id, 1, "recovered")


async def test_a_job_that_was_given_up_and_ends_late_is_recovered_when_it_ends(work, open_worker):
    (job,) = work.send()
    started = trio.Event()

    async def handler(running):
        if running.attempt == 1:
            started.set()
            with trio.CancelScope(shield=True):
                await trio.sleep(30)

    async with open_worker(handler, concurrency=2) as worker:
        await started.wait()
        for running in list(worker.slots.running):
            running.cancel(CancelReason.LEASE_LOST)
        worker.dispatchers["q"].presence_lost()
        worker.dispatchers["q"].reconnected()
        await work.until(lambda: len(work.outcomes) == 2)
        assert trio.current_time() == 30

    assert work.outcomes == [(job.id, 1, "recovered"), (job.id, 2, "null")]


async def test_of_two_attempts_of_a_job_that_end_together_only_the_later_one_counts(
    work, open_worker, events
):
    """The database answers by job: with both in one statement its answer would count for both."""
    (job,) = work.send()
    release = trio.Event()

    async def handler(job):
        await release.wait()

    async with open_worker(handler, concurrency=2) as worker:
        await work.until_running()
        work.add(attrs.evolve(work.active.pop(job.id), state="retry"))
        worker.dispatchers["q"].ring()
        await work.until_running()
        release.set()

    assert [(id, attempt) for id, attempt, _ in work.outcomes] == [(job.id, 2)]
    assert [event.attempt for event in events.of(JobCompleted)] == [2]
    assert [event.attempt for event in events.of(LeaseLostEvent)] == [1]
    settled = [statement.settlements.completed for statement in work.statements]
    assert [[lease.attempt for lease, _ in leases] for leases in settled if leases] == [[2]]


async def test_a_renewal_of_an_attempt_does_not_keep_an_earlier_one_of_the_same_job_alive(
    work, open_worker, events
):
    (job,) = work.send(heartbeat=10.0)

    async def handler(job):
        await trio.sleep_forever()

    async with open_worker(handler, concurrency=2, grace=0) as worker:
        await work.until_running()
        work.add(attrs.evolve(work.active.pop(job.id), state="retry"))
        worker.dispatchers["q"].ring()
        await work.until_running()
        await trio.sleep(8)

        assert [running.job.attempt for running in worker.slots.running] == [2]
