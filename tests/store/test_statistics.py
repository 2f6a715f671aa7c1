"""Statistics over time: samples of queues by the minute, their history, and warnings that are kept."""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import attrs
import pytest
from store_helpers import take

import trioboss
from trioboss.model.statistics import BOUNDS, check_period, percentile, summarize


@pytest.fixture
def sampled(database):
    """Statistics begin ten minutes ago, at a transaction that has just ended."""
    database.execute(
        "update trioboss.sampling set counted = now() - interval '10 min', taken_by = null, "
        "xid = pg_snapshot_xmin(pg_current_snapshot())"
    )
    return database


async def sample(boss, *, minutes=0.0):
    """Take a sample, some minutes from now."""
    boss._store.context.now = datetime.now(UTC) + timedelta(minutes=minutes, seconds=4)
    try:
        await boss._execute(boss._store.statistics.sample())
    finally:
        boss._store.context.now = None


async def history(boss, queue="q"):
    """All of the last minutes, as one period."""
    now = datetime.now(UTC)
    samples = await boss.get_queue_stats_history(
        queue, now - timedelta(minutes=30), now + timedelta(minutes=30)
    )
    return {
        name: sum(getattr(each, name) for each in samples) for name in ("arrived", "completed", "failed")
    }, samples


async def test_a_sample_counts_what_arrived_completed_and_failed(boss, sampled):
    await boss.create_queue("q", retry_limit=1)
    for _ in range(5):
        await boss.send("q")
    first, second, third = await boss.fetch("q", batch_size=3)
    await boss.complete("q", [first, second])
    await boss.fail("q", third)
    await sample(boss)

    counts, samples = await history(boss)
    assert counts == {"arrived": 5, "completed": 2, "failed": 1}
    assert (samples[-1].ready, samples[-1].active, samples[-1].waiting, samples[-1].deferred) == (3, 0, 0, 0)
    assert sum(sum(each.waits) for each in samples) == sum(sum(each.runs) for each in samples) == 2


async def test_a_job_with_an_id_of_the_callers_own_is_counted_once_when_it_ends(boss, sampled):
    await boss.create_queue("q")
    for _ in range(3):
        await boss.send("q", id=uuid4())
    await boss.send("q")
    await boss.complete("q", await take(boss, "q"))
    await sample(boss)
    assert (await history(boss))[0] == {"arrived": 2, "completed": 1, "failed": 0}
    await boss.complete("q", await boss.fetch("q", batch_size=3))
    await sample(boss, minutes=0.2)
    await sample(boss, minutes=0.4)

    assert (await history(boss))[0] == {"arrived": 4, "completed": 4, "failed": 0}


async def test_a_second_sample_adds_only_what_is_new(boss, sampled):
    await boss.create_queue("q")
    await boss.send("q")
    await boss.complete("q", await take(boss, "q"))
    await sample(boss)
    # The sample was taken a few seconds in the future: this job is sent later than that.
    await boss.send("q", id=UUID(int=int((time.time() + 8) * 1000) << 80 | 7 << 76 | 2 << 62))
    await sample(boss, minutes=0.2)
    await sample(boss, minutes=0.4)

    assert (await history(boss))[0] == {"arrived": 2, "completed": 1, "failed": 0}


async def test_a_sample_that_another_boss_takes_at_the_same_time_is_not_taken_twice(boss, sampled):
    await boss.create_queue("q")
    await boss.send("q")
    await sample(boss)
    await sample(boss)  # less than five seconds later

    assert (await history(boss))[0]["arrived"] == 1


async def test_a_job_whose_transaction_took_longer_is_counted_when_its_minute_is_counted_again(boss, sampled):
    await boss.create_queue("q")
    async with boss.transaction() as conn:
        await boss.send("q", conn=conn)
        await sample(boss)
    assert (await history(boss))[0]["arrived"] == 0
    for minutes in range(1, 8):
        await sample(boss, minutes=minutes)

    assert (await history(boss))[0]["arrived"] == 1


async def test_a_queue_in_which_nothing_changes_has_no_further_rows(boss, sampled):
    await boss.create_queue("q")
    await boss.create_queue("silent")
    await boss.send("q")
    await boss.send("q", start_after=3600)
    for minutes in range(9):
        await sample(boss, minutes=minutes)
    rows = sampled.execute("select queue, arrived, ready, deferred from trioboss.queue_sample").fetchall()

    # Two rows if a minute ended between the sends and the first sample.
    assert {queue for queue, _, _, _ in rows} == {"q"}
    assert sum(arrived for _, arrived, _, _ in rows) == 2
    assert [(ready, deferred) for _, _, ready, deferred in rows if ready is not None] == [(1, 1)]


@pytest.mark.parametrize("ahead", ["2 hours", "100 years"])
async def test_samples_go_on_after_the_clock_of_the_server_was_wrong(boss, sampled, ahead):
    sampled.execute("update trioboss.sampling set counted = now() + %s::interval", [ahead])
    await boss.create_queue("q")
    await boss.send("q")

    await sample(boss)

    assert (await history(boss))[0]["arrived"] == 1


async def test_counts_for_other_bounds_can_be_read(boss, sampled):
    """A worker of another version has written them, beside ours."""
    await boss.create_queue("q")
    sampled.execute(
        "insert into trioboss.queue_sample (minute, queue, completed, waits, runs) values "
        "(date_trunc('minute', now()), 'q', 3, '{1,1,1}', array_fill(1, array[20])), "
        "(date_trunc('minute', now()) - interval '1 min', 'q', 13, array_fill(1, array[13]), '{1}')"
    )

    _, samples = await history(boss)

    assert {len(each.waits) for each in samples} == {len(each.runs) for each in samples} == {len(BOUNDS) + 1}
    assert sum(samples[0].waits) + sum(sum(each.waits) for each in samples[1:]) == 16


async def test_a_period_without_a_sample_is_like_the_one_before(boss, sampled):
    await boss.create_queue("q")
    await boss.send("q")
    await sample(boss)
    now = datetime.now(UTC)
    samples = await boss.get_queue_stats_history("q", now + timedelta(minutes=5), now + timedelta(minutes=8))

    assert [each.ready for each in samples[1:]] == [1, 1, 1]
    assert {each.arrived for each in samples} == {0}


async def test_jobs_behind_the_owner_of_their_key_are_waiting(boss, sampled):
    await boss.create_queue("q", policy="singleton")
    for _ in range(3):
        await boss.send("q", singleton_key="k")
    await take(boss, "q")
    await sample(boss)

    _, samples = await history(boss)
    assert (samples[-1].waiting, samples[-1].active) == (2, 1)


async def test_the_statistics_of_completed_jobs_go_on_when_they_were_sampled(boss, sampled):
    await boss.create_queue("q")
    for number in range(4):
        await boss.send("q")
        await boss.complete("q", await take(boss, "q"))
        if number == 1:
            await sample(boss)

    assert (await boss.get_queue_stats("q")).completed == 4
    assert (await boss.get_all_queue_stats())["q"] == await boss.get_queue_stats("q")


@pytest.mark.parametrize(
    ("since", "until", "bucket", "field"),
    [
        (None, None, 30, "bucket"),
        (None, None, 90, "bucket"),
        ("2030-01-02T00:00Z", "2030-01-01T00:00Z", None, "since"),
        ("2020-01-01T00:00Z", "2030-01-01T00:00Z", 60, "bucket"),
        ("yesterday", None, None, "since"),
    ],
)
async def test_a_period_that_cannot_be_is_refused(boss, since, until, bucket, field):
    await boss.create_queue("q")
    with pytest.raises(trioboss.UsageError, match=f"^{field}: "):
        await boss.get_queue_stats_history("q", since, until, bucket)


async def test_the_history_of_an_unknown_queue_is_refused(boss):
    with pytest.raises(trioboss.UnknownQueue):
        await boss.get_queue_stats_history("q")


def test_minutes_are_added_up_to_longer_periods():
    start = datetime(2030, 1, 1, tzinfo=UTC)
    histogram = [1] + [0] * len(BOUNDS)
    rows = [
        (start - timedelta(hours=1), 1, 2, 3, 4, 0, 0, 0, None, None),
        (start + timedelta(minutes=1), None, None, None, None, 5, 1, 1, histogram, histogram),
        (start + timedelta(minutes=4), 0, 0, 9, 0, 5, 2, 0, histogram, None),
    ]
    first, end, bucket = check_period(start, start + timedelta(minutes=10), 300, start)
    one, two = summarize(rows, first, end, bucket)

    assert (one.arrived, one.completed, one.failed, one.ready, one.waits[0]) == (10, 3, 1, 9, 2)
    assert attrs.evolve(two, start=start).arrived == 0
    assert two.ready == 9


def test_percentiles_lie_within_their_bucket():
    assert percentile([0] * 13, 0.5) is None
    assert percentile([0, 0, 0, 0, 10] + [0] * 8, 0.5) == pytest.approx(0.65)
    assert percentile([0] * 12 + [3], 0.95) == BOUNDS[-1]
    assert percentile([4] + [0] * 12, 1.0) == BOUNDS[0]


# -- warnings


async def keep(boss, *warnings, minutes=0.0):
    boss._store.context.now = datetime.now(UTC) + timedelta(minutes=minutes)
    await boss._execute(boss._store.statistics.keep_warnings(warnings))
    boss._store.context.now = None


async def test_a_warning_that_comes_back_every_minute_is_kept_once(boss):
    for minutes in range(4):
        await keep(
            boss, ("q", "queue_size", f"more than {minutes}"), (None, "old_snapshot", "old"), minutes=minutes
        )
    await keep(boss, ("q", "queue_size", "again"), minutes=30)
    warnings = await boss.get_warnings()

    assert {(each.queue, each.kind, each.message, each.count) for each in warnings} == {
        ("q", "queue_size", "again", 1),
        ("q", "queue_size", "more than 3", 4),
        (None, "old_snapshot", "old", 4),
    }
    assert warnings[0].message == "again"
    assert [each.kind for each in await boss.get_warnings("q", limit=1)] == ["queue_size"]
