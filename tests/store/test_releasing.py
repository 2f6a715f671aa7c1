"""Releasing an attempt never fails: the job is queued again, whatever was sent meanwhile, and no retry is spent."""

from functools import partial

import psycopg
import pytest
import trio
from store_helpers import take, take_all, until_blocked

from trioboss import Policy
from trioboss.model.described_error import describe_error
from trioboss.model.settle_and_claim import Failure


async def release(boss, *jobs):
    """Release attempts as a worker that stops does."""
    await boss._execute(boss._store.settling.release_leases("q", [job.lease for job in jobs]))


async def lose(boss, *jobs):
    """Take attempts from a worker that is gone."""
    failed = [(job.lease, Failure(describe_error("its worker is gone"), outcome="lost")) for job in jobs]
    await boss._execute(boss._store.settling.fail_leases("q", failed))


async def send_by(boss, method, data):
    """Send a job of key `k` by one of the methods."""
    if method == "send":
        return await boss.send("q", data, singleton_key="k")
    if method == "send_once":
        return await boss.send_once("q", data, "k")
    return await boss.send_singleton("q", data, singleton_key="k")


async def run_all(boss):
    """Run jobs until none is left, and return their data in the order in which they ran."""
    ran = []
    while jobs := await boss.fetch("q", batch_size=9):
        ran += [job.data for job in jobs]
        await boss.complete("q", jobs)
    return ran


@pytest.mark.parametrize("method", ["send", "send_once", "send_singleton"])
@pytest.mark.parametrize("policy", list(Policy))
async def test_a_released_job_is_queued_again_with_the_retries_it_had(boss, policy, method):
    await boss.create_queue("q", policy=policy, retry_limit=0)
    await send_by(boss, method, 1)
    job = await take(boss, "q")

    await release(boss, job)

    again = await boss.get_job_by_id("q", job.id)
    assert (again.state, again.retry_count, again.worker) == ("retry", 0, None)
    again = await take(boss, "q")
    assert (again.id, again.attempt) == (job.id, 2)


@pytest.mark.parametrize("policy", list(Policy))
async def test_the_attempt_of_a_released_job_is_in_the_history(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", singleton_key="k")
    job = await take(boss, "q")

    await release(boss, job)

    history = database.execute("select job_id, attempt, outcome from trioboss.attempt").fetchall()
    assert history == [(job.id, 1, "released")]


@pytest.mark.parametrize("method", ["send", "send_once", "send_singleton"])
@pytest.mark.parametrize("policy", list(Policy))
async def test_a_released_job_is_queued_beside_a_successor(boss, policy, method):
    await boss.create_queue("q", policy=policy, retry_limit=0)
    await send_by(boss, method, 1)
    job = await take(boss, "q")
    successor = await send_by(boss, method, 2)

    await release(boss, job)

    assert (await boss.get_job_by_id("q", job.id)).state == "retry"
    assert await run_all(boss) == ([1] if successor is None else [1, 2])


@pytest.mark.parametrize("method", ["send", "send_once", "send_singleton"])
@pytest.mark.parametrize("policy", list(Policy))
async def test_a_job_whose_worker_was_killed_is_queued_beside_a_successor(boss, policy, method):
    await boss.create_queue("q", policy=policy, retry_limit=1)
    await send_by(boss, method, 1)
    job = await take(boss, "q")
    successor = await send_by(boss, method, 2)

    await lose(boss, job)

    assert (await boss.get_job_by_id("q", job.id)).state == "retry"
    assert await run_all(boss) == ([1] if successor is None else [1, 2])


async def test_a_lost_job_of_a_stately_queue_is_queued_beside_a_retry(boss, clock):
    await boss.create_queue("q", policy="stately", retry_delay=60)
    await boss.send("q", "retry")
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "lost", retry_delay=0)

    await lose(boss, await take(boss, "q"))

    assert [found.state for found in await boss.find_jobs("q")] == ["retry", "retry"]
    assert await take_all(boss, "q") == ["lost"]


async def test_several_singletons_of_a_killed_worker_are_all_queued(boss):
    await boss.create_queue("q")
    active = []
    for number in range(3):
        await boss.send_singleton("q", number)
        active.append(await take(boss, "q"))
    await boss.send_singleton("q", 3)

    await lose(boss, *active)

    assert await boss.send_singleton("q", 4) is None
    assert await run_all(boss) == [0, 1, 2, 3]


async def test_a_lost_job_without_retries_fails(boss):
    await boss.create_queue("q", retry_limit=0)
    await boss.send_singleton("q", 1)

    await lose(boss, await take(boss, "q"))

    assert [found.state for found in await boss.find_jobs("q")] == ["failed"]


async def test_a_released_job_of_a_stately_queue_is_queued_beside_a_retry(boss, clock):
    await boss.create_queue("q", policy="stately", retry_delay=60)
    await boss.send("q", "retry")
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "released")
    job = await take(boss, "q")

    await release(boss, job)

    assert [found.state for found in await boss.find_jobs("q")] == ["retry", "retry"]
    assert await take_all(boss, "q") == ["released"]
    assert await boss.send("q", "created") is not None


async def test_a_released_job_of_a_stately_queue_that_fails_beside_a_retry_fails_for_good(boss, clock):
    await boss.create_queue("q", policy="stately", retry_delay=60)
    await boss.send("q", "retry")
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "released")
    await release(boss, await take(boss, "q"))

    await boss.fail("q", await boss.fetch("q"))

    assert [found.state for found in await boss.find_jobs("q")] == ["retry", "failed"]


async def test_several_singletons_released_together_are_all_queued(boss):
    await boss.create_queue("q")
    active = []
    for number in range(3):
        await boss.send_singleton("q", number)
        active.append(await take(boss, "q"))
    await boss.send_singleton("q", 3)

    await release(boss, *active)

    assert [found.state for found in await boss.find_jobs("q")] == ["retry"] * 3 + ["created"]
    assert await boss.send_singleton("q", 4) is None
    assert await run_all(boss) == [0, 1, 2, 3]


async def test_a_singleton_that_was_released_beside_its_successor_keeps_no_other_out(boss):
    await boss.create_queue("q")
    await boss.send_singleton("q", 1)
    job = await take(boss, "q")
    successor = await boss.send_singleton("q", 2)
    await release(boss, job)
    await boss.cancel("q", successor)

    assert await boss.send_singleton("q", 3) is not None


async def test_a_singleton_without_a_successor_is_unique_again_after_its_release(boss):
    await boss.create_queue("q")
    await boss.send_singleton("q", 1)

    await release(boss, await take(boss, "q"))

    assert await boss.send_singleton("q", 2) is None


@pytest.mark.parametrize("commit", [True, False])
async def test_a_release_succeeds_beside_a_successor_that_is_not_committed_yet(boss, database, commit):
    await boss.create_queue("q")
    await boss.send_singleton("q", 1)
    job = await take(boss, "q")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            with psycopg.connect(boss.dsn) as caller:
                await boss.send_singleton("q", 2, conn=caller)
                nursery.start_soon(partial(release, boss, job))
                await until_blocked(database)
                caller.commit() if commit else caller.rollback()

    assert (await boss.get_job_by_id("q", job.id)).state == "retry"
    assert await run_all(boss) == ([1, 2] if commit else [1])


async def test_a_release_keeps_the_key_of_strict_fifo(boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    for number in (1, 2):
        await boss.send("q", number, singleton_key="k")

    await release(boss, await take(boss, "q"))

    assert await run_all(boss) == [1, 2]


async def test_a_stale_attempt_releases_nothing(boss):
    await boss.create_queue("q")
    await boss.send("q")
    job = await take(boss, "q")
    await boss.fail("q", job)
    again = await take(boss, "q")

    await release(boss, job)

    assert await boss.get_job_by_id("q", job.id) == again


# -- a worker that stops


@pytest.mark.parametrize("policy", [Policy.STANDARD, Policy.SHORT])
async def test_a_worker_that_stops_releases_its_prefetched_singletons_beside_their_successors(boss, policy):
    await boss.create_queue("q", policy=policy, retry_limit=0)
    started = trio.Event()

    async def handler(job):
        started.set()
        await trio.sleep_forever()

    keys = "abcd"
    for key in keys:
        await boss.send_singleton("q", f"{key}1", singleton_key=key)
    worker = await boss.work("q", handler, concurrency=1, prefetch=10)
    with trio.fail_after(30):
        await started.wait()
        for key in keys:
            assert await boss.send_singleton("q", f"{key}2", singleton_key=key) is not None
        worker.stop(0)
        await worker.stopped.wait()

    states = {job.data: job.state for job in await boss.find_jobs("q")}
    assert set(states.values()) <= {"created", "retry"}
    assert sorted(states) == sorted(key + number for key in keys for number in "12")


async def test_a_worker_that_stops_releases_its_stately_job_beside_a_retry(boss):
    await boss.create_queue("q", policy="stately", retry_limit=1, retry_delay=60)
    await boss.send("q", "retry")
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "active")
    started = trio.Event()

    async def handler(job):
        started.set()
        await trio.sleep_forever()

    worker = await boss.work("q", handler)
    with trio.fail_after(30):
        await started.wait()
        worker.stop(0)
        await worker.stopped.wait()

    assert [job.state for job in await boss.find_jobs("q")] == ["retry", "retry"]
