"""The numbers of a queue: jobs by state, its size, and blocked keys."""

import attrs
import pytest
from store_helpers import fail_for_good

import trioboss


async def test_the_numbers_of_an_empty_queue_are_zeros(boss):
    await boss.create_queue("q")

    stats = attrs.asdict(await boss.get_queue_stats("q"))

    assert stats.pop("paused") is False
    assert set(stats.values()) == {0}


async def test_jobs_are_counted_by_state(boss, clock):
    await boss.create_queue("dead")
    await boss.create_queue("q", dead_letter="dead")
    await fail_for_good(boss, "q")
    for method in (boss.complete, boss.cancel, boss.fail):
        await boss.send("q", retry_delay=100)
        await method("q", await boss.fetch("q"))
    await boss.send("q", start_after=60)
    for _ in range(3):
        await boss.send("q")
    await boss.fetch("q")
    clock.advance(5)

    stats = await boss.get_queue_stats("q")

    assert attrs.asdict(stats) == {
        "queued": 4,  # one retry, one deferred, two that wait
        "deferred": 2,
        "ready": 2,
        "retries": 1,
        "active": 1,
        "completed": 1,
        "cancelled": 1,
        "failed": 1,
        "dead_letter": 1,
        "oldest_age": 5.0,
        "paused": False,
        "blocked": 0,
    }
    assert (stats.pending, stats.inflight) == (4, 1)


async def test_a_failed_job_that_blocks_its_key_counts_as_failed(boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    await fail_for_good(boss, "q", singleton_key="k")

    assert (await boss.get_queue_stats("q")).failed == 1


async def test_jobs_behind_a_blocked_key_are_blocked_and_not_ready(boss, clock):
    await boss.create_queue("q", policy="key_strict_fifo")
    await fail_for_good(boss, "q", singleton_key="k")
    await boss.send("q", singleton_key="k")
    await boss.send("q", singleton_key="k", start_after=3600)
    clock.advance(5)
    await boss.send("q", singleton_key="free")
    clock.advance(2)

    stats = await boss.get_queue_stats("q")

    assert (stats.queued, stats.deferred, stats.blocked, stats.ready) == (3, 1, 1, 1)
    assert stats.oldest_age == 2


async def test_the_size_of_a_queue_counts_the_states_before_one(boss):
    await boss.create_queue("q")
    for method in (boss.complete, boss.cancel):
        await boss.send("q")
        await method("q", await boss.fetch("q"))
    await fail_for_good(boss, "q")
    await boss.send("q", retry_delay=60)
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q")
    await boss.fetch("q")
    await boss.send("q")

    sizes = {state: await boss.get_queue_size("q", before=state) for state in trioboss.JobState}

    assert sizes == {"created": 0, "retry": 1, "active": 2, "completed": 3, "cancelled": 4, "failed": 5}
    assert await boss.get_queue_size("q") == 2


async def test_the_size_before_an_unknown_state_is_refused(boss):
    await boss.create_queue("q")

    with pytest.raises(trioboss.UsageError, match="before: 'done' is not a state: use one of created"):
        await boss.get_queue_size("q", before="done")


async def test_only_strict_fifo_has_blocked_keys(boss):
    await boss.create_queue("q", policy="singleton")

    with pytest.raises(trioboss.UsageError, match="queue: 'q' has policy singleton"):
        await boss.get_blocked_keys("q")
