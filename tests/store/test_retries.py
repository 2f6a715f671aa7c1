"""How often a job is tried, and how long it waits in between."""

from datetime import timedelta

import pytest
from store_helpers import take


async def fail_once(boss, clock):
    """Fail the job of the queue, and return the seconds until it is tried again, or None."""
    job = await take(boss, "q")
    await boss.fail("q", job)
    job = await boss.get_job_by_id("q", job.id)
    if job.state == "failed":
        return None
    wait = (job.start_after - clock.now).total_seconds()
    clock.advance(wait)
    return wait


async def delays(boss, clock, count):
    return [await fail_once(boss, clock) for _ in range(count)]


@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_a_job_is_tried_once_more_than_its_retry_limit(boss, clock, limit):
    await boss.create_queue("q", retry_limit=limit)
    await boss.send("q")

    assert await delays(boss, clock, limit + 1) == [0.0] * limit + [None]


async def test_each_try_has_a_number_and_each_retry_is_counted(boss, clock):
    await boss.create_queue("q")
    await boss.send("q")

    tries = []
    for _ in range(3):
        job = await take(boss, "q")
        tries.append((job.attempt, job.retry_count, job.retry_limit))
        await boss.fail("q", job)

    assert tries == [(1, 0, 2), (2, 1, 2), (3, 2, 2)]


async def test_a_failed_job_waits_as_a_retry(boss, clock):
    await boss.create_queue("q", retry_delay=60)
    id = await boss.send("q")
    await boss.fail("q", await boss.fetch("q"), "broken")

    job = await boss.get_job_by_id("q", id)

    assert (job.state, job.output, job.worker, job.heartbeat_on) == (
        "retry",
        {"message": "broken"},
        None,
        None,
    )
    assert job.start_after == clock.now + timedelta(seconds=60)
    assert await boss.fetch("q") == []
    clock.advance(60)
    assert (await take(boss, "q")).id == id


async def test_the_delay_is_fixed_without_backoff(boss, clock):
    await boss.create_queue("q", retry_limit=3, retry_delay=1.5)
    await boss.send("q")

    assert await delays(boss, clock, 3) == [1.5, 1.5, 1.5]


async def test_a_fixed_delay_may_have_jitter(boss, clock):
    await boss.create_queue("q", retry_limit=20, retry_delay=100, retry_jitter=0.2)
    await boss.send("q")

    waits = await delays(boss, clock, 20)

    assert all(80 <= wait <= 100 for wait in waits)
    assert len(set(waits)) > 1


async def test_backoff_doubles_the_delay_and_half_of_it_is_random(boss, clock):
    await boss.create_queue("q", retry_limit=8, retry_delay=3, retry_backoff=True)
    await boss.send("q")

    waits = await delays(boss, clock, 8)

    for n, wait in enumerate(waits, start=1):
        assert 3 * 2**n / 2 <= wait <= 3 * 2**n


async def test_backoff_without_jitter_doubles_exactly(boss, clock):
    await boss.create_queue("q", retry_limit=4, retry_delay=3, retry_backoff=True, retry_jitter=0)
    await boss.send("q")

    assert await delays(boss, clock, 4) == [6.0, 12.0, 24.0, 48.0]


async def test_backoff_starts_from_one_second_unless_a_delay_is_given(boss, clock):
    await boss.create_queue("q", retry_limit=3, retry_backoff=True, retry_jitter=0)
    await boss.send("q")

    assert await delays(boss, clock, 3) == [2.0, 4.0, 8.0]


async def test_backoff_stops_at_its_maximum(boss, clock):
    await boss.create_queue("q", retry_limit=5, retry_backoff=True, retry_jitter=0, retry_delay_max=5)
    await boss.send("q")

    assert await delays(boss, clock, 5) == [2.0, 4.0, 5.0, 5.0, 5.0]


async def test_backoff_multiplies_by_the_number_of_the_queue_or_of_the_job(boss, clock):
    await boss.create_queue("q", retry_limit=3, retry_backoff=True, retry_jitter=0, retry_multiplier=3)
    await boss.send("q")

    assert await delays(boss, clock, 3) == [3.0, 9.0, 27.0]

    await boss.delete_all_jobs("q")
    await boss.send("q", retry_multiplier=1.5)

    assert await delays(boss, clock, 3) == [1.5, 2.25, 3.375]


async def test_backoff_doubles_no_more_than_16_times(boss, clock):
    await boss.create_queue("q", retry_limit=18, retry_backoff=True, retry_jitter=0)
    await boss.send("q")

    assert (await delays(boss, clock, 18))[-3:] == [2.0**16] * 3


async def test_after_a_window_without_failure_backoff_starts_again(boss, clock):
    await boss.create_queue("q", retry_limit=9, retry_backoff=True, retry_jitter=0, retry_window=100)
    await boss.send("q")

    before = await delays(boss, clock, 3)
    clock.advance(101)
    after = await delays(boss, clock, 2)

    assert before == [2.0, 4.0, 8.0]
    assert after == [2.0, 4.0]


async def test_within_the_window_backoff_goes_on(boss, clock):
    await boss.create_queue("q", retry_limit=9, retry_backoff=True, retry_jitter=0, retry_window=100)
    await boss.send("q")

    await delays(boss, clock, 2)
    clock.advance(90)

    assert await delays(boss, clock, 1) == [8.0]


async def test_a_restarted_backoff_does_not_restart_the_count_of_retries(boss, clock):
    await boss.create_queue("q", retry_limit=2, retry_backoff=True, retry_jitter=0, retry_window=1)
    await boss.send("q")

    assert await delays(boss, clock, 3) == [2.0, 2.0, None]


async def test_a_jobs_own_options_go_before_the_queues(boss, clock):
    await boss.create_queue("q", retry_limit=0, retry_delay=100)
    await boss.send("q", retry_limit=3, retry_delay=1, retry_backoff=True, retry_jitter=0, retry_delay_max=3)

    assert await delays(boss, clock, 4) == [2.0, 3.0, 3.0, None]


async def test_a_backoff_of_its_own_brings_the_usual_jitter(boss, clock):
    await boss.create_queue("q", retry_limit=9)
    await boss.send("q", retry_backoff=True)

    waits = await delays(boss, clock, 9)

    assert all(2**n / 2 <= wait <= 2**n for n, wait in enumerate(waits, start=1))
    assert any(wait != 2**n for n, wait in enumerate(waits, start=1))


async def test_the_history_has_every_attempt_that_did_not_end_well(boss, clock, database):
    await boss.create_queue("q", retry_limit=1)
    id = await boss.send("q", singleton_key="k")
    await delays(boss, clock, 2)

    rows = database.execute(
        "select job_id, queue, attempt, outcome, key from trioboss.attempt order by attempt"
    )

    assert rows.fetchall() == [(id, "q", 1, "failed", "k"), (id, "q", 2, "failed", "k")]


async def test_a_delay_that_doubles_for_ever_ends_at_a_hundred_years(boss, database, clock):
    await boss.create_queue("q", retry_limit=20, retry_delay=timedelta(days=60), retry_backoff=True)
    id = await boss.send("q")
    (job,) = await boss.fetch("q")
    database.execute("""update trioboss.live_job set notes = '{"failures": 16}'""")
    await boss.fail("q", job)
    job = await boss.get_job_by_id("q", id)
    assert job.start_after == clock.now + timedelta(days=36525)
