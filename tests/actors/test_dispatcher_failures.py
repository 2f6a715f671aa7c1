"""Dispatcher and completer while the database fails: no outcome is dropped, no lease is forgotten."""

import math
from itertools import pairwise

import pytest
import trio
import trio.testing
from scripted_ports import Fault, make_job

from trioboss.errors import UnknownQueue
from trioboss.events import ErrorEvent, JobCompleted, LeaseLostEvent


async def do_nothing(job):
    return None


async def sleep_as_told(job):
    await trio.sleep(job.data)


def claims(work):
    return [statement for statement in work.statements if statement.request is not None]


async def test_an_outcome_that_could_not_be_settled_goes_with_the_next_statement(work, open_worker, events):
    work.add(make_job(1))
    async with open_worker(sleep_as_told, concurrency=2):
        await work.until_running()
        work.inject("settle_and_claim", Fault(), Fault())
        await work.until(lambda: work.outcomes)

    assert [outcome for _, _, outcome in work.outcomes] == ["null"]
    assert len(events.of(ErrorEvent)) == 2
    assert len(await events.wait_for(JobCompleted)) == 1


async def test_an_outcome_whose_answer_is_lost_counts_once(work, open_worker, events):
    work.add(make_job(1))
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running()
        work.inject("settle_and_claim", Fault(after=True))
        await work.until(lambda: len(work.statements) >= 3)
        await trio.testing.wait_all_tasks_blocked()
        statistics = worker.dispatchers["q"].statistics()

    assert [outcome for _, _, outcome in work.outcomes] == ["null"]
    assert (statistics.completed, statistics.lost) == (1, 0)
    assert not events.of(LeaseLostEvent)


async def test_an_outcome_that_the_database_refuses_is_reported_as_lost(work, open_worker, events):
    (job,) = jobs = [make_job(1)]
    work.add(*jobs)
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        work.lose(job)
        (lost,) = await events.wait_for(LeaseLostEvent)
        assert worker.dispatchers["q"].statistics().lost == 1

    assert lost.id == job.id
    assert not work.outcomes


async def test_while_the_database_fails_statements_become_less_frequent(work, open_worker):
    work.inject("settle_and_claim", *(Fault() for _ in range(12)))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.statements) >= 13)
        times = [statement.at for statement in work.statements]

    gaps = [b - a for a, b in pairwise(times)]
    assert all(0.05 * 2**i <= gap <= 0.1 * 2**i for i, gap in enumerate(gaps[:6]))
    assert all(5 <= gap <= 10 for gap in gaps[7:])


async def test_while_the_database_fails_outcomes_make_no_further_statements(work, open_worker):
    work.add(make_job(1))
    async with open_worker(sleep_as_told, concurrency=2):
        await work.until_running()
        work.inject("settle_and_claim", *(Fault() for _ in range(12)))
        await work.until(lambda: work.outcomes)
        assert len(work.statements) <= 15
        assert trio.current_time() > 20


async def test_a_failed_claim_with_nothing_to_settle_has_no_later_effect(work, open_worker):
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until(lambda: work.statements)
        work.inject("settle_and_claim", Fault())
        worker.dispatchers["q"].ring()
        await trio.sleep(5)
        before = len(claims(work))
        work.add(make_job(1))
        worker.dispatchers["q"].ring()
        await work.until(lambda: work.outcomes)
        await trio.sleep(5)

        assert len(claims(work)) == before + 1


async def test_jobs_of_a_claim_whose_answer_is_lost_are_recovered_before_the_next_claim(work, open_worker):
    (job,) = work.send()
    work.inject("settle_and_claim", Fault(after=True))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.outcomes) == 2)

    assert work.outcomes == [(job.id, 1, "recovered"), (job.id, 2, "null")]
    assert [call for call, _ in work.calls] == ["recover_unseen"]


async def test_recoveries_become_less_frequent_while_the_database_fails(work, open_worker):
    work.send()
    work.inject("settle_and_claim", Fault(after=True))
    work.inject("recover_unseen", *(Fault() for _ in range(8)))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.outcomes) == 2)

    assert len(work.calls) == 9
    assert trio.current_time() > 10  # half of 0.1, 0.2, … 10 seconds at least


async def test_running_jobs_are_not_recovered(work, open_worker):
    running = make_job(10)
    work.add(running)
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running()
        work.inject("settle_and_claim", Fault(after=True))
        unseen = make_job(0)
        work.add(unseen)
        worker.dispatchers["q"].ring()
        await work.until(lambda: len(work.outcomes) == 3)

    assert work.outcomes == [(unseen.id, 1, "recovered"), (unseen.id, 2, "null"), (running.id, 1, "null")]


async def test_a_job_that_was_claimed_again_unseen_is_not_mistaken_for_its_known_attempt(work, open_worker):
    """Its failure and its next claim were one transaction, and the answer was lost."""
    work.send()
    attempts = []

    async def handler(job):
        attempts.append(job.attempt)
        if job.attempt == 1:
            work.inject("settle_and_claim", Fault(after=True))
            raise ValueError("wrong")

    async with open_worker(handler):
        with trio.fail_after(60):
            await work.until(lambda: len(work.outcomes) == 3)

    assert attempts == [1, 3]
    assert [attempt for _, attempt, _ in work.outcomes] == [1, 2, 3]


async def test_a_recovery_that_fails_is_repeated_by_the_dispatcher(work, open_worker):
    work.send()
    work.inject("settle_and_claim", Fault(after=True))
    work.inject("recover_unseen", Fault(), Fault(error=None, seconds=math.inf))
    async with open_worker(do_nothing):
        await work.until(lambda: len(work.outcomes) == 2)


async def test_outcomes_of_a_deleted_queue_are_reported_as_lost(work, open_worker, events):
    work.add(make_job(1))
    async with open_worker(sleep_as_told) as worker:
        await work.until_running()
        work.active.clear()
        work.inject("settle_and_claim", *(Fault(UnknownQueue("q")) for _ in range(50)))
        await events.wait_for(LeaseLostEvent)
        began = trio.current_time()
        worker.stop(30)
        await worker.stopped.wait()
        assert trio.current_time() - began < 1


async def test_a_dispatcher_that_crashes_is_restarted_a_few_times(work, open_worker, events):
    work.send()
    work.inject("settle_and_claim", *(Fault(RuntimeError("surprise")) for _ in range(3)))
    async with open_worker(do_nothing) as worker:
        await work.until(lambda: work.outcomes)
        assert worker.statistics().restarts == {"dispatcher q": 3}


async def test_a_dispatcher_that_crashes_too_often_ends_the_worker(work, open_worker):
    work.inject("settle_and_claim", *(Fault(RuntimeError("surprise")) for _ in range(100)))
    with pytest.raises(ExceptionGroup) as caught:
        async with open_worker(do_nothing):
            await trio.sleep(100)

    assert "dispatcher q crashed 6 times" in repr(caught.value.exceptions)


async def test_outcomes_of_a_statement_during_which_the_dispatcher_crashed_are_not_lost(work, open_worker):
    work.add(make_job(1))
    async with open_worker(sleep_as_told):
        await work.until_running()
        work.inject("settle_and_claim", Fault(RuntimeError("surprise")))
        await work.until(lambda: work.outcomes)
