"""Options are resolved when they are used: update_queue reaches queued jobs, a job overrides its queue, and a running
attempt keeps the terms of its claim.
"""

from datetime import timedelta

import pytest
from store_helpers import open_quiet_boss, take, take_all

from trioboss import Policy
from trioboss.model.job import OPTIONS

# For each option: the value of the queue when the job is sent, the value after update_queue, and an override.
VALUES = {
    "retry_limit": (2, 7, 4),
    "retry_delay": (0.0, 30.0, 5.0),
    "retry_backoff": (False, True, True),
    "retry_delay_max": (None, 60.0, 90.0),
    "retry_jitter": (0.0, 0.25, 1.0),
    "retry_multiplier": (2.0, 3.0, 1.5),
    "retry_window": (None, 3600.0, 60.0),
    "expire_in": (900.0, 60.0, 30.0),
    "heartbeat": (None, 10.0, 20.0),
    "auto_heartbeat": (True, False, False),
    "max_lease_extensions": (3, 0, 5),
    "retention": (14 * 86400.0, 3600.0, 7200.0),
    "delete_after": (7 * 86400.0, 60.0, 120.0),
    "dead_letter": (None, "dead", "other"),
}


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`, and two that can be dead letter queues."""
    for name in ("dead", "other", "q"):
        await boss.create_queue(name)
    return boss


async def rescue(boss):
    """End the leases that have run out; return the ids by outcome."""
    found = await boss._execute(boss._store.maintenance.rescue_leases(60.0, 0.0, warnings=False))
    return {outcome: ids for _, outcome, ids in found.ended}


def test_every_option_is_tested_here():
    assert set(VALUES) == set(OPTIONS)


@pytest.mark.parametrize("option", VALUES)
async def test_a_queued_job_has_the_option_of_its_queue_as_it_is_now(q, option):
    before, after, _ = VALUES[option]
    id = await q.send("q")
    assert getattr(await q.get_job_by_id("q", id), option) == before

    await q.update_queue("q", **{option: after})

    assert getattr(await q.get_job_by_id("q", id), option) == after
    assert getattr(await take(q, "q"), option) == after


@pytest.mark.parametrize("path", ["send", "throttled", "copied", "staged"])
@pytest.mark.parametrize("option", VALUES)
async def test_a_job_keeps_the_option_that_it_overrides(q, option, path):
    _, after, override = VALUES[option]
    options = {option: override}
    if path == "send":
        await q.send("q", **options)
    elif path == "throttled":
        await q.send_throttled("q", None, 60, **options)
    else:
        await q.insert(
            "q", [options if path == "copied" else {**options, "id": "01890a5d-ac96-774b-bcce-b302099a8057"}]
        )
    await q.update_queue("q", **{option: after})

    (found,) = await q.find_jobs("q")

    assert getattr(found, option) == override
    assert getattr(await take(q, "q"), option) == override


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_boss_that_has_cached_the_queue_claims_with_the_options_of_now(boss, dsn, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="a")
    await boss.send("q", 2, singleton_key="b")
    assert (await take(boss, "q")).expire_in == 900.0
    async with open_quiet_boss(dsn) as other:
        await other.update_queue("q", expire_in=5, retry_limit=9)

    job = await take(boss, "q")

    assert (job.data, job.expire_in, job.retry_limit) == (2, 5.0, 9)


# -- the effect on jobs that were sent before the change


async def test_a_raised_retry_limit_retries_queued_and_active_jobs(boss):
    await boss.create_queue("q", retry_limit=0)
    await boss.send("q", "active")
    active = await take(boss, "q")
    await boss.send("q", "queued")
    await boss.update_queue("q", retry_limit=1)

    await boss.fail("q", [active, await take(boss, "q")])

    assert [job.state for job in await boss.find_jobs("q")] == ["retry", "retry"]


async def test_a_lowered_retry_limit_fails_queued_jobs_for_good(boss):
    await boss.create_queue("q", retry_limit=5)
    id = await boss.send("q")
    await boss.update_queue("q", retry_limit=0)

    await boss.fail("q", await boss.fetch("q"))

    assert (await boss.get_job_by_id("q", id)).state == "failed"


@pytest.mark.parametrize(
    ("change", "delay"),
    [
        ({"retry_delay": 30}, 30),
        ({"retry_delay": 30, "retry_backoff": True, "retry_jitter": 0}, 60),
        ({"retry_delay": 30, "retry_backoff": True, "retry_jitter": 0, "retry_delay_max": 45}, 45),
    ],
)
async def test_a_changed_delay_applies_to_the_next_retry_of_a_queued_job(boss, clock, change, delay):
    await boss.create_queue("q", retry_delay=1)
    id = await boss.send("q")
    await boss.update_queue("q", **change)

    await boss.fail("q", await boss.fetch("q"))

    job = await boss.get_job_by_id("q", id)
    assert job.start_after == clock.now + timedelta(seconds=delay)


async def test_a_changed_window_applies_to_the_next_failure(boss, clock):
    await boss.create_queue("q", retry_limit=9, retry_backoff=True, retry_jitter=0)
    id = await boss.send("q")
    for _ in range(2):
        await boss.fail("q", await boss.fetch("q"))
        clock.advance(10)
    await boss.update_queue("q", retry_window=5)

    await boss.fail("q", await boss.fetch("q"))

    assert (await boss.get_job_by_id("q", id)).start_after == clock.now + timedelta(seconds=2)


async def test_a_lowered_retention_deletes_queued_jobs(boss, clock):
    await boss.create_queue("q")
    await boss.send("q", "short")
    await boss.send("q", "long", retention=3600)
    await boss.update_queue("q", retention=60)
    clock.advance(61)

    await boss._execute(boss._store.retention.prune())

    assert await take_all(boss, "q") == ["long"]


async def test_lowered_lease_extensions_apply_to_a_running_attempt(boss):
    await boss.create_queue("q")
    await boss.send("q")
    job = await take(boss, "q")
    await boss.update_queue("q", max_lease_extensions=0)

    with pytest.raises(ValueError, match=r"^extend: .*max_lease_extensions times"):
        await boss._execute(boss._store.leases.extend("q", job.lease, 60))


# -- a running attempt keeps the terms of its claim


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_running_attempt_keeps_its_expire_in(boss, clock, policy):
    await boss.create_queue("q", policy=policy, expire_in=900)
    await boss.send("q", singleton_key="k")
    job = await take(boss, "q")
    await boss.update_queue("q", expire_in=5)

    clock.advance(899)
    assert await rescue(boss) == {}
    assert (await boss.get_job_by_id("q", job.id)).expire_in == 900.0
    clock.advance(2)
    assert await rescue(boss) == {"expired": (job.id,)}
    assert (await take(boss, "q")).expire_in == 5.0


async def test_a_raised_expire_in_does_not_prolong_a_running_attempt(boss, clock):
    await boss.create_queue("q", expire_in=5)
    await boss.send("q")
    job = await take(boss, "q")
    await boss.update_queue("q", expire_in=900)
    clock.advance(6)

    assert await rescue(boss) == {"expired": (job.id,)}


@pytest.mark.parametrize(("before", "after"), [(None, 1), (100, 1)])
async def test_a_running_attempt_keeps_its_heartbeat(boss, clock, before, after):
    await boss.create_queue("q", heartbeat=before)
    await boss.send("q")
    job = await take(boss, "q")
    await boss.update_queue("q", heartbeat=after)
    clock.advance(99)

    assert await rescue(boss) == {}
    assert (await boss.get_job_by_id("q", job.id)).heartbeat == before
    await boss.fail("q", job)
    assert (await take(boss, "q")).heartbeat == after


async def test_a_heartbeat_that_is_no_longer_required_is_still_due_for_a_running_attempt(boss, clock):
    await boss.create_queue("q", heartbeat=10)
    await boss.send("q")
    job = await take(boss, "q")
    await boss.update_queue("q", heartbeat=None)
    clock.advance(11)

    assert await rescue(boss) == {"lost": (job.id,)}
