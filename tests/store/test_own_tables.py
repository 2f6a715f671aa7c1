"""Queues with a table of their own, and bosses whose cached queue was replaced by another one."""

import pytest
from store_helpers import fail_for_good, open_quiet_boss, take, take_all

import trioboss

POLICIES = list(trioboss.Policy)


def tables(database):
    found = database.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent = 'trioboss.live_job'::regclass"
    )
    return {name for (name,) in found}


async def test_a_queue_gets_its_own_table_and_loses_it_when_deleted(boss, database):
    await boss.create_queue("q", partition=True)

    table = (await boss.get_queue("q")).table_name
    assert tables(database) == {"trioboss.live_job_common", f"trioboss.{table}"}
    await boss.delete_queue("q")
    assert tables(database) == {"trioboss.live_job_common"}


async def test_its_jobs_are_in_its_table_and_all_others_in_the_common_one(boss, database):
    await boss.create_queue("mine", partition=True)
    await boss.create_queue("theirs")
    await boss.send("mine", 1)
    await boss.insert("mine", [{"data": 2}, {"data": 3, "id": "01890a5d-ac96-774b-bcce-b302099a8057"}])
    await boss.send("theirs", 4)

    table = (await boss.get_queue("mine")).table_name

    assert database.execute(f"select array_agg(data order by seq) from trioboss.{table}").fetchone() == (
        [1, 2, 3],
    )
    assert database.execute("select array_agg(data) from trioboss.live_job_common").fetchone() == ([4],)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_job_lives_its_whole_life_in_a_table_of_its_own(boss, policy):
    await boss.create_queue("dead", partition=True)
    await boss.create_queue("q", partition=True, policy=policy, dead_letter="dead")
    key = {"singleton_key": "k"}

    failed = await fail_for_good(boss, "q", **key)
    await boss.retry("q", failed.id)
    job = await take(boss, "q")
    await boss.touch("q", job)
    await boss.complete("q", job, "done")
    cancelled = await boss.send("q", **key)
    await boss.cancel("q", cancelled)
    await boss.resume("q", cancelled)

    assert job.id == failed.id
    assert (await boss.get_job_by_id("q", failed.id)).state == "completed"
    assert (await take(boss, "q")).id == cancelled
    assert (await take(boss, "dead")).source_id == failed.id
    assert (await boss.get_queue_stats("q")).completed == 1
    assert await boss.get_queue_size("q", before="completed") == 1
    assert (await boss.why("q", cancelled)).reason == "running"
    assert (await boss.delete_job("q", cancelled)).affected == 1
    assert await boss.delete_all_jobs("q") == 1


async def test_two_queues_whose_names_differ_in_case_have_different_tables(boss):
    await boss.create_queue("q", partition=True)
    await boss.create_queue("Q", partition=True)
    await boss.send("q", "small")
    await boss.send("Q", "large")

    assert await take_all(boss, "q") == ["small"]
    assert await take_all(boss, "Q") == ["large"]


@pytest.fixture
async def other(dsn):
    """A second boss, with a cache of its own."""
    async with open_quiet_boss(dsn) as other:
        yield other


@pytest.fixture(params=[False, True], ids=["into_own_table", "into_common_table"])
async def stale(boss, other, request):
    """A boss that has cached a queue which another boss replaced by one in another table."""
    await boss.create_queue("q", partition=request.param, policy="key_strict_fifo")
    await boss.send("q", singleton_key="k")
    await boss.fetch("q")
    await other.delete_queue("q")
    await other.create_queue("q", partition=not request.param, policy="key_strict_fifo")
    return boss


async def test_a_stale_boss_sends_to_where_the_queue_is_now(stale, other):
    id = await stale.send("q", singleton_key="k")

    assert (await take(other, "q")).id == id


async def test_a_stale_boss_inserts_to_where_the_queue_is_now(stale, other):
    (id,) = await stale.insert("q", [{"singleton_key": "k"}], return_ids=True)

    assert (await take(other, "q")).id == id


async def test_a_stale_boss_publishes_to_where_the_queue_is_now(stale, other):
    await other.subscribe("event", "q")

    (id,) = await stale.publish("event", singleton_key="k")

    assert (await take(other, "q")).id == id


async def test_a_stale_boss_fetches_from_where_the_queue_is_now(stale, other):
    id = await other.send("q", singleton_key="k")

    assert (await take(stale, "q")).id == id


@pytest.mark.parametrize("method", ["complete", "fail", "touch", "cancel", "delete_job"])
async def test_a_stale_boss_settles_where_the_queue_is_now(stale, other, method):
    await other.send("q", singleton_key="k")
    job = await take(other, "q")

    assert (await getattr(stale, method)("q", job)).ids == (job.id,)


async def test_a_stale_boss_resumes_and_retries_where_the_queue_is_now(stale, other):
    cancelled = await other.send("q", singleton_key="k")
    await other.cancel("q", cancelled)
    failed = await fail_for_good(other, "q", singleton_key="other")

    await stale.retry("q", failed.id)
    await stale.resume("q", cancelled)

    assert {job.id for job in await other.fetch("q", batch_size=9)} == {cancelled, failed.id}


async def test_a_stale_boss_counts_where_the_queue_is_now(stale, other):
    await fail_for_good(other, "q", singleton_key="b")
    id = await other.send("q", singleton_key="k")

    assert (await stale.get_queue_stats("q")).queued == 1
    assert (await stale.why("q", id)).reason == "no_worker"
    assert await stale.get_queue_size("q") == 1
    assert await stale.get_blocked_keys("q") == ["b"]


@pytest.mark.parametrize("method", ["delete_queued_jobs", "delete_all_jobs"])
async def test_a_stale_boss_deletes_where_the_queue_is_now(stale, other, method):
    await other.send("q", singleton_key="k")

    assert await getattr(stale, method)("q") == 1


async def test_a_stale_boss_keeps_to_the_policy_of_now(boss, other):
    await boss.create_queue("q")
    await boss.send("q")
    await other.delete_queue("q")
    await other.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(ValueError, match="key_strict_fifo queues require a singleton_key"):
        await boss.send("q")
    with pytest.raises(ValueError, match="key_strict_fifo queues require a singleton_key"):
        await boss.insert("q", [{}])


async def test_a_stale_boss_fetches_jobs_with_the_options_of_now(boss, other):
    await boss.create_queue("q")
    await boss.send("q")
    await other.update_queue("q", retry_limit=9)

    await boss.insert("q", [{}, {"retry_limit": 3}])

    assert [job.retry_limit for job in await boss.fetch("q", batch_size=3)] == [9, 9, 3]
