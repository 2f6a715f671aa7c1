"""The jobs that each policy allows at the same time, in a whole queue and for each key."""

import contextlib

import psycopg
import pytest
import trio
from store_helpers import take, take_all, until_blocked

from trioboss import JobNotFound, JobState, Policy
from trioboss.sql import Catalog

# The states in which a job keeps another one of the same key from being sent.
KEEPS_OUT = {
    Policy.STANDARD: set(),
    Policy.SHORT: {"created"},
    Policy.SINGLETON: set(),
    Policy.STATELY: {"created"},
    Policy.EXCLUSIVE: {"created", "retry", "active"},
    Policy.KEY_STRICT_FIFO: set(),
}
ONE_AT_A_TIME = [Policy.SINGLETON, Policy.STATELY, Policy.KEY_STRICT_FIFO]
WITHOUT_FIFO = [policy for policy in Policy if policy is not Policy.KEY_STRICT_FIFO]


async def make_job(boss, state, key):
    """Make a job that is in this state."""
    id = await boss.send("q", "first", singleton_key=key, retry_limit=0 if state == "failed" else 1)
    if state in ("retry", "active", "completed", "failed"):
        job = await take(boss, "q")
    if state in ("retry", "failed"):
        await boss.fail("q", job)
    elif state == "completed":
        await boss.complete("q", job)
    elif state == "cancelled":
        await boss.cancel("q", id)
    assert (await boss.get_job_by_id("q", id)).state == state


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("policy", list(Policy))
async def test_a_job_keeps_others_of_its_key_out_in_certain_states(boss, clock, policy, state):
    await boss.create_queue("q", policy=policy, retry_delay=60)
    await make_job(boss, state, "k")

    sent = await boss.send("q", "second", singleton_key="k")

    assert (sent is None) == (state in KEEPS_OUT[policy])


@pytest.mark.parametrize("state", list(JobState))
@pytest.mark.parametrize("policy", WITHOUT_FIFO)
async def test_jobs_without_a_key_share_the_queue_like_one_key(boss, clock, policy, state):
    await boss.create_queue("q", policy=policy, retry_delay=60)
    await make_job(boss, state, None)

    sent = await boss.send("q", "second")

    assert (sent is None) == (state in KEEPS_OUT[policy])


@pytest.mark.parametrize("state", ["created", "retry", "active"])
@pytest.mark.parametrize("policy", WITHOUT_FIFO)
async def test_a_job_never_keeps_another_key_out(boss, clock, policy, state):
    await boss.create_queue("q", policy=policy, retry_delay=60)
    await make_job(boss, state, "k")

    assert await boss.send("q", singleton_key="other") is not None
    assert await boss.send("q") is not None


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_policy_counts_the_jobs_of_one_queue(boss, policy):
    for queue in ("a", "b"):
        await boss.create_queue(queue, policy=policy)

        assert await boss.send(queue, queue, singleton_key="k") is not None
        assert await take_all(boss, queue) == [queue]


@pytest.mark.parametrize("policy", ONE_AT_A_TIME)
async def test_one_job_of_a_key_runs_at_a_time_however_many_are_fetched(boss, policy):
    await boss.create_queue("q", policy=policy)
    count = 1 if policy is Policy.STATELY else 3
    await boss.insert(
        "q", [{"data": f"{key}{i}", "singleton_key": key} for i in range(count) for key in "ab"]
    )

    assert sorted(await take_all(boss, "q")) == ["a0", "b0"]
    assert await take_all(boss, "q") == []


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.STATELY])
async def test_one_job_without_a_key_runs_at_a_time(boss, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1)
    assert await take_all(boss, "q") == [1]
    await boss.send("q", 2)

    assert await take_all(boss, "q") == []


@pytest.mark.parametrize("end", ["complete", "cancel", "delete_job"])
@pytest.mark.parametrize("policy", ONE_AT_A_TIME)
async def test_the_next_job_of_a_key_runs_when_the_one_before_has_ended(boss, policy, end):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="k")
    job = await take(boss, "q")
    await boss.send("q", 2, singleton_key="k")

    await getattr(boss, end)("q", job.id)

    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.STATELY])
async def test_the_next_job_of_a_key_runs_when_the_one_before_failed(boss, policy):
    await boss.create_queue("q", policy=policy, retry_limit=0)
    await boss.send("q", 1, singleton_key="k")
    job = await take(boss, "q")
    await boss.send("q", 2, singleton_key="k")

    await boss.fail("q", job)

    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.STATELY])
async def test_a_job_that_waits_for_its_retry_lets_others_go_first(boss, clock, policy):
    await boss.create_queue("q", policy=policy, retry_delay=60)
    await boss.send("q", "first")
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "second")

    assert await take_all(boss, "q") == ["second"]
    clock.advance(60)
    assert await take_all(boss, "q") == []  # the second one owns the key
    await boss.complete("q", [job.id for job in await boss.find_jobs("q", state="active")])
    assert await take_all(boss, "q") == ["first"]


async def test_a_retry_of_a_stately_queue_fails_for_good_if_another_one_waits_already(boss, clock):
    await boss.create_queue("dead")
    await boss.create_queue("q", policy="stately", retry_limit=5, retry_delay=60, dead_letter="dead")
    for i in range(2):
        await boss.send("q", i)
        await boss.fail("q", await boss.fetch("q"), "broken")

    first, second = await boss.find_jobs("q")

    assert (first.state, second.state) == ("retry", "failed")
    assert await take_all(boss, "dead") == [1]


async def test_a_stately_queue_has_room_for_one_retry_of_each_key(boss, clock):
    await boss.create_queue("q", policy="stately", retry_delay=60)
    for key in "ab":
        await boss.send("q", key, singleton_key=key)
        await boss.fail("q", await boss.fetch("q"))

    assert [job.state for job in await boss.find_jobs("q")] == ["retry", "retry"]


async def test_two_jobs_of_a_stately_key_that_fail_together_leave_one_retry(boss, clock):
    await boss.create_queue("q", policy="stately", retry_delay=60)
    await boss.send("q", 1)
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", 2)
    (second,) = await boss.fetch("q")
    await boss.send("q", 3)

    await boss.fail("q", second)

    assert [job.state for job in await boss.find_jobs("q")] == ["retry", "failed", "created"]


async def test_a_short_queue_runs_any_number_at_once(boss):
    await boss.create_queue("q", policy="short")
    for i in range(3):
        await boss.send("q", i)
        assert await take_all(boss, "q") == [i]

    assert (await boss.get_queue_stats("q")).active == 3


async def test_a_short_queue_has_a_retry_beside_a_job_sent_meanwhile(boss):
    await boss.create_queue("q", policy="short")
    await boss.send("q", 1)
    job = await take(boss, "q")
    await boss.send("q", 2)

    await boss.fail("q", job)

    assert await take_all(boss, "q") == [1, 2]


@pytest.mark.parametrize("policy", [Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE])
async def test_a_deferred_job_occupies_its_slot(boss, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, start_after=60)

    assert await boss.send("q", 2) is None


@pytest.mark.parametrize("policy", [Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE])
async def test_a_deferred_job_keeps_its_slot_when_it_becomes_due(boss, clock, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="a", start_after=60)
    await boss.send("q", 2, singleton_key="b", start_after=60)
    clock.advance(60)
    assert len(await boss.fetch("q")) == 1  # promotes both, and takes the first

    assert await boss.send("q", 3, singleton_key="b") is None


@pytest.mark.parametrize("policy", [Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE])
async def test_a_job_keeps_its_slot_when_its_claim_is_rolled_back(boss, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1)
    with contextlib.suppress(ZeroDivisionError):
        async with boss.transaction() as conn:
            assert len(await boss.fetch("q", conn=conn)) == 1
            raise ZeroDivisionError

    assert await boss.send("q", 2) is None


@pytest.mark.parametrize(
    "fetch", [{}, {"priority": False}, {"min_priority": 0}], ids=["claim", "in order", "bounded"]
)
@pytest.mark.parametrize("policy", ONE_AT_A_TIME)
async def test_an_open_transaction_on_the_first_job_of_a_key_blocks_no_other_key(boss, dsn, policy, fetch):
    await boss.create_queue("q", policy=policy)
    first = await boss.send("q", "a", singleton_key="a")
    await boss.send("q", "b", singleton_key="b")
    with psycopg.connect(dsn) as caller:
        await boss.cancel("q", first, conn=caller)

        assert [job.data for job in await boss.fetch("q", **fetch)] == ["b"]
        assert await boss.fetch("q", **fetch) == []
        caller.rollback()

    assert await take_all(boss, "q") == ["a"]


@pytest.mark.parametrize("policy", ONE_AT_A_TIME)
async def test_an_open_transaction_that_claims_a_job_blocks_no_other_key(boss, dsn, policy):
    await boss.create_queue("q", policy=policy)
    for key in "abc":
        await boss.send("q", key, singleton_key=key)
    with psycopg.connect(dsn) as caller:
        assert [job.data for job in await boss.fetch("q", conn=caller)] == ["a"]

        assert [job.data for job in await boss.fetch("q")] == ["b"]
        caller.rollback()

    assert await take_all(boss, "q") == ["a", "c"]


@pytest.mark.parametrize("policy", [Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE])
async def test_a_cancelled_job_is_not_resumed_if_its_slot_is_taken(boss, policy):
    await boss.create_queue("q", policy=policy)
    cancelled = await boss.send("q", "cancelled")
    await boss.cancel("q", cancelled)
    await boss.send("q", "in its place")

    with pytest.raises(
        JobNotFound, match=f"no cancelled job {cancelled} in queue 'q' that the queue's policy"
    ):
        await boss.resume("q", cancelled)
    assert (await boss.get_job_by_id("q", cancelled)).state == "cancelled"
    assert await take_all(boss, "q") == ["in its place"]


@pytest.mark.parametrize(
    ("policy", "revived"), [(Policy.EXCLUSIVE, False), (Policy.STATELY, False), (Policy.SHORT, True)]
)
async def test_a_failed_job_is_retried_only_if_its_slot_is_free(boss, clock, policy, revived):
    await boss.create_queue("q", policy=policy, retry_limit=0, retry_delay=60)
    failed = await boss.send("q", "failed")
    await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "in its place", retry_limit=1)
    await boss.fail("q", await boss.fetch("q"))

    if revived:
        assert (await boss.retry("q", failed)).affected == 1
    else:
        with pytest.raises(Exception, match=f"{failed}"):
            await boss.retry("q", failed)
    assert (await boss.get_job_by_id("q", failed)).state == ("retry" if revived else "failed")


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.STATELY])
async def test_among_the_jobs_of_a_key_the_highest_priority_goes_first(boss, policy):
    await boss.create_queue("q", policy=policy, retry_limit=1)
    await boss.send("q", "low")
    if policy is Policy.STATELY:
        await boss.fail("q", await boss.fetch("q"))
    await boss.send("q", "high", priority=1)

    first = await take_all(boss, "q")

    assert first == ["high"]


async def test_a_job_sent_to_an_earlier_queue_of_that_name_is_resumed_under_the_policy_of_now(boss):
    await boss.create_queue("q")
    id = await boss.send("q", singleton_key="k")
    await boss.cancel("q", id)
    await boss.delete_queue("q")
    await boss.create_queue("q", policy="exclusive")

    await boss.resume("q", id)

    assert await boss.send("q", singleton_key="k") is None


@pytest.mark.parametrize("policy", ONE_AT_A_TIME)
async def test_jobs_are_admitted_by_one_claim_at_a_time(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    await boss.send("q", singleton_key="k")
    lock = Catalog("trioboss").get("lock_admission").text.replace("$1", "%s")
    fetched = []

    async def fetch():
        fetched.extend(await boss.fetch("q"))

    async with trio.open_nursery() as nursery:
        with psycopg.connect(boss.dsn) as other:
            other.execute(lock, ["q"])
            nursery.start_soon(fetch)
            await until_blocked(database)
            assert fetched == []

    assert len(fetched) == 1
