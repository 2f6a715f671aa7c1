"""Slots: how many jobs run at once, when the next one starts, what is leased ahead, which queue gets the room."""

from datetime import UTC, datetime
from itertools import pairwise

import attrs
import trio
from scripted_ports import Fault, ids, make_job, outputs

from trioboss.events import JobStuck
from trioboss.machines.attempt import CancelReason

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define
class Clocking:
    """A handler that takes as many seconds as its job says, and records when each started and ended."""

    starts: dict = attrs.field(factory=dict)
    ends: dict = attrs.field(factory=dict)
    at_once: int = 0
    most_at_once: int = 0

    async def __call__(self, job):
        self.starts[job.id] = trio.current_time()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await trio.sleep(job.data)
        self.at_once -= 1
        self.ends[job.id] = trio.current_time()


async def test_one_job_runs_at_a_time_by_default(work, open_worker):
    work.add(*(make_job(1) for _ in range(3)))
    handler = Clocking()
    began = trio.current_time()
    async with open_worker(handler):
        await work.until(lambda: len(work.outcomes) == 3)

    assert handler.most_at_once == 1
    assert trio.current_time() - began == 3


async def test_concurrency_is_how_many_jobs_run_at_once(work, open_worker):
    work.add(*(make_job(1) for _ in range(20)))
    handler = Clocking()
    began = trio.current_time()
    async with open_worker(handler, concurrency=10):
        await work.until(lambda: len(work.outcomes) == 20)

    assert handler.most_at_once == 10
    assert trio.current_time() - began == 2


async def test_the_next_job_starts_the_moment_one_ends(work, open_worker):
    jobs = [make_job(seconds) for seconds in (10, 1, 1, 1, 1)]
    work.add(*jobs)
    handler = Clocking()
    began = trio.current_time()
    async with open_worker(handler, concurrency=2):
        await work.until(lambda: len(work.outcomes) == 5)

    assert [handler.starts[id] - began for id in ids(jobs)] == [0, 0, 1, 2, 3]


async def test_no_more_is_claimed_than_there_are_free_slots(work, open_worker):
    work.add(*(make_job(1) for _ in range(30)))
    async with open_worker(Clocking(), concurrency=4):
        await work.until(lambda: len(work.outcomes) == 30)
        assert all(e.request is None or e.request.limit <= 4 for e in work.statements)


async def test_outcomes_and_the_next_claim_share_a_statement(work, open_worker):
    work.add(*(make_job(1) for _ in range(3)))
    async with open_worker(Clocking()):
        await work.until(lambda: len(work.outcomes) == 3)
        sent = [(len(e.settlements.completed), e.request is not None) for e in work.statements]

    assert sent[:3] == [(0, True), (1, True), (1, True)]


async def test_with_prefetch_jobs_are_leased_ahead_and_claimed_when_half_of_them_are_used(work, open_worker):
    work.add(*(make_job(1) for _ in range(40)))
    async with open_worker(Clocking(), concurrency=1, prefetch=10):
        await work.until(lambda: len(work.outcomes) == 39)
        limits = [e.request.limit for e in work.statements if e.request is not None and e.request.limit]

    assert limits[0] == 11
    assert limits[1:5] == [5, 5, 5, 5]


# -- several queues


async def test_an_empty_queue_does_not_delay_another_one(work, open_worker):
    work.add(make_job(1, queue="b"))
    began = trio.current_time()
    async with open_worker(Clocking(), queue="*", queues=("a", "b", "c")):
        await work.until(lambda: work.outcomes)
        assert trio.current_time() - began == 1


async def test_two_busy_queues_use_a_slot_alternately(work, open_worker):
    for queue in ("a", "b"):
        work.add(*(make_job(1, queue=queue) for _ in range(50)))
    order = []

    async def handler(job):
        order.append(job.queue)
        await trio.sleep(1)

    async with open_worker(handler, queue="*", queues=("a", "b")):
        await work.until(lambda: len(work.outcomes) == 60)

    assert all(before != after for before, after in pairwise(order[:60]))


async def test_a_dispatcher_that_has_ended_does_not_wait_for_room(work, open_worker):
    for queue in ("a", "b"):
        work.add(*(make_job(1, queue=queue) for _ in range(10)))
    async with open_worker(Clocking(), queue="*", queues=("a", "b")) as worker:
        await work.until(lambda: any(job.queue == "a" for job in work.active.values()))
        worker.set_queues({"a": LONG_AGO})  # while the dispatcher of "b" waits for the only slot
        await work.until(lambda: not work.jobs["a"])


async def test_a_deferred_job_of_another_queue_gets_the_slot_as_soon_as_it_is_free(work, open_worker):
    handler = Clocking()
    long = make_job(10, queue="a")
    deferred = make_job(1, queue="b")
    began = trio.current_time()
    work.add(long)
    work.deferred.append((began + 5, deferred))
    async with open_worker(handler, queue="*", queues=("a", "b")):
        await work.until(lambda: len(work.outcomes) == 2)

    assert handler.starts[deferred.id] - began == 10


async def test_a_queue_whose_claims_fail_does_not_keep_the_room(work, open_worker):
    handler = Clocking()
    work.inject("settle_and_claim", *(Fault() for _ in range(3)))
    work.add(make_job(1, queue="a"), make_job(1, queue="b"), make_job(1, queue="c"))
    with trio.fail_after(100):
        async with open_worker(handler, queue="*", queues=("a", "b", "c")):
            await work.until(lambda: len(work.outcomes) == 3)


async def test_a_cancelled_job_makes_room_for_another_queue(work, open_worker):
    endless = make_job(10_000, queue="a")
    work.add(endless)
    handler = Clocking()
    async with open_worker(handler, queue="*", queues=("a", "b")) as worker:
        await work.until_running()
        work.add(make_job(1, queue="b"))
        worker.dispatchers["b"].ring()
        await trio.testing.wait_all_tasks_blocked()
        work.lose(endless)
        worker.lease_checker.check(worker.slots.running, CancelReason.CANCELLED)
        with trio.fail_after(5):
            await work.until(lambda: work.outcomes)


async def test_a_slot_goes_on_after_a_cancelled_handler_has_returned(work, open_worker):
    jobs = [make_job() for _ in range(5)]
    work.add(*jobs)
    starts = []

    async def cancel_the_first(job):
        starts.append(job.id)
        if job.id == jobs[0].id:
            job._running.cancel(CancelReason.EXPIRED)
        else:
            await trio.sleep(1)

    async with open_worker(cancel_the_first, prefetch=4):
        await work.until(lambda: len(work.outcomes) == 5)

    assert starts == [job.id for job in jobs]
    assert outputs(work) == dict.fromkeys(starts, "null")


# -- jobs in the buffer


async def test_a_job_that_is_cancelled_in_the_buffer_never_starts(work, open_worker):
    jobs = [make_job(10) for _ in range(3)]
    work.add(*jobs)
    handler = Clocking()
    async with open_worker(handler, prefetch=5) as worker:
        await work.until_running(3)
        work.lose(jobs[1])
        worker.lease_checker.check(worker.slots.running, CancelReason.CANCELLED)
        await work.until(lambda: len(work.outcomes) == 2)

    assert list(handler.starts) == [jobs[0].id, jobs[2].id]


async def test_the_lease_of_a_job_in_the_buffer_is_renewed(work, open_worker):
    jobs = [make_job(10, heartbeat=3.0) for _ in range(3)]
    work.add(*jobs)
    handler = Clocking()
    async with open_worker(handler, prefetch=5):
        await work.until(lambda: len(work.outcomes) == 3)

    assert {id for at, renewed in work.renewals if at < handler.starts[jobs[2].id] for id in renewed} == set(
        ids(jobs)
    )
    assert [outcome for _, _, outcome in work.outcomes] == ["null"] * 3


async def test_a_job_that_expires_in_the_buffer_is_released_without_spending_a_retry(work, open_worker):
    jobs = [make_job(8, expire_in=900), make_job(1, expire_in=5)]
    work.add(*jobs)
    handler = Clocking()
    began = trio.current_time()
    async with open_worker(handler, prefetch=5):
        await work.until(lambda: work.outcomes)
        assert work.outcomes == [(jobs[1].id, 1, "released")]
        assert trio.current_time() - began == 5
        await work.until(lambda: len(work.outcomes) == 3)

    assert [outcome for _, _, outcome in work.outcomes] == ["released", "null", "null"]
    assert handler.starts[jobs[1].id] - began == 8


async def test_jobs_in_the_buffer_are_released_when_the_worker_stops(work, open_worker):
    jobs = [make_job(10) for _ in range(4)]
    work.add(*jobs)
    handler = Clocking()
    async with open_worker(handler, prefetch=5):
        await work.until_running(4)

    assert sorted(outcome for _, _, outcome in work.outcomes) == ["null", *["released"] * 3]
    assert list(handler.starts) == [jobs[0].id]


# -- handlers that do not end


async def test_an_attempt_that_does_not_end_and_its_retry_can_run_at_the_same_time(work, open_worker, events):
    """The first attempt expires, is stuck and is settled without its handler; the second completes."""
    work.add(make_job(expire_in=5))
    attempts = []

    async def handler(job):
        attempts.append(job.attempt)
        if job.attempt == 1:
            with trio.CancelScope(shield=True):
                await trio.sleep(100)
        return job.attempt

    async with open_worker(handler, concurrency=2):
        await work.until(lambda: len(work.outcomes) == 2)
        await trio.sleep(200)
        work.add(make_job())
        work.statements.clear()

    assert attempts[:2] == [1, 2]
    assert work.outcomes[0][2].outcome == "expired"
    assert work.outcomes[1][2] == "2"
    assert len(events.of(JobStuck)) == 1
