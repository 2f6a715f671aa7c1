"""How long a statement of a dispatcher may take, what ends it before, and how that is reported."""

import math

import pytest
import trio
import trio.testing
from scripted_ports import Fault

from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent


async def do_nothing(job):
    return None


async def test_a_statement_that_hangs_times_out_and_is_repeated(work, open_worker):
    work.send()
    work.inject("settle_and_claim", Fault(error=None, seconds=math.inf))
    async with open_worker(do_nothing):
        await work.until(lambda: work.outcomes)
        assert 20 <= trio.current_time() <= 20.1


@pytest.mark.parametrize("rest", [3.0, 7.0, 19.0, 100.0])
async def test_a_statement_has_at_least_fifteen_seconds_however_long_ago_the_last_one_was(
    work, open_worker, events, rest
):
    async with open_worker(do_nothing) as worker:
        await work.until(lambda: work.statements)
        await trio.sleep(rest)
        work.inject("settle_and_claim", Fault(error=None, seconds=14.9))
        work.send()
        worker.dispatchers["q"].ring()
        await work.until(lambda: work.outcomes)

    assert not events.of(ErrorEvent)


async def test_a_timeout_that_ends_while_the_dispatcher_waits_is_no_failure(work, open_worker, events):
    async with open_worker(do_nothing) as worker:
        await work.until(lambda: work.statements)
        await trio.sleep(19.99)
        work.send()
        worker.dispatchers["q"].ring()
        trio.lowlevel.current_clock().jump(0.02)  # a task that runs in between takes so long
        await work.until(lambda: work.outcomes)

    assert not events.of(ErrorEvent)


async def test_after_a_lost_answer_each_statement_has_its_own_timeout(work, open_worker, events):
    slow = [Fault(error=None, seconds=14) for _ in range(20)]
    done = trio.Event()

    async def handler(job):
        done.set()

    async with open_worker(handler) as worker:
        await trio.testing.wait_all_tasks_blocked()
        work.inject("settle_and_claim", Fault(after=True), *slow)
        work.inject("recover_unseen", *slow)
        work.send()
        worker.dispatchers["q"].ring()
        with trio.fail_after(60):
            await done.wait()
        work.faults.clear()
        assert len(events.of(ErrorEvent)) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(DatabaseUnavailable("gone")), "gone"),
        (Fault(DatabaseUnavailable("")), "DatabaseUnavailable"),
        (Fault(None, seconds=math.inf), "no answer in time"),
    ],
    ids=["with words", "without words", "silent"],
)
async def test_a_failed_statement_is_reported_with_its_reason(work, open_worker, events, fault, reason):
    work.inject("settle_and_claim", fault)
    async with open_worker(do_nothing):
        (event,) = await events.wait_for(ErrorEvent)

    assert event.error == reason


async def test_a_claim_under_way_is_completed_when_its_worker_is_cancelled(work, open_worker):
    work.send()
    work.inject("settle_and_claim", Fault(error=None, seconds=1.5))
    with trio.CancelScope() as scope:
        async with open_worker(do_nothing):
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

    assert trio.current_time() >= 1.5
    assert [outcome for _, _, outcome in work.outcomes] == ["released"]


async def test_outcomes_that_get_no_answer_at_the_very_end_are_reported(work, open_worker, events):
    async def never_end(job):
        await trio.sleep_forever()

    work.send()
    async with open_worker(never_end, grace=1.0):
        await work.until_running()
        work.inject("settle_and_claim", *(Fault(None, seconds=math.inf) for _ in range(9)))

    assert [event.error for event in events.of(ErrorEvent)] == ["no answer in time"] * 2  # and once before
    assert not work.outcomes
