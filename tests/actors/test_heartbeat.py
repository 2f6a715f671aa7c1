"""The lease of a running job: when it is renewed, and when the job is stopped before somebody else may take it."""

import math

import pytest
import trio
from scripted_ports import Fault, ids, make_job

from trioboss import UsageError
from trioboss.events import JobFailed, JobStuck, LeaseLostEvent, LoopBlocked


async def sleep_as_told(job):
    await trio.sleep(job.data)


def beats(work):
    return [at for at, _ in work.renewals]


async def test_a_heartbeat_is_sent_four_times_in_its_interval(work, open_worker):
    work.add(make_job(7.5, heartbeat=8.0))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert beats(work) == [2, 4, 6]
    assert work.outcomes[0][2] == "null"


async def test_the_smallest_heartbeat_is_a_second(work, open_worker):
    work.add(make_job(1.2, heartbeat=1.0))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert [round(at, 3) for at in beats(work)] == [0.25, 0.5, 0.75, 1.0]


async def test_a_job_without_a_heartbeat_has_none(work, open_worker):
    work.add(make_job(500))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert not work.renewals


async def test_the_beats_of_jobs_that_started_together_share_a_statement(work, open_worker):
    jobs = [make_job(7, heartbeat=8.0) for _ in range(5)]
    work.add(*jobs)
    async with open_worker(sleep_as_told, concurrency=5):
        await work.until(lambda: len(work.outcomes) == 5)

    assert work.renewals == [(at, set(ids(jobs))) for at in (2, 4, 6)]


async def test_beats_that_come_while_one_is_under_way_share_the_next_statement(work, open_worker):
    jobs = [make_job(20, heartbeat=seconds) for seconds in (8.0, 10.0, 12.0)]
    work.add(*jobs)
    work.go_wrong("renew", Fault(error=None, seconds=1.5))
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


async def test_two_lost_beats_in_a_row_are_survived(work, open_worker):
    work.add(make_job(30, heartbeat=8.0))
    work.go_wrong("renew", Fault(), Fault(), Fault(error=None), Fault(), Fault(), Fault(error=None))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert beats(work)[:4] == [2, 4, 6, 8]
    assert work.outcomes[0][2] == "null"


async def test_a_job_whose_beats_are_not_confirmed_is_stopped_before_its_heartbeat_has_run_out(
    work, open_worker
):
    work.add(make_job(100, heartbeat=10.0))
    work.go_wrong("renew", *(Fault() for _ in range(10)))
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


async def test_the_countdown_begins_when_the_confirmed_beat_was_sent(work, open_worker):
    work.add(make_job(100, heartbeat=8.0))
    work.go_wrong("renew", Fault(error=None), *(Fault() for _ in range(10)))
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


async def test_a_beat_that_is_confirmed_late_counts_all_the_same(work, open_worker):
    """The database takes longer than the time between two beats, but not longer than the lease."""
    work.add(make_job(60, heartbeat=9.0))
    work.go_wrong("renew", *(Fault(error=None, seconds=3.0) for _ in range(30)))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == "null"


async def test_a_renewal_that_hangs_is_given_up(work, open_worker):
    work.add(make_job(60, heartbeat=40.0))
    work.go_wrong("renew", Fault(error=None, seconds=math.inf))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert beats(work)[:2] == [10, 20]
    assert work.outcomes[0][2] == "null"


# -- by hand


async def test_without_auto_heartbeat_nobody_beats_but_the_handler(work, open_worker):
    work.add(make_job(heartbeat=6.0, auto_heartbeat=False))

    async def handler(job):
        for _ in range(5):
            await trio.sleep(5)
            await job.touch()
        return "alive"

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert beats(work) == [5, 10, 15, 20, 25]
    assert work.outcomes[0][2] == '"alive"'


async def test_without_auto_heartbeat_a_handler_that_forgets_is_stopped(work, open_worker):
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


@pytest.mark.parametrize("call", ["progress", "extend"])
async def test_whatever_a_handler_says_is_a_heartbeat_too(work, open_worker, call):
    work.add(make_job(heartbeat=6.0, auto_heartbeat=False))

    async def handler(job):
        for number in range(1, 6):
            await trio.sleep(5)
            await getattr(job, call)(number)
        return "alive"

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == '"alive"'


# -- expiry


async def test_a_job_is_stopped_when_it_expires_and_that_is_its_failure(work, open_worker, events):
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
    """The database starts the lease somewhere between our question and its answer: ours must end first."""
    work.retries = False
    work.add(make_job(100, expire_in=5))
    work.go_wrong("settle_and_claim", Fault(error=None, after=True, seconds=2))
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
    work.go_wrong("extend", Fault(error=UsageError("extend: too often")))

    async def handler(job):
        await job.extend(10)

    async with open_worker(handler):
        await work.until(lambda: work.outcomes)

    assert "extend: too often" in work.outcomes[0][2].error


# -- handlers that do not end


async def test_a_handler_that_does_not_end_is_settled_without_it_after_a_second(work, open_worker, events):
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


async def test_a_stuck_handler_that_ends_at_last_gives_its_slot_back_and_says_nothing_more(work, open_worker):
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


async def test_a_stuck_handler_is_noticed_at_once_however_far_its_lease_goes(work, open_worker, events):
    """It is cancelled for another reason than its lease: nothing else would wake its heartbeat for 15 minutes."""
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
async def test_a_handler_that_holds_up_the_loop_is_reported_whenever_it_does(
    work, open_worker, events, after
):
    work.send()

    async def handler(job):
        await trio.sleep(after)
        trio.lowlevel.current_clock().jump(2.5)

    async with open_worker(handler):
        (blocked,) = await events.wait_for(LoopBlocked)

    assert 1.5 <= blocked.seconds <= 2.5


async def test_a_loop_that_is_not_held_up_is_not_reported(work, open_worker, events):
    work.send(3)

    async def handler(job):
        await trio.sleep(100 * job.data)

    async with open_worker(handler, concurrency=3):
        await work.until(lambda: len(work.outcomes) == 3)

    assert not events.of(LoopBlocked)


async def test_a_worker_at_rest_never_wakes_to_see_whether_the_loop_is_blocked(work, open_worker):
    work.send()

    async def handler(job):
        await trio.sleep(5)

    async with open_worker(handler) as worker:
        await work.until(lambda: work.outcomes)
        await trio.sleep(2)
        assert worker._lease_watchers._next_due() == math.inf


async def test_a_claim_that_took_long_is_no_blocked_loop(work, open_worker, events):
    work.add(make_job(10))
    work.go_wrong("settle_and_claim", Fault(error=None, seconds=5))
    async with open_worker(sleep_as_told):
        await work.until(lambda: work.outcomes)

    assert not events.of(LoopBlocked)
