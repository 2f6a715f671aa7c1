"""Dispatcher and completer: what is asked of the database and when, and what becomes of a failure on the way."""

import math
from itertools import pairwise

import attrs
import pytest
import trio
import trio.testing
from scripted_ports import Fault, ids, make_job, outputs

from trioboss.errors import UnknownQueue
from trioboss.events import ErrorEvent, JobCompleted, JobFailed, JobStarted, LeaseLostEvent
from trioboss.machines.attempt import CancelReason


async def do_nothing(job):
    return None


async def sleep_as_told(job):
    await trio.sleep(job.data)


def claims(work):
    return [exchange for exchange in work.exchanges if exchange.request is not None]


async def test_it_asks_once_and_then_rests_for_ever(work, open_worker):
    async with open_worker(do_nothing, concurrency=5):
        await trio.sleep(3600)
        assert len(work.exchanges) == 1
        (claim,) = work.exchanges

    assert (claim.request.limit, claim.promote_due, claim.idle, claim.notify) == (5, True, True, "*busy")


async def test_a_ring_starts_a_job_at_once(work, open_worker):
    async with open_worker(do_nothing) as worker:
        await trio.sleep(100)
        (job,) = work.send()
        worker.dispatchers["q"].ring()
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 100

    assert outputs(work) == {job.id: "null"}


async def test_a_deferred_job_starts_exactly_when_it_is_due(work, open_worker):
    work.deferred.append((41.5, make_job()))
    async with open_worker(do_nothing):
        await work.until(lambda: work.outcomes)

        assert trio.current_time() == 41.5
        assert {claim.at for claim in claims(work)} == {0, 41.5}


async def test_a_deferred_job_that_is_announced_starts_exactly_when_it_is_due(work, open_worker):
    async with open_worker(do_nothing) as worker:
        await trio.sleep(10)
        work.deferred.append((17.25, make_job()))
        worker.dispatchers["q"].ring(delay=7.25)
        await work.until(lambda: work.outcomes)

        assert trio.current_time() == 17.25
        assert worker.dispatchers["q"].statistics().woken_by_timer == 1


async def test_a_retry_starts_exactly_when_it_is_due(work, open_worker):
    """Nobody rings for it: the claim that goes with its failure says when."""
    work.send()

    async def handler(job):
        if job.attempt == 1:
            work.retries = False
            work.deferred.append((trio.current_time() + 5, job.job))
            raise ValueError("wrong")

    async with open_worker(handler, concurrency=10):
        await work.until(lambda: len(work.outcomes) == 2)
        assert trio.current_time() == 5


async def test_a_backlog_drains_without_a_further_ring(work, open_worker):
    work.send(1000)
    async with open_worker(do_nothing, concurrency=3):
        with trio.fail_after(1):
            await work.until(lambda: len(work.outcomes) == 1000)


async def test_while_there_is_a_rush_senders_are_told_that_nobody_sleeps(work, open_worker):
    work.send(50)
    async with open_worker(do_nothing, concurrency=10):
        await work.until(lambda: len(work.outcomes) == 50)
        await trio.testing.wait_all_tasks_blocked()
        marks = [claim.idle for claim in claims(work) if claim.idle is not None]

    assert marks == [True, False, True]


async def test_that_there_is_work_is_said_once_in_ten_seconds(work, open_worker):
    work.add(*(make_job(1) for _ in range(35)))
    async with open_worker(sleep_as_told):
        await work.until(lambda: len(work.outcomes) == 35)

    assert [exchange.at for exchange in work.exchanges if exchange.notify] == [0, 10, 20, 30]


async def test_outcomes_that_came_together_are_settled_together(work, open_worker):
    work.add(*(make_job(1) for _ in range(8)))
    async with open_worker(sleep_as_told, concurrency=8):
        await work.until(lambda: len(work.outcomes) == 8)

    assert [len(exchange.settlements.completed) for exchange in work.exchanges][:2] == [0, 8]


async def test_an_outcome_is_settled_at_once(work, open_worker):
    work.add(make_job(1.5))
    async with open_worker(sleep_as_told, concurrency=8):
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 1.5


# -- what goes wrong


async def test_an_outcome_that_could_not_be_settled_goes_with_the_next_exchange(work, open_worker, events):
    work.add(make_job(1))
    async with open_worker(sleep_as_told, concurrency=2):
        await work.until_running()
        work.go_wrong("settle_and_claim", Fault(), Fault())
        await work.until(lambda: work.outcomes)

    assert [outcome for _, _, outcome in work.outcomes] == ["null"]
    assert len(events.of(ErrorEvent)) == 2
    assert len(await events.wait_for(JobCompleted)) == 1


async def test_an_outcome_whose_answer_got_lost_counts_once(work, open_worker, events):
    work.add(make_job(1))
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running()
        work.go_wrong("settle_and_claim", Fault(after=True))
        await work.until(lambda: len(work.exchanges) >= 3)
        await trio.testing.wait_all_tasks_blocked()
        statistics = worker.dispatchers["q"].statistics()

    assert [outcome for _, _, outcome in work.outcomes] == ["null"]
    assert (statistics.completed, statistics.lost) == (1, 0)
    assert not events.of(LeaseLostEvent)


async def test_an_outcome_that_nobody_wants_any_more_is_reported_as_lost(work, open_worker, events):
    (job,) = jobs = [make_job(1)]
    work.add(*jobs)
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        work.lose(job)
        (lost,) = await events.wait_for(LeaseLostEvent)
        assert worker.dispatchers["q"].statistics().lost == 1

    assert lost.id == job.id
    assert not work.outcomes


async def test_while_the_database_fails_it_is_asked_less_and_less_often(work, open_worker):
    work.go_wrong("settle_and_claim", *(Fault() for _ in range(12)))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.exchanges) >= 13)
        times = [exchange.at for exchange in work.exchanges]

    gaps = [b - a for a, b in pairwise(times)]
    assert all(0.05 * 2**i <= gap <= 0.1 * 2**i for i, gap in enumerate(gaps[:6]))
    assert all(5 <= gap <= 10 for gap in gaps[7:])


async def test_while_the_database_fails_outcomes_are_not_tried_more_often_either(work, open_worker):
    work.add(make_job(1))
    async with open_worker(sleep_as_told, concurrency=2):
        await work.until_running()
        work.go_wrong("settle_and_claim", *(Fault() for _ in range(12)))
        await work.until(lambda: work.outcomes)
        assert len(work.exchanges) <= 15
        assert trio.current_time() > 20


async def test_an_exchange_that_failed_with_nothing_to_settle_leaves_no_trace(work, open_worker):
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until(lambda: work.exchanges)
        work.go_wrong("settle_and_claim", Fault())
        worker.dispatchers["q"].ring()
        await trio.sleep(5)
        before = len(claims(work))
        work.add(make_job(1))
        worker.dispatchers["q"].ring()
        await work.until(lambda: work.outcomes)
        await trio.sleep(5)

        assert len(claims(work)) == before + 1


async def test_jobs_of_a_claim_whose_answer_got_lost_are_found_before_the_next_claim(work, open_worker):
    (job,) = work.send()
    work.go_wrong("settle_and_claim", Fault(after=True))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.outcomes) == 2)

    assert work.outcomes == [(job.id, 1, "recovered"), (job.id, 2, "null")]
    assert [call for call, _ in work.calls] == ["recover_unseen"]


async def test_unseen_jobs_are_looked_for_less_and_less_often_while_the_database_fails(work, open_worker):
    work.send()
    work.go_wrong("settle_and_claim", Fault(after=True))
    work.go_wrong("recover_unseen", *(Fault() for _ in range(8)))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.outcomes) == 2)

    assert len(work.calls) == 9
    assert trio.current_time() > 10  # half of 0.1, 0.2, … 10 seconds at least


async def test_jobs_that_run_are_not_taken_for_unseen_ones(work, open_worker):
    running = make_job(10)
    work.add(running)
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running()
        work.go_wrong("settle_and_claim", Fault(after=True))
        unseen = make_job(0)
        work.add(unseen)
        worker.dispatchers["q"].ring()
        await work.until(lambda: len(work.outcomes) == 3)

    assert work.outcomes == [(unseen.id, 1, "recovered"), (unseen.id, 2, "null"), (running.id, 1, "null")]


async def test_a_job_that_was_leased_to_us_again_unseen_is_not_taken_for_the_attempt_we_know(
    work, open_worker
):
    """Its failure and its next lease were one transaction, and the answer got lost."""
    work.send()
    attempts = []

    async def handler(job):
        attempts.append(job.attempt)
        if job.attempt == 1:
            work.go_wrong("settle_and_claim", Fault(after=True))
            raise ValueError("wrong")

    async with open_worker(handler):
        with trio.fail_after(60):
            await work.until(lambda: len(work.outcomes) == 3)

    assert attempts == [1, 3]
    assert [attempt for _, attempt, _ in work.outcomes] == [1, 2, 3]


async def test_looking_for_unseen_jobs_may_fail_as_well(work, open_worker):
    work.send()
    work.go_wrong("settle_and_claim", Fault(after=True))
    work.go_wrong("recover_unseen", Fault(), Fault(error=None, seconds=math.inf))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.outcomes) == 2)


async def test_a_queue_that_is_gone_takes_its_outcomes_along(work, open_worker, events):
    work.add(make_job(1))
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        work.active.clear()
        work.go_wrong("settle_and_claim", *(Fault(UnknownQueue("q")) for _ in range(50)))
        await events.wait_for(LeaseLostEvent)
        began = trio.current_time()
        worker.stop(30)
        await worker.stopped.wait()
        assert trio.current_time() - began < 1


async def test_a_surprise_is_survived_a_few_times(work, open_worker, events):
    work.send()
    work.go_wrong("settle_and_claim", *(Fault(RuntimeError("surprise")) for _ in range(3)))
    async with open_worker(do_nothing) as worker:
        await work.until(lambda: work.outcomes)
        assert worker.statistics().restarts == {"dispatcher q": 3}


async def test_a_surprise_that_does_not_end_ends_the_worker(work, open_worker):
    work.go_wrong("settle_and_claim", *(Fault(RuntimeError("surprise")) for _ in range(100)))
    with pytest.raises(ExceptionGroup) as caught:
        async with open_worker(do_nothing):
            await trio.sleep(100)

    assert "dispatcher q crashed 6 times" in repr(caught.value.exceptions)


async def test_what_was_on_its_way_when_a_surprise_came_is_not_lost(work, open_worker):
    work.add(make_job(1))
    async with open_worker(sleep_as_told):
        await work.until_running()
        work.go_wrong("settle_and_claim", Fault(RuntimeError("surprise")))
        await work.until(lambda: work.outcomes)


# -- cancelled by somebody else


async def test_a_word_that_cancels_is_checked_before_anything_is_stopped(work, open_worker):
    jobs = [make_job(5), make_job(5)]
    work.add(*jobs)
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running(2)
        work.lose(jobs[0])
        worker.checker.check(worker.slots.running, CancelReason.CANCELLED)
        await work.until(lambda: work.outcomes)

    assert ids(jobs)[1:] == list(outputs(work))
    assert work.checks == [(0, set(ids(jobs)))]


async def test_a_check_that_fails_is_made_again(work, open_worker):
    (job,) = jobs = [make_job(50)]
    work.add(*jobs)
    work.go_wrong("check", Fault(), Fault(error=None, seconds=math.inf), Fault())
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        work.lose(job)
        worker.checker.check(worker.slots.running, CancelReason.CANCELLED)
        await worker.slots.empty.wait()
        assert trio.current_time() < 10

    assert not work.outcomes


async def test_a_job_that_is_cancelled_while_its_claim_is_under_way_is_stopped_too(work, open_worker):
    (job,) = jobs = [make_job(50)]
    work.add(*jobs)
    work.go_wrong("settle_and_claim", Fault(error=None, after=True, seconds=2))
    async with open_worker(sleep_as_told) as worker:
        await work.until(lambda: work.active)
        work.lose(job)
        worker.dispatchers["q"].cancelled_elsewhere()
        await worker.slots.empty.wait()
        assert trio.current_time() == 2

    assert not work.outcomes


async def test_a_fenced_dispatcher_claims_nothing_and_gives_back_what_it_gave_up(work, open_worker):
    (job,) = jobs = [make_job(1000)]
    work.add(*jobs)
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        before = len(work.exchanges)
        for running in list(worker.slots.running):
            running.cancel(CancelReason.LEASE_LOST)
        worker.dispatchers["q"].fence()
        work.send()
        worker.dispatchers["q"].ring()
        await trio.sleep(60)
        assert len(work.exchanges) == before
        worker.dispatchers["q"].reconnected()
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0] == (job.id, 1, "recovered")


async def test_a_job_that_was_given_up_and_ends_late_is_given_back_when_it_ends(work, open_worker):
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
        worker.dispatchers["q"].fence()
        worker.dispatchers["q"].reconnected()
        await work.until(lambda: len(work.outcomes) == 2)
        assert trio.current_time() == 30

    assert work.outcomes == [(job.id, 1, "recovered"), (job.id, 2, "null")]


# -- what is reported


async def test_one_event_is_reported_for_each_start_and_each_end(work, open_worker, events):
    work.retries = False
    good, bad = make_job("good"), make_job("bad")
    work.add(good, bad)

    async def handler(job):
        await trio.sleep(2)
        if job.data == "bad":
            raise ValueError("wrong\nin two lines")

    async with open_worker(handler, concurrency=2):
        await work.until(lambda: len(work.outcomes) == 2)

    assert [event.id for event in events.of(JobStarted)] == ids([good, bad])
    (completed,) = events.of(JobCompleted)
    assert (completed.queue, completed.id, completed.attempt, completed.ran) == ("q", good.id, 1, 2)
    (failed,) = events.of(JobFailed)
    assert (failed.id, failed.error, failed.state) == (bad.id, "ValueError: wrong", "failed")


async def test_an_outcome_waits_a_moment_for_a_claim_that_lacks_only_room(work, open_worker):
    work.add(*(make_job(1) for _ in range(20)))
    async with open_worker(sleep_as_told, prefetch=10):
        await work.until(lambda: work.outcomes)

        assert trio.current_time() == 1.005
        assert work.exchanges[-1].request is None


async def test_outcomes_of_a_worker_that_leases_ahead_go_with_its_claims(work, open_worker):
    work.send(200)
    async with open_worker(do_nothing, prefetch=10):
        await work.until(lambda: len(work.outcomes) == 200)

    alone = [exchange for exchange in work.exchanges if exchange.request is None]
    # Who would not wait for company would settle every other time.
    assert len(alone) < len(work.exchanges) / 4


async def test_of_two_attempts_of_a_job_that_end_together_only_the_later_one_counts(
    work, open_worker, events
):
    """The database answers by job: asked for both at once, it would be taken to have accepted both, or none."""
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
    settled = [exchange.settlements.completed for exchange in work.exchanges]
    assert [[lease.attempt for lease, _ in leases] for leases in settled if leases] == [[2]]


async def test_a_beat_of_an_attempt_does_not_keep_an_earlier_one_of_the_same_job_alive(
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
