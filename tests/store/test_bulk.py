"""insert: any number of jobs, all or none, streamed."""

import contextlib
import tracemalloc
from datetime import timedelta
from uuid import uuid4

import pytest
from store_helpers import open_quiet_boss, take_all

import trioboss
from trioboss import NewJob, Policy
from trioboss.model.ids import make_id
from trioboss.store import loading
from trioboss.store.copying import blocks
from trioboss.testing import temporary_database

# The options that choose the load path of a job: with an id of its own it is staged, with a throttle sent by itself.
PATHS = {"copied": dict, "staged": lambda: {"id": uuid4()}, "sent": lambda: {"singleton_seconds": 60}}


def count(database):
    return database.execute("select count(*) from trioboss.job").fetchone()[0]


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


async def test_jobs_are_dicts_or_new_jobs_in_any_iterable(q):
    assert await q.insert("q", [{"data": 1}, NewJob(2), {}, NewJob()]) == 4
    assert await q.insert("q", (NewJob(i) for i in (3, 4))) == 2
    assert await q.insert("q", []) == 0

    assert await take_all(q, "q") == [1, 2, None, None, 3, 4]


@pytest.mark.parametrize("path", PATHS)
async def test_the_ids_are_returned_if_asked_for_in_the_order_of_the_jobs(q, path):
    jobs = [{"data": i, "singleton_key": str(i), **PATHS[path]()} for i in range(5)]

    ids = await q.insert("q", jobs, return_ids=True)

    assert [job.id for job in await q.fetch("q", batch_size=5)] == ids


@pytest.mark.parametrize("path", PATHS)
async def test_options_are_kept_and_the_others_come_from_the_queue(boss, clock, path):
    await boss.create_queue("dead")
    await boss.create_queue("q", retry_limit=7, expire_in=30, heartbeat=5, retention=60, dead_letter="dead")
    options = {"priority": -3, "retry_delay": 3.0, "retry_backoff": True, "retry_delay_max": 60.0}
    options |= {"singleton_key": "k é", "auto_heartbeat": False, "max_lease_extensions": 1}

    await boss.insert("q", [{"data": [1e16], **options, "start_after": 10, **PATHS[path]()}])
    (job,) = await boss.find_jobs("q")

    assert job.data == [1e16]
    assert {name: getattr(job, name) for name in options} == options
    assert (job.retry_limit, job.expire_in, job.heartbeat, job.dead_letter) == (7, 30.0, 5.0, "dead")
    assert job.created_on == clock.now
    assert job.start_after == clock.now + timedelta(seconds=10)
    assert job.keep_until == clock.now + timedelta(seconds=70)


@pytest.mark.parametrize("path", PATHS)
async def test_options_that_a_job_object_does_not_have_are_in_the_view(boss, database, path):
    await boss.create_queue("q", delete_after=5)
    await boss.insert("q", [{"retry_backoff": True, "retry_window": 7, **PATHS[path]()}])

    row = database.execute(
        "select delete_after, retry_jitter, retry_window, policy from trioboss.job"
    ).fetchone()

    assert row == (timedelta(seconds=5), 0.5, timedelta(seconds=7), "standard")


@pytest.mark.parametrize("path", PATHS)
async def test_deferred_jobs_wait_for_their_time(q, clock, path):
    await q.insert("q", [{"start_after": clock.now + timedelta(seconds=5), **PATHS[path]()}])

    assert await q.fetch("q") == []
    clock.advance(5)
    assert len(await q.fetch("q")) == 1


async def test_jobs_on_different_load_paths_keep_their_order(q):
    paths = ["copied", "copied", "staged", "copied", "sent", "copied", "staged", "sent", "sent", "copied"]

    await q.insert(
        "q", [{"data": i, "singleton_key": str(i), **PATHS[path]()} for i, path in enumerate(paths)]
    )

    assert await take_all(q, "q") == list(range(10))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"data": {"a": [float("nan")]}}, r"^jobs\[3\]\.data\.a\[0\]: nan is not JSON"),
        ({"priority": "high"}, r"^jobs\[3\]: priority: 'high'"),
        ({"start_after": -1}, r"^jobs\[3\]: start_after: -1"),
        ({"retries": 3}, r"^jobs\[3\]: .*'retries'"),
        (5, r"^jobs\[3\]: int is not a job: use a NewJob, or a dict"),
        ("ab", r"^jobs\[3\]: str is not a job"),
        (None, r"^jobs\[3\]: NoneType is not a job"),
    ],
)
async def test_one_bad_job_is_named_and_nothing_is_inserted(q, database, path, bad, message):
    jobs = [{"data": i, "singleton_key": str(i), **PATHS[path]()} for i in range(3)]

    with pytest.raises(ValueError, match=message):
        await q.insert("q", [*jobs, bad, {"data": 5}])
    assert count(database) == 0
    assert await q.insert("q", [{}]) == 1


async def test_an_error_of_the_callers_generator_is_raised_and_nothing_is_inserted(q, database):
    def jobs():
        yield {"data": 1}
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        await q.insert("q", jobs())
    assert count(database) == 0


@pytest.mark.parametrize("path", PATHS)
async def test_a_dead_letter_queue_that_does_not_exist_is_named_and_nothing_is_inserted(q, database, path):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await q.insert("q", [{}, {"dead_letter": "nowhere", **PATHS[path]()}])
    assert count(database) == 0


async def test_a_queue_that_does_not_exist_is_named(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.insert("nowhere", [{}])


async def test_strict_fifo_needs_a_key_for_every_job(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(ValueError, match=r"^jobs\[1\]: key_strict_fifo queues require a singleton_key"):
        await boss.insert("q", [{"singleton_key": "k"}, {"data": 1}])
    assert count(database) == 0


async def test_the_same_id_twice_is_one_job(q):
    id, ended = make_id(), await q.send("q", "ended")
    await q.complete("q", await q.fetch("q"))

    jobs = [{"id": id, "data": "first"}, {"id": id, "data": "second"}, {"id": ended, "data": "again"}]

    assert await q.insert("q", jobs, return_ids=True) == [id]
    assert await q.insert("q", jobs) == 0
    assert await take_all(q, "q") == ["first"]


@pytest.mark.parametrize("policy", list(Policy))
async def test_the_policy_decides_which_jobs_are_inserted(boss, policy):
    await boss.create_queue("q", policy=policy)
    jobs = [{"data": key + n, "singleton_key": key} for n in "123" for key in "ab"]

    inserted = await boss.insert("q", jobs)

    one_queued = policy in (Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE)
    assert inserted == (2 if one_queued else 6)
    assert await boss.get_queue_size("q") == inserted


async def test_a_job_whose_slot_is_taken_is_not_inserted(boss):
    await boss.create_queue("q", policy="short")
    await boss.send("q", singleton_key="a")

    assert len(await boss.insert("q", [{"singleton_key": "a"}, {"singleton_key": "b"}], return_ids=True)) == 1


async def test_throttled_jobs_are_throttled(q, clock):
    slot = {"singleton_seconds": 60}

    assert await q.insert("q", [{"data": 1, **slot}, {"data": 2, **slot}, {"data": 3}]) == 2
    assert await q.insert("q", [{"data": 4, **slot, "singleton_next_slot": True}]) == 1
    assert await take_all(q, "q") == [1, 3]


async def test_jobs_are_read_from_the_iterable_while_earlier_ones_are_sent(q, monkeypatch):
    read = 0
    read_before_each_block = []

    def jobs():
        nonlocal read
        for read in range(1, 2001):  # noqa: B007
            yield {"data": "x" * 1000}

    def recorded(rows):
        for block in blocks(rows):
            read_before_each_block.append(read)
            yield block

    monkeypatch.setattr(loading, "blocks", recorded)
    await q.insert("q", jobs())

    assert len(read_before_each_block) > 5
    assert read_before_each_block[0] < 200
    assert read_before_each_block[-1] == 2000


@pytest.mark.parametrize("policy", ["standard", "singleton"])
async def test_many_jobs_are_never_held_in_memory_together(boss, policy):
    await boss.create_queue("q", policy=policy)
    tracemalloc.start()
    try:
        inserted = await boss.insert("q", ({"data": {"number": i}} for i in range(8_000)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert inserted == 8_000
    assert peak < 1_000_000  # their ids alone would be more


async def test_a_hundred_thousand_jobs_are_inserted_at_once(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn:
        async with open_quiet_boss(dsn) as boss:
            await boss.create_queue("q")

            assert await boss.insert("q", ({"data": i} for i in range(100_000))) == 100_000
            assert await boss.get_queue_size("q") == 100_000
            assert [job.data for job in await boss.fetch("q", batch_size=3)] == [0, 1, 2]


async def test_a_load_that_is_rolled_back_leaves_nothing(q, database):
    with contextlib.suppress(ZeroDivisionError):
        async with q.transaction() as conn:
            await q.insert("q", [{"data": 1}, {"data": 2, "id": make_id()}], conn=conn)
            raise ZeroDivisionError

    assert count(database) == 0
    assert database.execute("select count(*) from trioboss.staging").fetchone() == (0,)


async def test_a_bad_load_leaves_the_callers_transaction_as_it_was(q):
    async with q.transaction() as conn:
        await q.send("q", "before", conn=conn)
        with pytest.raises(trioboss.PayloadError):
            await q.insert("q", [{"data": 1}, {"data": {2}}], conn=conn)
        await q.send("q", "after", conn=conn)

    assert await take_all(q, "q") == ["before", "after"]
