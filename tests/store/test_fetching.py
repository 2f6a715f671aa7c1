"""fetch: which jobs are claimed, and in which order."""

import contextlib
import copy
import pickle
from datetime import timedelta

import attrs
import pytest
from store_helpers import open_quiet_boss, take, take_all

import trioboss


async def test_an_empty_queue_gives_nothing(boss):
    await boss.create_queue("q")

    assert await boss.fetch("q") == []


async def test_a_fetched_job_is_leased_without_a_worker(boss, clock):
    await boss.create_queue("q")
    await boss.send("q")
    clock.advance(5)

    job = await take(boss, "q")

    assert (job.state, job.attempt, job.retry_count) == ("active", 1, 0)
    assert job.started_on == clock.now
    assert job.worker is job.heartbeat_on is None  # no worker has it, and no heartbeat was sent yet
    assert await boss.get_job_by_id("q", job.id) == job


async def test_a_claimed_job_is_an_ordinary_value_although_it_shares_most_of_its_own(boss):
    await boss.create_queue("q", retry_limit=7)
    await boss.send("q", {"a": 1}, retry_delay=5)

    job = await take(boss, "q")

    assert (job.retry_limit, job.retry_delay, job.policy) == (7, 5, "standard")
    assert copy.copy(job) == pickle.loads(pickle.dumps(job)) == attrs.evolve(job) == job
    assert set(attrs.asdict(job)) == {field.name for field in attrs.fields(trioboss.Job)}
    with pytest.raises(AttributeError, match="'Job' object has no attribute 'retry_limits'"):
        _ = job.retry_limits


async def test_no_job_is_fetched_twice(boss):
    await boss.create_queue("q")
    await boss.send("q")

    assert len(await boss.fetch("q")) == 1
    assert await boss.fetch("q") == []


async def test_one_job_is_fetched_unless_more_are_asked_for(boss):
    await boss.create_queue("q")
    await boss.insert("q", [{"data": i} for i in range(5)])

    assert [job.data for job in await boss.fetch("q")] == [0]
    assert [job.data for job in await boss.fetch("q", batch_size=3)] == [1, 2, 3]
    assert [job.data for job in await boss.fetch("q", batch_size=3)] == [4]


async def send_priorities(boss):
    await boss.create_queue("q")
    for priority in (0, 2, None, -1, 2, 10):
        await boss.send("q", priority, priority=priority)


async def test_high_priorities_go_first_and_equal_ones_in_order_of_sending(boss):
    await send_priorities(boss)

    jobs = await boss.fetch("q", batch_size=9)

    assert [job.priority for job in jobs] == [10, 2, 2, 0, 0, -1]
    assert [job.data for job in jobs if job.priority == 0] == [0, None]
    assert jobs[1].seq < jobs[2].seq


async def test_a_small_batch_takes_the_highest_priorities(boss):
    await send_priorities(boss)

    taken = [[job.priority for job in await boss.fetch("q", batch_size=2)] for _ in range(3)]

    assert taken == [[10, 2], [2, 0], [0, -1]]


async def test_without_priority_jobs_go_in_order_of_sending(boss):
    await send_priorities(boss)

    taken = [job.data for job in await boss.fetch("q", batch_size=3, priority=False)]
    taken += [job.data for job in await boss.fetch("q", batch_size=3, priority=False)]

    assert taken == [0, 2, None, -1, 2, 10]


@pytest.mark.parametrize("by_priority", [True, False])
@pytest.mark.parametrize(
    ("bounds", "wanted"),
    [
        ({"min_priority": 2}, {2, 10}),
        ({"max_priority": 1}, {0, -1}),
        ({"min_priority": 0, "max_priority": 2}, {0, 2}),
        ({"min_priority": 3, "max_priority": 9}, set()),
    ],
)
async def test_only_priorities_within_the_bounds_are_taken(boss, bounds, wanted, by_priority):
    await send_priorities(boss)

    jobs = await boss.fetch("q", batch_size=9, priority=by_priority, **bounds)

    assert {job.priority for job in jobs} == wanted


async def test_deferred_jobs_are_taken_when_they_are_due(boss, clock):
    await boss.create_queue("q")
    await boss.send("q", "later", start_after=60)
    await boss.send("q", "sooner", start_after=30)

    assert await take_all(boss, "q") == []
    clock.advance(30)
    assert await take_all(boss, "q") == ["sooner"]
    clock.advance(30)
    assert await take_all(boss, "q") == ["later"]


@pytest.mark.parametrize("policy", ["standard", "short", "singleton", "exclusive", "key_strict_fifo"])
async def test_deferred_jobs_can_be_taken_before_they_are_due(boss, clock, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", "due", singleton_key="a")
    await boss.send("q", "deferred", singleton_key="b", start_after=60)

    jobs = await boss.fetch("q", batch_size=5, ignore_start_after=True)

    assert [job.data for job in jobs] == ["due", "deferred"]


async def test_no_more_deferred_jobs_are_taken_early_than_asked_for(boss, clock):
    await boss.create_queue("q")
    for seconds in (30, 10, 20):
        await boss.send("q", seconds, start_after=seconds)

    jobs = await boss.fetch("q", batch_size=2, ignore_start_after=True)

    assert {job.data for job in jobs} == {10, 20}
    assert (await boss.get_queue_stats("q")).deferred == 1


async def test_of_deferred_jobs_only_priorities_within_the_bounds_are_taken_early(boss, clock):
    await boss.create_queue("q")
    await boss.send("q", start_after=10, priority=1)
    await boss.send("q", start_after=20, priority=5)

    jobs = await boss.fetch("q", batch_size=2, ignore_start_after=True, min_priority=5)

    assert [job.priority for job in jobs] == [5]


async def test_nothing_is_taken_from_a_paused_queue_not_even_early(boss, clock):
    await boss.create_queue("q")
    await boss.send("q")
    await boss.send("q", start_after=60)
    await boss.pause("q")

    assert await boss.fetch("q", batch_size=5, ignore_start_after=True) == []
    assert await boss.fetch("q", batch_size=5, priority=False) == []


async def test_a_job_whose_fetch_is_rolled_back_is_still_queued(boss):
    await boss.create_queue("q")
    await boss.send("q", "still there")

    with contextlib.suppress(ZeroDivisionError):
        async with boss.transaction() as conn:
            assert len(await boss.fetch("q", conn=conn)) == 1
            raise ZeroDivisionError
    job = await take(boss, "q")

    assert (job.data, job.attempt) == ("still there", 1)


@pytest.mark.parametrize("policy", list(trioboss.Policy))
async def test_a_job_is_fetched_and_completed_in_one_transaction(boss, policy):
    await boss.create_queue("q", policy=policy)
    id = await boss.send("q", singleton_key="k")

    async with boss.transaction() as conn:
        (job,) = await boss.fetch("q", conn=conn)
        await boss.complete("q", job, "done", conn=conn)
        assert await boss.fetch("q") == []  # no other caller can claim it

    assert (await boss.get_job_by_id("q", id)).output == "done"


async def test_fetching_from_a_queue_that_does_not_exist_names_it(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.fetch("nowhere")


async def test_fetching_from_a_queue_that_was_just_deleted_names_it(boss, dsn):
    await boss.create_queue("q")
    await boss.fetch("q")
    async with open_quiet_boss(dsn) as other:
        await other.delete_queue("q")

    with pytest.raises(trioboss.UnknownQueue, match="'q'"):
        await boss.fetch("q")


@pytest.mark.parametrize(
    "option",
    [
        {"batch_size": 0},
        {"batch_size": 1.5},
        {"priority": "yes"},
        {"ignore_start_after": None},
        {"min_priority": "low"},
        {"max_priority": 2**31},
    ],
)
async def test_a_bad_option_is_refused_by_name(offline_boss, option):
    with pytest.raises(ValueError, match=f"^{next(iter(option))}: "):
        await offline_boss.fetch("q", **option)


async def test_a_retried_job_keeps_its_place_in_the_order(boss):
    await boss.create_queue("q")
    for i in range(3):
        await boss.send("q", i)
    await boss.fail("q", await boss.fetch("q"))

    assert await take_all(boss, "q") == [0, 1, 2]


async def test_a_deferred_job_that_is_due_goes_by_the_order_of_sending(boss, clock):
    await boss.create_queue("q")
    await boss.send("q", "deferred", start_after=timedelta(seconds=5))
    await boss.send("q", "sent later")
    clock.advance(5)

    assert await take_all(boss, "q") == ["deferred", "sent later"]


async def test_a_queue_that_another_boss_created_again_as_a_keyed_one_is_fetched_from_at_once(boss, dsn):
    await boss.create_queue("q")
    assert await boss.fetch("q") == []
    async with open_quiet_boss(dsn) as other:
        await other.delete_queue("q")
        await other.create_queue("q", policy="singleton")
        await other.send("q", "first", singleton_key="k")

    assert await take_all(boss, "q") == ["first"]
