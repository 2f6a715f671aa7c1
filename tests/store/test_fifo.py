"""key_strict_fifo: one at a time for each key, in order, and a failed job blocks its key."""

from datetime import timedelta
from functools import partial

import psycopg
import pytest
import trio
from store_helpers import fail_for_good, take, take_all, until_blocked


@pytest.fixture
async def fifo(boss):
    """A boss with a strict queue `q`."""
    await boss.create_queue("q", policy="key_strict_fifo", retry_limit=1, retry_delay=60)
    return boss


async def run_all(boss, queue="q"):
    """Run jobs until none is left, and return their data in the order in which they ran."""
    ran = []
    while jobs := await boss.fetch(queue, batch_size=100):
        ran += [job.data for job in jobs]
        await boss.complete(queue, jobs)
    return ran


async def test_jobs_of_one_key_run_in_the_order_they_were_sent(fifo):
    for i in range(10):
        await fifo.send("q", i, singleton_key="k")

    assert await run_all(fifo) == list(range(10))


async def test_jobs_sent_in_one_transaction_run_in_order(fifo):
    async with fifo.transaction() as conn:
        for i in range(12):
            await fifo.send("q", i, singleton_key="k", conn=conn)

    assert await run_all(fifo) == list(range(12))


async def test_jobs_inserted_together_run_in_order(fifo):
    await fifo.insert("q", [{"data": i, "singleton_key": f"k{i % 3}"} for i in range(60)])

    ran = await run_all(fifo)

    for key in range(3):
        assert [i for i in ran if i % 3 == key] == list(range(key, 60, 3))


async def test_jobs_of_plain_sql_run_in_order(fifo, database):
    database.execute(
        "insert into trioboss.job (name, data, singleton_key) "
        "select 'q', to_jsonb(i), 'k' from generate_series(0, 19) i"
    )
    await fifo.send("q", 20, singleton_key="k")

    assert await run_all(fifo) == list(range(21))


async def test_a_send_waits_for_an_open_send_of_the_same_key(fifo, database, dsn):
    with trio.fail_after(60), psycopg.connect(dsn) as caller:
        await fifo.send("q", "first", singleton_key="k", conn=caller)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(fifo.send, "q", "second", singleton_key="k"))
            await until_blocked(database)
            assert await fifo.send("q", "other", singleton_key="other") is not None
            caller.commit()

    assert [data for data in await run_all(fifo) if data != "other"] == ["first", "second"]


async def test_a_job_of_high_priority_does_not_pass_others_of_its_key(fifo):
    await fifo.send("q", "first", singleton_key="k")
    await fifo.send("q", "urgent", singleton_key="k", priority=100)

    assert await run_all(fifo) == ["first", "urgent"]


async def test_a_job_of_high_priority_goes_before_other_keys(fifo):
    await fifo.send("q", "a", singleton_key="a")
    await fifo.send("q", "urgent", singleton_key="b", priority=100)

    assert (await take(fifo, "q")).data == "urgent"


async def test_different_keys_run_side_by_side(fifo):
    await fifo.insert("q", [{"data": key + n, "singleton_key": key} for n in "12" for key in "abc"])

    assert await take_all(fifo, "q") == ["a1", "b1", "c1"]


async def test_an_active_job_blocks_its_key(fifo):
    await fifo.send("q", 1, singleton_key="k")
    await fifo.send("q", 2, singleton_key="k")
    await fifo.fetch("q")

    assert await take_all(fifo, "q") == []


async def test_a_retrying_job_blocks_its_key_until_it_has_run_again(fifo, clock):
    await fifo.send("q", 1, singleton_key="k")
    await fifo.send("q", 2, singleton_key="k")
    await fifo.fail("q", await fifo.fetch("q"))

    assert await take_all(fifo, "q") == []
    clock.advance(60)
    assert await run_all(fifo) == [1, 2]


async def test_a_failed_job_blocks_its_key_and_no_other(fifo):
    failed = await fail_for_good(fifo, "q", singleton_key="k", data="failed")
    await fifo.send("q", "behind", singleton_key="k")
    await fifo.send("q", "free", singleton_key="other")

    assert await take_all(fifo, "q") == ["free"]
    assert await fifo.get_blocked_keys("q") == ["k"]
    assert (await fifo.get_job_by_id("q", failed.id)).completed_on is not None


async def test_deleting_the_failed_job_unblocks_its_key(fifo):
    failed = await fail_for_good(fifo, "q", singleton_key="k", data="failed")
    await fifo.send("q", "behind", singleton_key="k")

    await fifo.delete_job("q", failed.id)

    assert await fifo.get_blocked_keys("q") == []
    assert await run_all(fifo) == ["behind"]


async def test_retrying_the_failed_job_unblocks_its_key_and_it_goes_first(fifo):
    failed = await fail_for_good(fifo, "q", singleton_key="k", data="failed")
    await fifo.send("q", "behind", singleton_key="k")

    await fifo.retry("q", failed.id)

    assert await fifo.get_blocked_keys("q") == []
    assert await run_all(fifo) == ["failed", "behind"]


async def test_a_retried_job_has_one_more_try_and_its_whole_retention(fifo, clock):
    failed = await fail_for_good(fifo, "q", singleton_key="k", retention=100)
    clock.advance(1000)

    await fifo.retry("q", failed.id)
    job = await fifo.get_job_by_id("q", failed.id)

    assert (job.state, job.retry_count, job.retry_limit) == ("retry", 1, 1)
    assert job.start_after == clock.now
    assert job.keep_until == clock.now + timedelta(seconds=100)
    assert job.completed_on is None


async def test_a_failed_job_that_fails_again_blocks_again(fifo):
    failed = await fail_for_good(fifo, "q", singleton_key="k")
    await fifo.retry("q", failed.id)
    await fifo.fail("q", await fifo.fetch("q"))

    assert await fifo.get_blocked_keys("q") == ["k"]


async def test_cancelling_a_retrying_job_unblocks_its_key(fifo):
    await fifo.send("q", 1, singleton_key="k")
    await fifo.send("q", 2, singleton_key="k")
    (job,) = await fifo.fetch("q")
    await fifo.fail("q", job)

    await fifo.cancel("q", job.id)

    assert await run_all(fifo) == [2]


async def test_a_job_in_a_backlog_can_be_cancelled_or_deleted(fifo):
    first, second, _ = [await fifo.send("q", i, singleton_key="k") for i in range(3)]
    await fifo.cancel("q", second)
    await fifo.delete_job("q", first)

    assert await run_all(fifo) == [2]


async def test_a_resumed_job_gets_its_old_place_in_the_backlog(fifo):
    _, second, _ = [await fifo.send("q", i, singleton_key="k") for i in range(3)]
    await fifo.cancel("q", second)

    await fifo.resume("q", second)

    assert await run_all(fifo) == [0, 1, 2]


async def test_a_deferred_job_does_not_block_its_key(fifo, clock):
    await fifo.send("q", "deferred", singleton_key="k", start_after=60)
    await fifo.send("q", "now", singleton_key="k")

    assert await run_all(fifo) == ["now"]
    clock.advance(60)
    assert await run_all(fifo) == ["deferred"]


async def test_a_deferred_job_that_is_due_goes_before_those_sent_after_it(fifo, clock):
    await fifo.send("q", "running", singleton_key="k")
    await fifo.fetch("q")
    await fifo.send("q", "deferred", singleton_key="k", start_after=60)
    await fifo.send("q", "later", singleton_key="k")
    clock.advance(60)

    await fifo.complete("q", (await fifo.find_jobs("q", state="active"))[0].id)

    assert await run_all(fifo) == ["deferred", "later"]


async def test_blocked_keys_are_listed_by_name(fifo):
    for key in ("b", "a", "B", "é"):
        await fail_for_good(fifo, "q", singleton_key=key)

    assert await fifo.get_blocked_keys("q") == ["B", "a", "b", "é"]


async def test_a_key_whose_job_is_active_or_retrying_is_not_listed_as_blocked(fifo):
    await fifo.send("q", singleton_key="running")
    await fifo.fetch("q")
    await fifo.send("q", singleton_key="retrying")
    await fifo.fail("q", await fifo.fetch("q"))

    assert await fifo.get_blocked_keys("q") == []


async def test_a_failed_job_leaves_a_dead_letter_and_still_blocks(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q", policy="key_strict_fifo", dead_letter="dead")
    await fail_for_good(boss, "q", singleton_key="k", data="failed")

    assert await take_all(boss, "dead") == ["failed"]
    assert await boss.get_blocked_keys("q") == ["k"]


async def test_a_failed_job_stays_in_the_live_table(fifo, database):
    failed = await fail_for_good(fifo, "q", singleton_key="k", data="failed")

    assert database.execute("select id from trioboss.job where state = 'failed'").fetchone() == (failed.id,)
    assert [job.id for job in await fifo.find_jobs("q", state="failed")] == [failed.id]
    assert failed.output == {"message": "broken"}


async def test_failed_jobs_that_block_their_keys_are_stored_jobs(fifo):
    await fail_for_good(fifo, "q", singleton_key="k")
    await fifo.send("q", "behind", singleton_key="k")

    assert await fifo.delete_stored_jobs("q") == 1
    assert await run_all(fifo) == ["behind"]


async def test_many_jobs_behind_a_blocked_key_delay_no_other_key(fifo):
    await fail_for_good(fifo, "q", singleton_key="blocked")
    await fifo.insert("q", [{"data": i, "singleton_key": "blocked"} for i in range(1500)])
    await fifo.send("q", "free", singleton_key="free")

    assert await take_all(fifo, "q") == ["free"]


async def test_without_commit_order_jobs_of_a_key_still_run_in_order(boss):
    await boss.create_queue("q", policy="key_strict_fifo", commit_order=False)
    await boss.insert("q", [{"data": i, "singleton_key": "k"} for i in range(5)])
    await boss.send("q", 5, singleton_key="k")

    assert await run_all(boss) == [0, 1, 2, 3, 4, 5]


async def test_an_older_name_makes_the_same_policy(boss):
    await boss.create_queue("q", policy="singleton_strict_fifo")

    with pytest.raises(ValueError, match="key_strict_fifo queues require a singleton_key"):
        await boss.send("q")
