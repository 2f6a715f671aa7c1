"""Jobs are deleted by their queue: delete_queued_jobs, delete_stored_jobs, delete_all_jobs, clear_storage."""

import pytest
from store_helpers import fail_for_good, take_all

import trioboss
from trioboss.store import changing

QUEUES = [{}, {"partition": True}, {"policy": "key_strict_fifo"}]


async def fill(boss, name):
    """Two jobs in each state, live and ended."""
    for i in range(2):
        await fail_for_good(boss, name, singleton_key=f"failed{i}")
        for method in (boss.complete, boss.cancel, boss.fail):
            await boss.send(name, singleton_key=f"{method.__name__}{i}", retry_delay=60)
            await method(name, await boss.fetch(name))
    for i in range(2):
        await boss.send(name, singleton_key=f"active{i}")
        await boss.fetch(name)
        await boss.send(name, singleton_key=f"deferred{i}", start_after=60)


async def states(boss, name):
    found = [job.state for job in await boss.find_jobs(name)]
    return {state: found.count(state) for state in sorted(set(found))}


@pytest.fixture(params=QUEUES, ids=["standard", "own_table", "strict_fifo"])
async def q(boss, request):
    """A boss with a queue `q` full of jobs, and another one that has to stay as it is."""
    await boss.create_queue("q", **request.param)
    await boss.create_queue("other", **request.param)
    await fill(boss, "q")
    await fill(boss, "other")
    return boss


ALL = {"active": 2, "cancelled": 2, "completed": 2, "created": 2, "failed": 2, "retry": 2}


async def test_queued_jobs_are_deleted_and_no_others(q):
    assert await states(q, "q") == ALL

    assert await q.delete_queued_jobs("q") == 4
    assert await states(q, "q") == {"active": 2, "cancelled": 2, "completed": 2, "failed": 2}
    assert await states(q, "other") == ALL


async def test_stored_jobs_are_deleted_and_no_others(q):
    assert await q.delete_stored_jobs("q") == 6
    assert await states(q, "q") == {"active": 2, "created": 2, "retry": 2}
    assert await states(q, "other") == ALL


async def test_all_jobs_of_a_queue_are_deleted_and_of_no_other(q):
    assert await q.delete_all_jobs("q") == 12
    assert await states(q, "q") == {}
    assert await states(q, "other") == ALL


async def test_all_jobs_of_all_queues_are_deleted(q):
    assert await q.delete_all_jobs() == 24
    assert await states(q, "q") == await states(q, "other") == {}


async def test_clearing_the_storage_leaves_queues_schedules_and_subscriptions(q, database):
    await q.schedule("q", "* * * * *", singleton_key="k")
    await q.subscribe("event", "q")

    await q.clear_storage()

    assert await states(q, "q") == await states(q, "other") == {}
    assert database.execute("select count(*) from trioboss.attempt").fetchone() == (0,)
    assert len(await q.get_queues()) == 2
    assert len(await q.get_schedules()) == 1
    assert len(await q.publish("event", singleton_key="k")) == 1


async def test_a_queue_that_was_emptied_works_as_before(q):
    await q.delete_all_jobs("q")
    await q.send("q", 1, singleton_key="active0")

    assert await take_all(q, "q") == [1]


async def test_the_lease_of_a_deleted_job_is_lost(boss):
    await boss.create_queue("q")
    await boss.send("q")
    jobs = await boss.fetch("q")
    await boss.delete_all_jobs("q")

    with pytest.raises(trioboss.LeaseLost):
        await boss.complete("q", jobs)


async def test_many_jobs_are_deleted_chunk_by_chunk(boss, monkeypatch):
    monkeypatch.setattr(changing, "_CHUNK", 7)
    await boss.create_queue("q")
    await boss.insert("q", [{} for _ in range(40)])
    await boss.complete("q", await boss.fetch("q", batch_size=20))

    assert await boss.delete_queued_jobs("q") == 20
    assert await boss.delete_stored_jobs("q") == 20


@pytest.mark.parametrize("method", ["delete_queued_jobs", "delete_stored_jobs", "delete_all_jobs"])
async def test_an_empty_queue_has_nothing_to_delete(boss, method):
    await boss.create_queue("q")

    assert await getattr(boss, method)("q") == 0


@pytest.mark.parametrize("method", ["delete_queued_jobs", "delete_stored_jobs", "delete_all_jobs"])
async def test_a_queue_that_does_not_exist_is_named(boss, method):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await getattr(boss, method)("nowhere")


@pytest.mark.parametrize("method", ["delete_queued_jobs", "delete_stored_jobs", "delete_all_jobs"])
async def test_a_bad_name_is_refused_before_any_sql(offline_boss, method):
    with pytest.raises(ValueError, match=r"^queue: "):
        await getattr(offline_boss, method)("no queue")
