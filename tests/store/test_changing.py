"""cancel, resume, retry, delete_job: one job or many, by id."""

from datetime import timedelta

import pytest
from store_helpers import fail_for_good, take, take_all

import trioboss
from trioboss import Settled
from trioboss.model.ids import make_id

BY_ID = {"cancel": "created", "resume": "cancelled", "retry": "failed", "delete_job": "created"}


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


async def take_some(boss, count):
    await boss.insert("q", [{"data": i} for i in range(count)])
    return await boss.fetch("q", batch_size=count)


async def make_jobs(boss, state, count):
    """Jobs in one state."""
    ids = []
    for _ in range(count):
        if state == "failed":
            ids.append((await fail_for_good(boss, "q")).id)
            continue
        ids.append(await boss.send("q"))
        if state == "cancelled":
            await boss.cancel("q", ids[-1])
    return ids


@pytest.mark.parametrize(("method", "state"), BY_ID.items())
async def test_many_ids_are_changed_and_missing_ones_left_out(q, method, state):
    ids = await make_jobs(q, state, 2)

    settled = await getattr(q, method)("q", [*ids, make_id()])

    assert settled == Settled(3, 2, tuple(sorted(ids)))


@pytest.mark.parametrize(("method", "state"), BY_ID.items())
async def test_an_id_that_matches_nothing_is_not_found(q, method, state):
    id = make_id()

    with pytest.raises(trioboss.JobNotFound, match=f"{id} in queue 'q'"):
        await getattr(q, method)("q", id)


@pytest.mark.parametrize(("method", "state"), BY_ID.items())
async def test_an_id_given_twice_is_one_job(q, method, state):
    (id,) = await make_jobs(q, state, 1)

    assert await getattr(q, method)("q", [id, str(id)]) == Settled(1, 1, (id,))


async def test_a_cancelled_job_does_not_run(q, clock):
    id = await q.send("q")

    await q.cancel("q", id)
    job = await q.get_job_by_id("q", id)

    assert (job.state, job.completed_on) == ("cancelled", clock.now)
    assert await q.fetch("q") == []


async def test_a_retrying_and_an_active_job_can_be_cancelled(q):
    active, retrying = await take_some(q, 2)
    await q.fail("q", retrying)

    assert (await q.cancel("q", [active.id, retrying.id])).affected == 2


@pytest.mark.parametrize("end", ["complete", "cancel", "fail"])
async def test_a_job_that_has_ended_cannot_be_cancelled(boss, end):
    await boss.create_queue("q", retry_limit=0)
    (job,) = await take_some(boss, 1)
    await getattr(boss, end)("q", job.id)

    with pytest.raises(trioboss.JobNotFound, match="no queued or active job"):
        await boss.cancel("q", job.id)


async def test_a_resumed_job_is_queued_again_in_its_old_place(q):
    first = await q.send("q", "first")
    await q.send("q", "second")
    await q.cancel("q", first)

    await q.resume("q", first)

    assert (await q.get_job_by_id("q", first)).state == "created"
    assert await take_all(q, "q") == ["first", "second"]


async def test_a_resumed_job_is_deferred_as_long_as_it_was(q, clock):
    id = await q.send("q", start_after=60)
    await q.cancel("q", id)
    await q.resume("q", id)

    assert await q.fetch("q") == []
    clock.advance(60)
    assert (await take(q, "q")).id == id


async def test_a_resumed_job_that_ran_before_keeps_its_fence(q):
    (job,) = await take_some(q, 1)
    await q.cancel("q", job.id)
    await q.resume("q", job.id)
    again = await take(q, "q")

    assert again.attempt == 2
    with pytest.raises(trioboss.LeaseLost):
        await q.complete("q", job)


async def test_a_failed_job_is_retried_at_once_in_its_old_place(q, clock):
    failed = await fail_for_good(q, "q", retry_delay=60)
    await q.send("q", "second")

    await q.retry("q", failed.id)
    job = await q.get_job_by_id("q", failed.id)

    assert (job.state, job.completed_on, job.start_after) == ("retry", None, clock.now)
    assert (await take(q, "q")).id == failed.id


async def test_a_retried_job_has_one_more_try_and_no_more(q):
    failed = await fail_for_good(q, "q")
    await q.retry("q", failed.id)

    await q.fail("q", await q.fetch("q"))

    assert (await q.get_job_by_id("q", failed.id)).state == "failed"


@pytest.mark.parametrize("state", ["created", "active", "retry", "completed", "cancelled", "failed"])
async def test_a_job_is_deleted_in_whatever_state_it_is(q, state, database):
    (id,) = await make_jobs(q, state if state in ("cancelled", "failed") else "created", 1)
    if state in ("active", "retry", "completed"):
        (job,) = await q.fetch("q")
        await {"active": q.touch, "retry": q.fail, "completed": q.complete}[state]("q", job)
    assert (await q.get_job_by_id("q", id)).state == state

    assert await q.delete_job("q", id) == Settled(1, 1, (id,))
    assert await q.get_job_by_id("q", id) is None
    assert database.execute("select count(*) from trioboss.all_jobs").fetchone() == (0,)


@pytest.mark.parametrize("cause", ["fail", "release", "retry", "resume", "dead letter"])
async def test_retention_does_not_grow_where_the_start_was_long_ago(boss, clock, cause):
    await boss.create_queue("dead")
    dead_letter = "dead" if cause == "dead letter" else None
    limit = 0 if cause in ("retry", "dead letter") else 2
    await boss.create_queue("q", retention=60, retry_limit=limit, dead_letter=dead_letter)
    id = await boss.send("q", start_after=clock.now - timedelta(days=300))
    (job,) = await boss.fetch("q")
    if cause == "release":
        await boss._execute(boss._store.settling.release_leases("q", [job.lease]))
    elif cause == "resume":
        await boss.cancel("q", id)
        await boss.resume("q", id)
    else:
        await boss.fail("q", job)
    if cause == "retry":
        await boss.retry("q", id)

    (job,) = await boss.find_jobs("dead" if cause == "dead letter" else "q")
    assert job.keep_until == clock.now + timedelta(seconds=60)
