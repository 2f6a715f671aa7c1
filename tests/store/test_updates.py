"""Updates of queued jobs: by id, by key, and by a duplicate that is sent."""

from datetime import timedelta
from uuid import uuid4

import pytest
from store_helpers import take, take_all

import trioboss
from trioboss import UnknownQueue, UsageError


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


async def test_an_update_changes_what_is_given_and_nothing_else(q):
    id = await q.send("q", {"a": 1}, priority=3, retry_limit=7)
    await q.update_job("q", id, data=None, expire_in=timedelta(minutes=1))
    await q.update_job("q", id, priority=5)

    job = await q.get_job_by_id("q", id)

    assert (job.data, job.priority, job.retry_limit, job.expire_in) == (None, 5, 7, 60.0)


async def test_an_update_by_key_changes_the_newest_the_oldest_or_all(q):
    for number in range(3):
        await q.send("q", number, singleton_key="k")
    await q.update_job("q", key="k", data="newest")
    await q.update_job("q", key="k", match="oldest", data="oldest")

    assert [job.data for job in await q.find_jobs("q")] == ["oldest", 1, "newest"]
    assert (await q.update_job("q", key="k", match="all", data="all")).affected == 3
    assert [job.data for job in await q.find_jobs("q")] == ["all"] * 3


async def test_only_queued_jobs_are_updated(q):
    id = await q.send("q", singleton_key="k")
    await take(q, "q")

    with pytest.raises(trioboss.JobNotFound, match="no queued job"):
        await q.update_job("q", id, data=1)
    with pytest.raises(trioboss.JobNotFound, match="no queued job with key 'k' in queue 'q'"):
        await q.update_job("q", key="k", data=1)


@pytest.mark.parametrize("policy", ["standard", "singleton", "key_strict_fifo"])
async def test_an_updated_start_defers_a_job_or_lets_it_run(boss, policy):
    await boss.create_queue("q", policy=policy)
    first = await boss.send("q", 1, singleton_key="k")
    await boss.send("q", 2, singleton_key="k")
    assert (await boss.fetch("q", min_priority=1)) == []  # admits the first: it owns its key now
    await boss.update_job("q", first, start_after=60)

    job = await take(boss, "q")
    assert job.data == 2
    await boss.complete("q", job)
    assert await boss.fetch("q") == []
    await boss.update_job("q", first, start_after=0)
    assert (await take(boss, "q")).data == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"data": 1}, "give the id of the job, or the key"),
        ({"id": uuid4(), "key": "k", "data": 1}, "give the id of the job, or the key"),
        ({"key": "k", "match": "some", "data": 1}, "^match: 'some' is not one of"),
        ({"key": "k"}, "nothing to change"),
        ({"key": "k", "priority": 1.5}, "^priority: "),
    ],
)
async def test_an_update_that_makes_no_sense_is_refused(q, arguments, problem):
    with pytest.raises(UsageError, match=problem):
        await q.update_job("q", **arguments)


async def test_the_key_of_a_job_cannot_be_updated_and_its_dead_letter_queue_must_exist(q):
    with pytest.raises(TypeError, match="unexpected option 'singleton_key'"):
        await q.update_job("q", uuid4(), singleton_key="k")
    with pytest.raises(UnknownQueue):
        await q.update_job("q", uuid4(), dead_letter="nowhere")


async def test_a_duplicate_updates_the_queued_job_of_its_id_or_key(q):
    id = uuid4()

    assert await q.send("q", 1, id=id, on_duplicate="update") == id
    assert await q.send("q", 2, id=id, priority=4, on_duplicate="update") == id
    assert [(job.data, job.priority) for job in await q.find_jobs("q")] == [(2, 4)]

    first = await q.send("q", 3, singleton_key="k", on_duplicate="update")
    assert await q.send("q", 4, singleton_key="k", on_duplicate="update") == first
    assert [job.data for job in await q.find_jobs("q", singleton_key="k")] == [4]
    await take_all(q, "q")
    assert await q.send("q", 5, singleton_key="k", on_duplicate="update") not in (None, first)


async def test_a_duplicate_of_an_active_job_is_refused_where_the_policy_refuses_it(boss):
    await boss.create_queue("q", policy="exclusive")
    await boss.send("q", singleton_key="k")
    await take(boss, "q")

    assert await boss.send("q", singleton_key="k", on_duplicate="update") is None


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"on_duplicate": "update"}, "needs an id or a singleton_key"),
        ({"on_duplicate": "replace"}, "is not one of refuse, update"),
        ({"on_duplicate": "update", "singleton_key": "k", "singleton_seconds": 5}, "a throttle refuses"),
    ],
)
async def test_a_duplicate_is_found_by_something(q, arguments, problem):
    with pytest.raises(UsageError, match=f"^on_duplicate: .*{problem}"):
        await q.send("q", **arguments)
