"""Jobs that run for too long, handlers that do not end, and handlers that block the event loop."""

import math

import pytest
import trio
from scripted_ports import Fault, make_job

from trioboss import UsageError
from trioboss.events import JobFailed, JobStuck, LoopBlocked


async def sleep_as_told(job):
    await trio.sleep(job.data)


async def test_a_job_is_cancelled_when_it_expires_and_has_failed(work, open_worker, events):
    work.retries = False
    work.add(make_job(100, expire_in=5))
    stopped = []

    async def handler(job):
        try:
            await trio.sleep(100)
        finally:
            stopped.append((trio.current_time(), job.cancelled))

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert stopped == [(5, "expired")]
    assert work.outcomes[0][2].outcome == "expired"
    assert events.of(JobFailed)[0].error == "the job expired"


async def test_expiry_counts_from_when_the_claim_was_sent(work, open_worker):
    """The database starts the lease between the claim and its answer; here it must end first."""
    work.retries = False
    work.add(make_job(100, expire_in=5))
    work.inject("settle_and_claim", Fault(error=None, after=True, seconds=2))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 5


async def test_an_extended_lease_ends_later(work, open_worker):
    work.retries = False
    work.add(make_job(expire_in=5))

    async def handler(job):
        await trio.sleep(4)
        await job.extend(10)
        await trio.sleep(10.5)
        return "done"

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == '"done"'


async def test_an_extended_lease_still_ends(work, open_worker):
    work.retries = False
    work.add(make_job(expire_in=5))

    async def handler(job):
        await job.extend(10)
        await trio.sleep(100)

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 15

    assert work.outcomes[0][2].outcome == "expired"


async def test_an_extension_that_is_refused_is_the_handlers_own_error(work, open_worker):
    work.retries = False
    work.send()
    work.inject("extend", Fault(error=UsageError("extend: too often")))

    async def handler(job):
        await job.extend(10)

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert "extend: too often" in work.outcomes[0][2].error


async def test_an_attempt_whose_handler_does_not_end_is_settled_without_it_after_a_second(
    work, open_worker, events
):
    work.retries = False
    work.add(make_job(expire_in=5))

    async def handler(job):
        with trio.CancelScope(shield=True):
            await trio.sleep(60)

    async with open_worker(handler) as worker:
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == pytest.approx(6, abs=0.01)
        assert worker.slots.room() == 0

    assert work.outcomes[0][2].outcome == "expired"
    assert len(events.of(JobStuck)) == 1


async def test_a_stuck_handler_that_ends_at_last_frees_its_slot_and_settles_nothing(work, open_worker):
    work.retries = False
    work.add(make_job("stuck", expire_in=5), make_job("next"))

    async def handler(job):
        if job.data == "stuck":
            with trio.CancelScope(shield=True):
                await trio.sleep(60)
        return job.data

    async with open_worker(handler):
        await work.until(lambda: len(work.outcomes) == 2)
        assert trio.current_time() == 60

    assert [getattr(outcome, "outcome", outcome) for _, _, outcome in work.outcomes] == ["expired", '"next"']


async def test_a_stuck_handler_is_reported_at_once_however_long_its_lease_is(work, open_worker, events):
    """The cancellation has another reason than the lease: nothing else would wake the heartbeat for 15 minutes."""
    work.send()

    async def handler(job):
        with trio.CancelScope(shield=True):
            await trio.sleep(60)

    async with open_worker(handler, grace=10):
        await trio.sleep(1)

    assert [outcome for _, _, outcome in work.outcomes] == ["released"]
    assert len(events.of(JobStuck)) == 1


async def test_a_handler_that_blocks_the_event_loop_is_reported(work, open_worker, events):
    work.send()

    async def handler(job):
        trio.lowlevel.current_clock().jump(2)

    async with open_worker(handler):
        (blocked,) = await events.wait_for(LoopBlocked)

    assert blocked.seconds == pytest.approx(1.9)


@pytest.mark.parametrize("after", [0.05, 0.5, 20.3])
async def test_a_handler_that_blocks_the_event_loop_later_is_reported(work, open_worker, events, after):
    work.send()

    async def handler(job):
        await trio.sleep(after)
        trio.lowlevel.current_clock().jump(2.5)

    async with open_worker(handler):
        (blocked,) = await events.wait_for(LoopBlocked)

    assert 1.5 <= blocked.seconds <= 2.5


async def test_an_event_loop_that_is_not_blocked_is_not_reported(work, open_worker, events):
    work.send(3)

    async def handler(job):
        await trio.sleep(100 * job.data)

    async with open_worker(handler, concurrency=3):
        await work.until(lambda: len(work.outcomes) == 3)

    assert not events.of(LoopBlocked)


async def test_an_idle_worker_has_no_timer_for_blocked_loops(work, open_worker):
    work.send()

    async def handler(job):
        await trio.sleep(5)

    async with open_worker(handler) as worker:
        await work.until(lambda: work.outcomes)
        await trio.sleep(2)
        assert worker._lease_watchers._next_due() == math.inf


async def test_a_slow_claim_is_no_blocked_event_loop(work, open_worker, events):
    work.add(make_job(10))
    work.inject("settle_and_claim", Fault(error=None, seconds=5))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert not events.of(LoopBlocked)
