"""The lease of a running job: when it is renewed, and when the job is cancelled before others may take it."""

import math

import pytest
import trio
from scripted_ports import Fault, ids, make_job

from trioboss.events import LeaseLostEvent


async def sleep_as_told(job):
    await trio.sleep(job.data)


def renewals(work):
    return [at for at, _ in work.renewals]


async def test_a_heartbeat_is_sent_four_times_in_its_interval(work, open_worker):
    work.add(make_job(7.5, heartbeat=8.0))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert renewals(work) == [2, 4, 6]
    assert work.outcomes[0][2] == "null"


async def test_the_smallest_heartbeat_is_a_second(work, open_worker):
    work.add(make_job(1.2, heartbeat=1.0))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert [round(at, 3) for at in renewals(work)] == [0.25, 0.5, 0.75, 1.0]


async def test_a_job_without_a_heartbeat_has_none(work, open_worker):
    work.add(make_job(500))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert not work.renewals


async def test_the_renewals_of_jobs_that_started_together_share_a_statement(work, open_worker):
    jobs = [make_job(7, heartbeat=8.0) for _ in range(5)]
    work.add(*jobs)
    async with open_worker(sleep_as_told, concurrency=5):
        await work.until(lambda: len(work.outcomes) == 5)

    assert work.renewals == [(at, set(ids(jobs))) for at in (2, 4, 6)]


async def test_renewals_that_come_while_one_is_under_way_share_the_next_statement(work, open_worker):
    jobs = [make_job(20, heartbeat=seconds) for seconds in (8.0, 10.0, 12.0)]
    work.add(*jobs)
    work.inject("renew", Fault(error=None, seconds=1.5))
    async with open_worker(sleep_as_told, concurrency=3):
        await work.until(lambda: len(work.renewals) == 2)

    assert work.renewals[:2] == [(2, {jobs[0].id}), (3.5, {jobs[1].id, jobs[2].id})]


@pytest.mark.parametrize("shield", [False, True], ids=["ends", "gets stuck"])
async def test_a_lease_that_is_found_lost_is_reported_once_however_its_handler_ends(
    work, open_worker, events, shield
):
    (job,) = jobs = [make_job(100, heartbeat=8.0)]
    work.add(*jobs)

    async def handler(running):
        with trio.CancelScope(shield=shield):
            await trio.sleep(30)

    async with open_worker(handler) as worker:
        await work.until_running()
        work.lose(job)
        await worker.slots.empty.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert worker.dispatchers["q"].statistics().lost == 1

    assert [event.id for event in events.of(LeaseLostEvent)] == [job.id]


async def test_a_job_whose_lease_is_found_lost_is_cancelled_and_not_settled(work, open_worker):
    (job,) = jobs = [make_job(100, heartbeat=8.0)]
    work.add(*jobs)
    stopped = []

    async def handler(running):
        try:
            await trio.sleep(100)
        finally:
            stopped.append((trio.current_time(), running.cancelled))

    async with open_worker(handler) as worker:
        await work.until_running()
        work.lose(job)
        await worker.slots.empty.wait()

    assert stopped == [(2, "lease_lost")]
    assert not work.outcomes


async def test_two_renewals_in_a_row_may_be_lost(work, open_worker):
    work.add(make_job(30, heartbeat=8.0))
    work.inject("renew", Fault(), Fault(), Fault(error=None), Fault(), Fault(), Fault(error=None))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert renewals(work)[:4] == [2, 4, 6, 8]
    assert work.outcomes[0][2] == "null"


async def test_a_job_whose_renewals_are_not_confirmed_is_cancelled_before_its_lease_ends(work, open_worker):
    work.add(make_job(100, heartbeat=10.0))
    work.inject("renew", *(Fault() for _ in range(10)))
    stopped = []

    async def handler(running):
        try:
            await trio.sleep(100)
        finally:
            stopped.append((trio.current_time(), running.cancelled))

    async with open_worker(handler) as worker:
        await work.until_running()
        await worker.slots.empty.wait()

    assert stopped == [(9, "lease_lost")]
    assert not work.outcomes or work.outcomes[0][2] == "recovered"


async def test_a_lease_counts_from_when_the_confirmed_renewal_was_sent(work, open_worker):
    work.add(make_job(100, heartbeat=8.0))
    work.inject("renew", Fault(error=None), *(Fault() for _ in range(10)))
    stopped = []

    async def handler(running):
        try:
            await trio.sleep(100)
        finally:
            stopped.append(round(trio.current_time(), 3))

    async with open_worker(handler) as worker:
        await work.until_running()
        await worker.slots.empty.wait()

    assert stopped == [2 + 0.9 * 8]


async def test_a_renewal_that_is_confirmed_late_counts(work, open_worker):
    """The database takes longer than the time between two renewals, but not longer than the lease."""
    work.add(make_job(60, heartbeat=9.0))
    work.inject("renew", *(Fault(error=None, seconds=3.0) for _ in range(30)))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == "null"


async def test_a_renewal_that_hangs_times_out(work, open_worker):
    work.add(make_job(60, heartbeat=40.0))
    work.inject("renew", Fault(error=None, seconds=math.inf))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert renewals(work)[:2] == [10, 20]
    assert work.outcomes[0][2] == "null"


async def test_without_auto_heartbeat_only_the_handler_renews_the_lease(work, open_worker):
    work.add(make_job(heartbeat=6.0, auto_heartbeat=False))

    async def handler(job):
        for _ in range(5):
            await trio.sleep(5)
            await job.touch()
        return "alive"

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert renewals(work) == [5, 10, 15, 20, 25]
    assert work.outcomes[0][2] == '"alive"'


async def test_without_auto_heartbeat_a_handler_that_does_not_renew_its_lease_is_cancelled(work, open_worker):
    work.add(make_job(heartbeat=10.0, auto_heartbeat=False))
    stopped = []

    async def handler(job):
        await job.touch()
        try:
            await trio.sleep(100)
        finally:
            stopped.append(trio.current_time())

    async with open_worker(handler) as worker:
        await work.until_running()
        await worker.slots.empty.wait()

    assert stopped == [9]


async def test_a_renewal_by_the_handler_beside_another_transaction_does_not_count(work, open_worker):
    (job,) = work.send(heartbeat=10.0, auto_heartbeat=False)
    work.locked.add(job.id)
    stopped = []

    async def handler(job):
        await trio.sleep(5)
        await job.touch()
        try:
            await trio.sleep(100)
        finally:
            stopped.append(trio.current_time())

    async with open_worker(handler) as worker:
        await work.until_running()
        await worker.slots.empty.wait()

    assert stopped == [9]


@pytest.mark.parametrize("call", ["progress", "extend"])
async def test_progress_and_extensions_are_heartbeats(work, open_worker, call):
    work.add(make_job(heartbeat=6.0, auto_heartbeat=False))

    async def handler(job):
        for number in range(1, 6):
            await trio.sleep(5)
            await getattr(job, call)(number)
        return "alive"

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == '"alive"'
