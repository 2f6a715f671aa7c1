"""fetch_completed: the completion jobs of pg-boss v6, with the request and the response."""

from datetime import datetime

import pytest
from store_helpers import fail_for_good, open_quiet_boss, take

import trioboss
from trioboss import Policy


@pytest.fixture
async def q(boss):
    """A boss with a queue `q` that makes completion jobs from the beginning."""
    await boss.create_queue("q")
    assert await boss.fetch_completed("q") == []
    return boss


async def complete(boss, data, output=None):
    await boss.send("q", data)
    await boss.complete("q", await boss.fetch("q"), output)


async def test_a_completed_job_leaves_a_completion_job_as_in_v6(q, clock):
    sent_on = clock.now
    id = await q.send("q", {"token": "trivial"})
    clock.advance(1)
    job = await take(q, "q")
    clock.advance(1)
    await q.complete("q", job, {"message": "so verbose", "code": "1234"})

    (completion,) = await q.fetch_completed("q")
    document = completion.data
    times = [datetime.fromisoformat(document.pop(name)) for name in ("createdOn", "startedOn", "completedOn")]

    assert times == [sent_on, job.started_on, clock.now]
    assert document == {
        "request": {"id": str(id), "name": "q", "data": {"token": "trivial"}},
        "response": {"message": "so verbose", "code": "1234"},
        "failed": False,
        "state": "completed",
        "retryCount": 0,
    }


async def test_a_failed_job_leaves_a_completion_job(q):
    await fail_for_good(q, "q", data=1, retry_limit=0)

    (completion,) = await q.fetch_completed("q")

    assert (completion.data["failed"], completion.data["state"]) == (True, "failed")
    assert completion.data["response"] == {"message": "broken"}
    assert completion.data["request"]["data"] == 1


async def test_a_retried_job_leaves_a_completion_job_when_it_ends(q):
    await q.send("q")
    await q.fail("q", await q.fetch("q"))
    assert await q.fetch_completed("q") == []

    await q.complete("q", await q.fetch("q"))
    (completion,) = await q.fetch_completed("q")

    assert (completion.data["failed"], completion.data["retryCount"]) == (False, 1)


@pytest.mark.parametrize("method", ["cancel", "delete_job"])
async def test_a_cancelled_or_deleted_job_leaves_no_completion_job(q, method):
    id = await q.send("q")
    await getattr(q, method)("q", id)

    assert await q.fetch_completed("q") == []


@pytest.mark.parametrize("policy", list(Policy))
async def test_the_first_call_makes_completion_jobs_for_jobs_that_ended_before(boss, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="a")
    await boss.complete("q", await boss.fetch("q"), "well")
    await fail_for_good(boss, "q", data=2, singleton_key="b")
    cancelled = await boss.send("q", 3, singleton_key="c")
    await boss.cancel("q", cancelled)

    documents = [completion.data for completion in await boss.fetch_completed("q", batch_size=9)]

    assert [(data["request"]["data"], data["state"]) for data in documents] == [
        (1, "completed"),
        (2, "failed"),
    ]
    assert documents[0]["response"] == "well"


async def test_no_completion_job_is_fetched_twice(q):
    await complete(q, 1)

    assert len(await q.fetch_completed("q", batch_size=9)) == 1
    assert await q.fetch_completed("q", batch_size=9) == []


async def test_completion_jobs_are_fetched_in_order_and_in_batches(q):
    for i in range(5):
        await complete(q, i)

    first = await q.fetch_completed("q", batch_size=3)
    rest = await q.fetch_completed("q", batch_size=3)

    assert [job.data["request"]["data"] for job in first + rest] == [0, 1, 2, 3, 4]


async def test_completion_jobs_have_a_queue_of_their_own_and_are_settled_like_others(q):
    await complete(q, 1)
    (completion,) = await q.fetch_completed("q")

    assert completion.queue == "__state__completed__q"
    assert (await q.complete(completion.queue, completion)).affected == 1


async def test_many_jobs_completed_together_leave_one_completion_job_each(q):
    await q.insert("q", [{"data": i} for i in range(10)])
    await q.complete("q", await q.fetch("q", batch_size=10))

    completions = await q.fetch_completed("q", batch_size=20)

    assert [job.data["request"]["data"] for job in completions] == list(range(10))


async def test_a_boss_that_read_the_queue_before_the_first_call_makes_completion_jobs(boss, dsn):
    await boss.create_queue("q")
    await boss.send("q", 1)
    (job,) = await boss.fetch("q")
    async with open_quiet_boss(dsn) as other:
        await other.fetch_completed("q")

        await boss.complete("q", job)
        assert len(await other.fetch_completed("q")) == 1


async def test_completion_jobs_are_made_even_if_completed_jobs_leave_no_row(boss):
    await boss.create_queue("q", keep_completed=False)
    await boss.fetch_completed("q")
    await complete(boss, 1, "out")

    assert (await boss.fetch_completed("q"))[0].data["response"] == "out"


async def test_a_queue_with_the_longest_name_has_completion_jobs(boss):
    name = "q" * 200
    await boss.create_queue(name)
    await boss.send(name, 1)
    await boss.complete(name, await boss.fetch(name))

    (completion,) = await boss.fetch_completed(name)

    assert (await boss.complete(completion.queue, completion)).affected == 1


async def test_a_queue_that_does_not_exist_is_named(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.fetch_completed("nowhere")


async def test_a_queue_of_completion_jobs_cannot_be_created_by_its_name(offline_boss):
    with pytest.raises(trioboss.UsageError, match="fetch_completed makes it"):
        await offline_boss.create_queue("__state__completed__q")
