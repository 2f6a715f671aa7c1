"""Dead letter jobs: a job that fails for good leaves a copy in another queue."""

from datetime import timedelta
from functools import partial

import psycopg
import pytest
import trio
from store_helpers import fail_for_good, take, take_all, until_blocked

import trioboss

RETRYING = {"retry_limit": 4, "retry_delay": 2.0, "retry_backoff": True, "retry_delay_max": 50.0}


@pytest.fixture
async def q(boss):
    """A boss with a queue `q` whose dead letter queue is `dead`."""
    await boss.create_queue("dead")
    await boss.create_queue("q", dead_letter="dead")
    return boss


async def test_a_job_that_fails_for_good_leaves_one_dead_letter_job(q):
    failed = await fail_for_good(q, "q", data={"a": 1}, priority=3, singleton_key="k")

    (dead_job,) = await q.find_jobs("dead")
    assert (dead_job.data, dead_job.priority, dead_job.singleton_key) == ({"a": 1}, 3, "k")
    assert (dead_job.state, dead_job.attempt, dead_job.retry_count) == ("created", 0, 0)
    assert dead_job.id != failed.id
    assert dead_job.output == failed.output == {"message": "broken"}


async def test_a_dead_letter_job_names_its_source(q, clock):
    id = await q.send("q", retry_limit=1)
    sent_on = clock.now
    for _ in range(2):
        clock.advance(10)
        await q.fail("q", await q.fetch("q"))

    dead_job = await take(q, "dead")

    assert (dead_job.source_queue, dead_job.source_id) == ("q", id)
    assert (dead_job.source_created_on, dead_job.source_retry_count) == (sent_on, 1)
    assert dead_job.created_on == dead_job.start_after == clock.now
    assert [job.id for job in await q.find_jobs("dead", source_id=id)] == [dead_job.id]


async def test_a_job_that_will_be_retried_leaves_no_dead_letter_job(q):
    await q.send("q", retry_limit=1)
    await q.fail("q", await q.fetch("q"))

    assert await q.find_jobs("dead") == []


@pytest.mark.parametrize("method", ["complete", "cancel", "delete_job"])
async def test_a_job_that_does_not_fail_leaves_no_dead_letter_job(q, method):
    await q.send("q")
    await getattr(q, method)("q", await q.fetch("q"))

    assert await q.find_jobs("dead") == []


async def test_a_retried_job_that_fails_again_leaves_another_dead_letter_job(q):
    failed = await fail_for_good(q, "q")
    await q.retry("q", failed.id)
    await q.fail("q", await q.fetch("q"))

    assert [job.source_id for job in await q.find_jobs("dead")] == [failed.id, failed.id]


async def test_a_dead_letter_job_has_the_retries_and_the_retention_of_its_source(boss, clock):
    await boss.create_queue("dead", retry_limit=0, expire_in=5, retention=5)
    await boss.create_queue("q", dead_letter="dead", expire_in=60)
    await boss.send("q", **{**RETRYING, "retry_limit": 0}, retention=1000)
    clock.advance(100)
    await boss.fail("q", await boss.fetch("q"))

    dead_job = await take(boss, "dead")

    assert (dead_job.retry_limit, dead_job.retry_delay, dead_job.retry_backoff, dead_job.retry_delay_max) == (
        0,
        2.0,
        True,
        50.0,
    )
    assert dead_job.keep_until == clock.now + timedelta(seconds=1000)
    assert (
        dead_job.expire_in == 5.0
    )  # how long an attempt may take depends on its handler, which is another one


async def test_a_dead_letter_job_is_kept_for_the_whole_retention_however_late_the_last_retry(boss, clock):
    await boss.create_queue("dead")
    await boss.create_queue("q", dead_letter="dead")
    await boss.send("q", retry_limit=1, retry_delay=5000, retention=1000)
    await boss.fail("q", await boss.fetch("q"))
    clock.advance(5000)
    await boss.fail("q", await boss.fetch("q"))

    assert (await take(boss, "dead")).keep_until == clock.now + timedelta(seconds=1000)


async def test_a_job_may_name_its_own_dead_letter_queue(q):
    await q.create_queue("elsewhere")
    await fail_for_good(q, "q", data=1, dead_letter="elsewhere")

    assert await take_all(q, "dead") == []
    assert await take_all(q, "elsewhere") == [1]


async def test_a_dead_letter_queue_that_does_not_exist_is_refused(q):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await q.send("q", dead_letter="nowhere")


async def test_a_dead_letter_queue_named_later_is_for_queued_and_active_jobs_as_well(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q", retry_limit=0)
    await boss.send("q", "active")
    active = await boss.fetch("q")
    await boss.send("q", "queued")
    await boss.update_queue("q", dead_letter="dead")
    await boss.send("q", "sent later")
    await boss.fail("q", [*active, *await boss.fetch("q", batch_size=2)])

    assert await take_all(boss, "dead") == ["active", "queued", "sent later"]


async def test_a_dead_letter_job_that_fails_goes_to_the_next_dead_letter_queue(boss):
    await boss.create_queue("c")
    await boss.create_queue("b", dead_letter="c")
    await boss.create_queue("a", dead_letter="b")
    first = await fail_for_good(boss, "a", data="x")
    (second,) = await boss.fetch("b")

    await boss.fail("b", second)
    third = await take(boss, "c")

    assert (second.source_queue, second.source_id) == ("a", first.id)
    assert (third.source_queue, third.source_id, third.data) == ("b", second.id, "x")
    assert third.dead_letter is None


async def test_dead_letter_jobs_are_in_the_order_of_their_sources(q):
    await q.insert("q", [{"data": i, "retry_limit": 0} for i in range(20)])
    await q.fail("q", await q.fetch("q", batch_size=20))

    assert await take_all(q, "dead") == list(range(20))


@pytest.mark.parametrize(
    ("policy", "kept"), [("short", 1), ("exclusive", 1), ("stately", 1), ("singleton", 2)]
)
async def test_dead_letter_jobs_obey_the_policy_of_their_queue(boss, policy, kept):
    await boss.create_queue("dead", policy=policy)
    await boss.create_queue("q", dead_letter="dead")
    for _ in range(2):
        await fail_for_good(boss, "q", singleton_key="k")

    assert len(await boss.find_jobs("dead")) == kept
    assert len(await boss.fetch("dead", batch_size=5)) == 1


async def test_in_strict_fifo_a_dead_letter_job_without_a_key_gets_the_name_of_its_source_queue(boss):
    await boss.create_queue("dead", policy="key_strict_fifo")
    await boss.create_queue("q", dead_letter="dead")
    await fail_for_good(boss, "q", data=1)
    await fail_for_good(boss, "q", data=2)
    await fail_for_good(boss, "q", data=3, singleton_key="k")

    assert [job.singleton_key for job in await boss.find_jobs("dead")] == ["q", "q", "k"]
    assert await take_all(boss, "dead") == [1, 3]


async def test_a_dead_letter_queue_may_have_a_table_of_its_own(boss):
    await boss.create_queue("dead", partition=True)
    await boss.create_queue("q", dead_letter="dead")
    await fail_for_good(boss, "q", data=1)

    assert await take_all(boss, "dead") == [1]


async def test_queued_dead_letter_jobs_are_counted_with_their_source_queue(q):
    await fail_for_good(q, "q")
    await fail_for_good(q, "q")
    await q.fetch("dead")

    assert (await q.get_queue_stats("q")).dead_letter == 1


async def test_if_the_dead_letter_queue_of_a_job_is_gone_that_of_its_queue_is_used(boss):
    for name in ("own", "usual"):
        await boss.create_queue(name)
    await boss.create_queue("q", retry_limit=0, dead_letter="usual")
    id = await boss.send("q", "data", dead_letter="own")
    await boss.fail("q", await boss.fetch("q"))
    await boss.delete_queue("own")
    await boss.retry("q", id)
    await boss.fail("q", await boss.fetch("q"))

    assert await take_all(boss, "usual") == ["data"]


@pytest.fixture
async def strict(boss):
    """A boss with an active job of the key `k`, whose dead letter queue is a strict FIFO queue."""
    await boss.create_queue("dead", policy="key_strict_fifo")
    await boss.create_queue("q", retry_limit=0, dead_letter="dead")
    await boss.send("q", "failed", singleton_key="k")
    return boss, await take(boss, "q")


async def read_in_order(boss, queue):
    """Run all jobs of a queue one after the other, and return their data."""
    order = []
    while jobs := await boss.fetch(queue):
        order += [job.data for job in jobs]
        await boss.complete(queue, jobs)
    return order


async def test_dead_letter_jobs_of_strict_fifo_are_in_the_order_of_commit(strict, database, dsn):
    boss, job = strict
    with trio.fail_after(60), psycopg.connect(dsn) as caller:
        await boss.fail("q", job, conn=caller)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(boss.send, "dead", "later", singleton_key="k"))
            await until_blocked(database)
            caller.commit()

    assert await read_in_order(boss, "dead") == ["failed", "later"]


async def test_a_job_fails_beside_an_open_transaction_that_sends_to_its_dead_letter_queue(strict, dsn):
    boss, job = strict
    with trio.fail_after(60), psycopg.connect(dsn) as caller:
        await boss.send("dead", "open", singleton_key="k", conn=caller)
        await boss.fail("q", job)
        assert await read_in_order(boss, "dead") == ["failed"]
        caller.commit()

    assert await read_in_order(boss, "dead") == ["open"]
