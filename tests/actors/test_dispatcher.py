"""Dispatcher and completer: which statements they send, and when."""

import trio
import trio.testing
from scripted_ports import ids, make_job, outputs

from trioboss.events import JobCompleted, JobFailed, JobStarted
from trioboss.machines import settling


async def do_nothing(job):
    return None


async def sleep_as_told(job):
    await trio.sleep(job.data)


def claims(work):
    return [statement for statement in work.statements if statement.request is not None]


async def test_it_claims_once_and_then_waits(work, open_worker):
    async with open_worker(do_nothing, concurrency=5):
        await trio.sleep(3600)
        assert len(work.statements) == 1
        (claim,) = work.statements

    request = claim.request
    assert (request.limit, request.promote_due, request.idle, claim.notify) == (5, True, True, "*busy")


async def test_a_notification_starts_a_job_at_once(work, open_worker):
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


async def test_a_deferred_job_that_is_notified_starts_exactly_when_it_is_due(work, open_worker):
    async with open_worker(do_nothing) as worker:
        await trio.sleep(10)
        work.deferred.append((17.25, make_job()))
        worker.dispatchers["q"].ring(delay=7.25)
        await work.until(lambda: work.outcomes)

        assert trio.current_time() == 17.25
        assert worker.dispatchers["q"].statistics().woken_by_timer == 1


async def test_a_retry_starts_exactly_when_it_is_due(work, open_worker):
    """There is no notification: the claim that goes with its failure tells the next due time."""
    work.send()

    async def handler(job):
        if job.attempt == 1:
            work.retries = False
            work.deferred.append((trio.current_time() + 5, job.job))
            raise ValueError("wrong")

    async with open_worker(handler, concurrency=10):
        await work.until(lambda: len(work.outcomes) == 2)
        assert trio.current_time() == 5


async def test_a_backlog_is_claimed_without_further_notifications(work, open_worker):
    work.send(1000)
    async with open_worker(do_nothing, concurrency=3):
        with trio.fail_after(1):
            await work.until(lambda: len(work.outcomes) == 1000)


async def test_while_it_is_saturated_it_has_no_idle_marker(work, open_worker):
    work.send(50)
    async with open_worker(do_nothing, concurrency=10):
        await work.until(lambda: len(work.outcomes) == 50)
        await trio.testing.wait_all_tasks_blocked()
        marks = [claim.request.idle for claim in claims(work) if claim.request.idle is not None]

    assert marks == [True, False, True]


async def test_the_busy_notification_is_sent_every_ten_seconds(work, open_worker):
    work.add(*(make_job(1) for _ in range(35)))
    async with open_worker(sleep_as_told):
        await work.until(lambda: len(work.outcomes) == 35)

    assert [statement.at for statement in work.statements if statement.notify] == [0, 10, 20, 30]


async def test_outcomes_that_come_together_are_settled_in_one_statement(work, open_worker):
    work.add(*(make_job(1) for _ in range(8)))
    async with open_worker(sleep_as_told, concurrency=8):
        await work.until(lambda: len(work.outcomes) == 8)

    assert [len(statement.settlements.completed) for statement in work.statements][:2] == [0, 8]


async def test_an_outcome_is_settled_at_once(work, open_worker):
    work.add(make_job(1.5))
    async with open_worker(sleep_as_told, concurrency=8):
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 1.5


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
    assert (failed.id, failed.error, failed.state) == (bad.id, "ValueError: wrong in two lines", "failed")


async def test_an_outcome_waits_a_moment_for_a_claim_that_lacks_only_room(work, open_worker):
    work.add(*(make_job(1) for _ in range(20)))
    async with open_worker(sleep_as_told, prefetch=10):
        await work.until(lambda: work.outcomes)

        assert trio.current_time() == 1.005
        assert work.statements[-1].request is None


async def test_outcomes_of_a_worker_with_prefetch_go_with_its_claims(work, open_worker):
    work.send(200)
    async with open_worker(do_nothing, prefetch=10):
        await work.until(lambda: len(work.outcomes) == 200)

    alone = [statement for statement in work.statements if statement.request is None]
    # Without the settle delay, every other statement would only settle.
    assert len(alone) < len(work.statements) / 4


async def test_large_outputs_are_settled_in_pieces(work, open_worker, monkeypatch):
    """A document of outputs is one parameter of a statement: it must not grow with the number of jobs."""
    monkeypatch.setattr(settling, "MOST_CHARACTERS", 4_000)
    work.send(30)

    async def handler(job):
        await trio.sleep(1)  # all end together
        return "x" * 900

    async with open_worker(handler, concurrency=30):
        await work.until(lambda: len(work.outcomes) == 30)

    sizes = [sum(len(text) for _, text in statement.settlements.completed) for statement in work.statements]
    assert sum(sizes) >= 27_000
    assert max(sizes) <= 4_000


async def test_an_output_that_is_larger_than_a_piece_is_settled_alone(work, open_worker, monkeypatch):
    monkeypatch.setattr(settling, "MOST_CHARACTERS", 500)
    work.send(3)

    async def handler(job):
        await trio.sleep(1)
        return "x" * 900

    async with open_worker(handler, concurrency=3):
        await work.until(lambda: len(work.outcomes) == 3)

    assert max(len(statement.settlements.completed) for statement in work.statements) == 1
