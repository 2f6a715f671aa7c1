"""Live jobs changed and deleted by plain SQL, in the table live_job: no policy is broken, and no job is left behind."""

import contextlib
from collections import Counter
from datetime import timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_helpers import fail_for_good, take, take_all

from trioboss import Policy
from trioboss.model.states import Readiness

KEYED = [Policy.SINGLETON, Policy.STATELY, Policy.KEY_STRICT_FIFO]
SET_READINESS = "update trioboss.live_job set readiness = %s where id = %s"
OWNERS_LEFT = "select count(*) from trioboss.backlog_check where backlog = 'key:k' and priority is null"


async def send_two(boss, policy):
    """Two jobs of one key: the first is active, the second waits."""
    await boss.create_queue("q", policy=policy)
    await boss.send("q", 1, singleton_key="k")
    first = await take(boss, "q")
    await boss.send("q", 2, singleton_key="k")
    assert await boss.fetch("q") == []
    return first


# -- the owner of a key goes away


@pytest.mark.parametrize("policy", KEYED)
async def test_deleting_the_owner_of_a_key_lets_the_next_job_run(boss, database, policy):
    first = await send_two(boss, policy)

    database.execute("delete from trioboss.live_job where id = %s", [first.id])

    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", KEYED)
async def test_a_job_that_runs_keeps_its_key(boss, database, policy):
    first = await send_two(boss, policy)

    with pytest.raises(psycopg.errors.CheckViolation, match="only a claim"):
        database.execute("update trioboss.live_job set key = 'other' where id = %s", [first.id])


@pytest.mark.parametrize("policy", KEYED)
async def test_a_job_that_runs_is_not_moved_to_another_keyed_queue(boss, database, policy):
    first = await send_two(boss, policy)
    await boss.create_queue("other", policy=policy, partition=True)

    with pytest.raises(psycopg.errors.CheckViolation, match="only a claim"):
        database.execute("update trioboss.live_job set queue = 'other' where id = %s", [first.id])


@pytest.mark.parametrize("policy", KEYED)
async def test_moving_the_owner_to_a_queue_without_keys_lets_the_next_job_run(boss, database, policy):
    first = await send_two(boss, policy)
    await boss.create_queue("other", partition=True)

    database.execute("update trioboss.live_job set queue = 'other' where id = %s", [first.id])

    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", KEYED)
@pytest.mark.parametrize("change", ["key = 'other'", "queue = 'other'"])
async def test_a_waiting_job_that_gets_another_key_or_queue_runs_there(boss, database, policy, change):
    await boss.create_queue("other", policy=policy, partition=True)
    await send_two(boss, policy)

    database.execute(f"update trioboss.live_job set {change} where readiness = 'waiting'")

    assert await take_all(boss, "q" if "key" in change else "other") == [2]


@pytest.mark.parametrize("policy", KEYED)
async def test_an_owner_that_is_queued_again_lets_another_job_run(boss, database, policy):
    first = await send_two(boss, policy)

    database.execute(SET_READINESS, ["waiting", first.id])

    assert await take_all(boss, "q") == [1]  # it was sent before the second
    assert await boss.fetch("q") == []


async def test_deleting_a_failed_job_of_strict_fifo_unblocks_its_key(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")
    await fail_for_good(boss, "q", singleton_key="k")
    await boss.send("q", "behind", singleton_key="k")

    database.execute("delete from trioboss.live_job where readiness = 'ended'")

    assert await take_all(boss, "q") == ["behind"]


async def test_deleting_a_ready_job_lets_the_next_job_run(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo")
    await boss.send("q", 1, singleton_key="k")
    await boss.send("q", 2, singleton_key="k")
    with contextlib.suppress(ZeroDivisionError):  # an error rolls the fetch back: the job stays ready
        async with boss.transaction() as conn:
            assert len(await boss.fetch("q", conn=conn)) == 1
            raise ZeroDivisionError
    assert database.execute("delete from trioboss.live_job where readiness = 'ready'").rowcount == 1

    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", KEYED)
async def test_deleting_a_waiting_job_leaves_no_check_of_its_backlog(boss, database, policy):
    await send_two(boss, policy)
    assert database.execute("delete from trioboss.live_job where readiness = 'waiting'").rowcount == 1

    assert database.execute(OWNERS_LEFT).fetchone() == (0,)


async def test_a_job_of_strict_fifo_that_waits_for_its_retry_owns_its_key(boss, database):
    await boss.create_queue("q", policy="key_strict_fifo", retry_limit=1, retry_delay=60)
    await boss.send("q", singleton_key="k")
    await boss.fail("q", await take(boss, "q"))
    assert database.execute("select state from trioboss.job").fetchone() == ("retry",)

    assert database.execute("select owner from trioboss.live_job").fetchone() == ("key:k",)
    assert database.execute(OWNERS_LEFT).fetchone() == (0,)


# -- a change of readiness


@pytest.mark.parametrize("policy", KEYED)
async def test_only_a_claim_makes_a_job_the_owner_of_its_key(boss, database, policy):
    first = await send_two(boss, policy)
    (second,) = await boss.find_jobs("q", state="created")

    database.execute(SET_READINESS, ["ready", second.id])
    assert await boss.fetch("q") == []
    await boss.complete("q", first)
    with pytest.raises(psycopg.errors.CheckViolation, match="only a claim"):
        database.execute(SET_READINESS, ["active", second.id])
    assert await take_all(boss, "q") == [2]


@pytest.mark.parametrize("policy", KEYED)
async def test_a_second_owner_of_a_key_is_refused(boss, database, policy):
    await send_two(boss, policy)

    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute("update trioboss.live_job set owner = backlog")


@pytest.mark.parametrize("policy", [policy for policy in Policy if policy is not Policy.KEY_STRICT_FIFO])
async def test_a_job_does_not_stay_as_ended_outside_strict_fifo(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    id = await boss.send("q", singleton_key="k")

    with pytest.raises(psycopg.errors.CheckViolation, match=r"^readiness: .*delete the job instead"):
        database.execute(SET_READINESS, ["ended", id])


@pytest.mark.parametrize("policy", [policy for policy in Policy if policy not in KEYED])
async def test_an_attempt_that_did_not_begin_with_a_claim_expires(boss, database, policy):
    await boss.create_queue("q", policy=policy, expire_in=60)
    id = await boss.send("q", singleton_key="k")

    database.execute(SET_READINESS, ["active", id])

    terms = "select attempt, started_on <= now(), expires_on - started_on from trioboss.live_job"
    assert database.execute(terms).fetchone() == (1, True, timedelta(seconds=60))
    assert (await boss.complete("q", id)).affected == 1


@pytest.mark.parametrize("policy", list(Policy))
async def test_a_deferred_job_can_be_made_waiting_before_its_time(boss, database, policy):
    await boss.create_queue("q", policy=policy)
    id = await boss.send("q", 1, singleton_key="k", start_after=3600)

    database.execute(SET_READINESS, ["waiting", id])

    assert await take_all(boss, "q") == [1]


async def test_a_job_of_a_short_queue_that_becomes_created_again_needs_its_slot(boss, database):
    await boss.create_queue("q", policy="short")
    await boss.send("q", 1)
    job = await take(boss, "q")
    await boss.send("q", 2)

    with pytest.raises(psycopg.errors.UniqueViolation):
        database.execute(
            "update trioboss.live_job set readiness = 'ready', attempt = 0 where id = %s", [job.id]
        )
    database.execute(SET_READINESS, ["ready", job.id])
    assert await take_all(boss, "q") == [1, 2]


# -- any changes at all

READINESSES = [readiness for readiness in Readiness if readiness is not Readiness.BLOCKED]
_changes = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 5), st.sampled_from(READINESSES)),
        st.tuples(st.sampled_from(["send", "fetch", "fail", "complete"])),
    ),
    max_size=12,
)


def broken_rules(policy, jobs):
    """The rules of a policy that these jobs of one key break; jobs are pairs of readiness and attempt."""
    states = Counter(
        readiness if readiness in ("active", "ended") else ("retry" if attempt else "created")
        for readiness, attempt in jobs
    )
    owners = [readiness for readiness, _ in jobs if readiness in ("ready", "active", "ended")]
    rules = {
        Policy.STANDARD: {},
        Policy.SHORT: {"created": states["created"]},
        Policy.SINGLETON: {"active": states["active"]},
        Policy.STATELY: {state: states[state] for state in ("created", "retry", "active")},
        Policy.EXCLUSIVE: {"any": len(jobs)},
        Policy.KEY_STRICT_FIFO: {"owners": len(owners)},
    }
    return {rule: count for rule, count in rules[policy].items() if count > 1}


def apply(change, boss, database):
    """Make one change; the database may refuse it."""
    if change[0] == "set":
        ids = [id for (id,) in database.execute("select id from trioboss.live_job order by seq")]
        if change[1] < len(ids):
            with contextlib.suppress(psycopg.errors.UniqueViolation, psycopg.errors.CheckViolation):
                database.execute(SET_READINESS, [change[2], ids[change[1]]])
    elif change[0] == "send":
        boss.send("q", singleton_key="k")
    elif change[0] == "fetch":
        boss.fetch("q", batch_size=2)
    else:
        active = boss.find_jobs("q", state="active", limit=1)
        if active:
            getattr(boss, change[0])("q", active[0].id)


def drain(boss, database):
    """Run all jobs, after plain SQL has made failed and deferred ones due."""
    database.execute("delete from trioboss.live_job where readiness in ('active', 'ended')")
    database.execute("update trioboss.live_job set start_after = now() where readiness = 'deferred'")
    while jobs := boss.fetch("q", batch_size=9):
        boss.complete("q", jobs)


@pytest.mark.parametrize("policy", list(Policy))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=_changes)
def test_no_sequence_of_changes_breaks_a_policy_or_leaves_a_job_behind(sync_boss, database, policy, changes):
    sync_boss.create_queue("q", policy=policy, retry_limit=1)
    sync_boss.delete_all_jobs("q")
    for change in [("send",), ("send",), *changes]:
        apply(change, sync_boss, database)
        jobs = database.execute("select readiness::text, attempt from trioboss.live_job").fetchall()
        assert broken_rules(policy, jobs) == {}

    drain(sync_boss, database)
    assert database.execute("select readiness from trioboss.live_job").fetchall() == []


def test_a_broken_rule_is_noticed():
    assert broken_rules(Policy.SHORT, [("ready", 0), ("deferred", 0)]) == {"created": 2}
    assert broken_rules(Policy.STATELY, [("waiting", 1), ("ready", 2)]) == {"retry": 2}
    assert broken_rules(Policy.KEY_STRICT_FIFO, [("ended", 1), ("active", 1)]) == {"owners": 2}
