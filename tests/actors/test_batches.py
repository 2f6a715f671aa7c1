"""Handlers that get several jobs at once: outputs and errors for each of them."""

from uuid import uuid4

import pytest
import trio
from running_helpers import error_of, run_all
from scripted_ports import ids

from trioboss import BatchFailed, BatchResult
from trioboss.machines.attempt import CancelReason
from trioboss.model.settle_and_claim import Failure


async def test_a_batch_handler_gets_up_to_so_many_jobs_at_once(work, open_worker):
    sizes = []

    async def handler(jobs):
        sizes.append(len(jobs))

    assert await run_all(work, open_worker, handler, count=7, batch_size=5) == ["null"] * 7
    assert sorted(sizes) == [2, 5]


async def test_a_batch_may_return_an_output_for_each(work, open_worker):
    async def handler(jobs):
        return {job.id: job.data * 10 for job in jobs if job.data}

    assert await run_all(work, open_worker, handler, count=3, batch_size=5) == ["null", "10", "20"]


async def test_ids_in_the_return_value_may_be_text(work, open_worker):
    async def handler(jobs):
        return {str(job.id): job.data for job in jobs}

    assert await run_all(work, open_worker, handler, count=2, batch_size=5) == ["0", "1"]


@pytest.mark.parametrize(
    "answer", [lambda id: [1, 2], lambda id: "text", lambda id: {id: 1, uuid4(): 2}, lambda id: 0]
)
async def test_a_return_value_that_is_not_by_the_ids_of_the_batch_is_a_failure(work, open_worker, answer):
    async def handler(jobs):
        return answer(jobs[0].id)

    failures = await run_all(work, open_worker, handler, count=2, batch_size=5)

    assert [error_of(failure)["name"] for failure in failures] == ["UsageError", "UsageError"]


async def test_a_batch_that_fails_for_some_in_a_nursery_has_failed_for_those(work, open_worker):
    async def handler(jobs):
        async with trio.open_nursery():
            raise BatchFailed({jobs[1].id: ValueError("this one")})

    first, second = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert first == "null"
    assert error_of(second)["message"] == "this one"


async def test_one_output_that_is_no_json_fails_one_job(work, open_worker):
    async def handler(jobs):
        return {jobs[0].id: object(), jobs[1].id: "fine"}

    first, second = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert error_of(first)["name"] == "PayloadError"
    assert second == '"fine"'


@pytest.mark.parametrize("as_text", [False, True])
async def test_a_batch_may_fail_for_some(work, open_worker, as_text):
    async def handler(jobs):
        key = str(jobs[1].id) if as_text else jobs[1].id
        raise BatchFailed({key: ValueError("this one")})

    first, second, third = await run_all(work, open_worker, handler, count=3, batch_size=3)

    assert (first, third) == ("null", "null")
    assert error_of(second)["message"] == "this one"


async def test_a_batch_may_return_a_result_for_each_job(work, open_worker):
    async def handler(jobs):
        return [
            BatchResult(jobs[2].id, output="third"),
            BatchResult(str(jobs[0].id)),
            BatchResult(jobs[1].id, error=ValueError("this one")),
            BatchResult(jobs[3].id, error=jobs[3].dead_letter("no")),
        ]

    first, second, third, fourth, fifth = await run_all(work, open_worker, handler, count=5, batch_size=5)

    assert (first, third) == ("null", '"third"')
    assert error_of(second)["message"] == "this one"
    assert fourth.dead
    assert error_of(fifth)["message"] == "the handler of the batch returned no result for this job"


@pytest.mark.parametrize(
    "answer",
    [
        lambda id: [BatchResult(id), 5],
        lambda id: [BatchResult(id), BatchResult(str(id))],
        lambda id: [BatchResult(uuid4())],
        lambda id: [BatchResult([])],
    ],
)
async def test_a_list_that_is_not_of_results_of_these_jobs_is_a_failure(work, open_worker, answer):
    async def handler(jobs):
        return answer(jobs[0].id)

    failures = await run_all(work, open_worker, handler, count=2, batch_size=5)

    assert [error_of(failure)["name"] for failure in failures] == ["UsageError", "UsageError"]


async def test_a_batch_may_ask_for_a_retry_of_some(work, open_worker):
    async def handler(jobs):
        raise BatchFailed({jobs[0].id: jobs[0].retry(delay=3), jobs[1].id: jobs[1].dead_letter("no")})

    first, second = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert first.delay == 3
    assert second.dead


async def test_an_error_about_other_jobs_fails_the_batch(work, open_worker):
    async def handler(jobs):
        raise BatchFailed({uuid4(): "who?"})

    failures = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert all(isinstance(failure, Failure) for failure in failures)


async def test_an_error_that_is_no_json_is_converted(work, open_worker):
    async def handler(jobs):
        raise BatchFailed({jobs[0].id: object()})

    failure, _ = await run_all(work, open_worker, handler, count=2, batch_size=2)

    assert "object" in error_of(failure)["message"]


async def test_a_batch_that_raises_fails_as_a_whole(work, open_worker):
    async def handler(jobs):
        raise ValueError("all of them")

    failures = await run_all(work, open_worker, handler, count=3, batch_size=3)

    assert [error_of(failure)["message"] for failure in failures] == ["all of them"] * 3


async def test_a_batch_has_jobs_of_one_queue(work, open_worker):
    work.send(2, queue="a")
    work.send(2, queue="b")
    batches = []

    async def handler(jobs):
        batches.append([job.queue for job in jobs])

    async with open_worker(handler, queue="*", queues=("a", "b"), batch_size=4):
        await work.until(lambda: len(work.outcomes) == 4)

    assert sorted(batches) == [["a", "a"], ["b", "b"]]


async def test_a_batch_is_cancelled_only_when_all_its_jobs_are(work, open_worker):
    jobs = work.send(2)
    woken = []

    async def handler(batch):
        try:
            await trio.sleep(10)
            woken.append("by itself")
        except trio.Cancelled:
            woken.append("cancelled")
            raise

    async with open_worker(handler, batch_size=2) as worker:
        await work.until_running(2)
        (running,) = [r for r in worker.slots.running if r.job.id == jobs[0].id]
        running.cancel(CancelReason.CANCELLED)
        await work.until(lambda: work.outcomes)

    assert woken == ["by itself"]
    assert ids(jobs)[1:] == [id for id, _, _ in work.outcomes]
