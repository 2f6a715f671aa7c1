"""Warnings for operators: queues that are too long or do not move."""

from uuid import uuid4

import pytest
from store_helpers import take

from trioboss import Policy


async def find_warnings(boss):
    """The queue and the kind of each warning."""
    rescue = await boss._execute(boss._store.maintenance.rescue_leases(60.0, 0.0, warnings=True))
    long = await boss._execute(boss._store.maintenance.find_long_queues())
    return [(queue, kind) for queue, kind, _ in (*rescue.warnings, *(long or ()))]


async def register_worker(boss, queue):
    await boss._execute(
        boss._store.presence.register(
            lambda: None, worker=uuid4(), boss=uuid4(), name="worker", queue=queue, lock=None, info="{}"
        )
    )


@pytest.mark.parametrize("partition", [False, True])
@pytest.mark.parametrize("policy", list(Policy))
async def test_a_job_that_could_run_for_an_hour_is_reported(boss, clock, policy, partition):
    await boss.create_queue("q", policy=policy, partition=partition)
    await register_worker(boss, "q")
    await boss.send("q", singleton_key="k")

    clock.advance(3599)
    assert await find_warnings(boss) == []
    clock.advance(2)
    assert await find_warnings(boss) == [("q", "oldest_age")]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.STATELY, Policy.KEY_STRICT_FIFO])
async def test_a_job_that_waits_for_the_owner_of_its_key_is_not_reported(boss, clock, policy):
    await boss.create_queue("q", policy=policy, expire_in=86400)
    await register_worker(boss, "q")
    await boss.send("q", singleton_key="k")
    await take(boss, "q")
    await boss.send("q", singleton_key="k")
    clock.advance(3601)

    assert await find_warnings(boss) == []


@pytest.mark.parametrize("hindrance", ["no worker", "paused", "deferred"])
async def test_a_job_that_cannot_run_is_not_reported(boss, clock, hindrance):
    await boss.create_queue("q")
    if hindrance != "no worker":
        await register_worker(boss, "*")
    if hindrance == "paused":
        await boss.pause("q")
    await boss.send("q", start_after=7200 if hindrance == "deferred" else None)
    clock.advance(3601)

    assert await find_warnings(boss) == []


async def test_without_a_limit_there_is_nothing_to_ask_for(boss):
    find = boss._store.maintenance.find_long_queues
    await boss.create_queue("q")
    assert await boss._execute(find()) is None

    await boss.update_queue("q", warning_queue_size=2)
    assert await boss._execute(find()) == []


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_queue_with_more_jobs_than_its_limit_is_reported(boss, policy):
    await boss.create_queue("q", policy=policy, warning_queue_size=2)
    for key in "ab":
        await boss.send("q", singleton_key=key)
    assert await find_warnings(boss) == []

    await boss.send("q", singleton_key="c", start_after=60)

    assert await find_warnings(boss) == [("q", "queue_size")]
