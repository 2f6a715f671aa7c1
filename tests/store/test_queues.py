"""Queues are created, changed, paused and deleted."""

from datetime import timedelta

import psycopg
import pytest
from store_helpers import take, take_all

import trioboss
from trioboss import Policy

OPTIONS = {
    "policy": "short",
    "partition": True,
    "dead_letter": "dead",
    "warning_queue_size": 10,
    "retry_limit": 5,
    "retry_delay": timedelta(seconds=1 / 3),
    "retry_backoff": True,
    "retry_delay_max": 60,
    "retry_jitter": 0.25,
    "retry_multiplier": 1.5,
    "retry_window": timedelta(days=1),
    "expire_in": 1 / 3,
    "heartbeat": 10,
    "auto_heartbeat": False,
    "max_lease_extensions": 1,
    "commit_order": False,
    "retention": timedelta(days=3),
    "delete_after": 0,
    "keep_completed": False,
}
AS_READ = {
    **OPTIONS,
    "policy": Policy.SHORT,
    "retry_delay": 0.333333,
    "retry_delay_max": 60.0,
    "retry_window": 86400.0,
    "expire_in": 0.333333,
    "heartbeat": 10.0,
    "retention": 3 * 86400.0,
    "delete_after": 0.0,
}
FIXED = ("policy", "partition")


def options_of(queue):
    return {name: getattr(queue, name) for name in OPTIONS}


async def test_a_queue_is_read_with_the_options_it_was_created_with(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q", **OPTIONS)

    assert options_of(await boss.get_queue("q")) == AS_READ


async def test_a_queue_that_does_not_exist_is_none(boss):
    assert await boss.get_queue("nowhere") is None


async def test_queues_are_listed_by_name(boss):
    for name in ("b", "a/1", "B", "a"):
        await boss.create_queue(name)

    assert [queue.name for queue in await boss.get_queues()] == ["B", "a", "a/1", "b"]


async def test_creating_the_same_queue_again_is_fine(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q", **OPTIONS)

    await boss.create_queue("q", **OPTIONS)


async def test_creating_a_different_queue_of_that_name_names_each_difference(boss):
    await boss.create_queue("q", retry_limit=5)

    with pytest.raises(
        trioboss.QueueExists, match=r"retry_limit is 5, not 2, expire_in is 900.0, not 60.0"
    ) as refusal:
        await boss.create_queue("q", expire_in=60)
    assert refusal.value.queue == "q"
    assert refusal.value.differing == {"retry_limit": (5, 2), "expire_in": (900.0, 60.0)}


async def test_an_older_name_of_a_policy_creates_the_same_queue(boss):
    await boss.create_queue("q", policy="debounced")

    await boss.create_queue("q", policy="short")


async def test_a_name_of_200_characters_is_a_name(boss):
    await boss.create_queue("q" * 200)

    await boss.send("q" * 200, 1)
    assert (await take(boss, "q" * 200)).queue == "q" * 200


@pytest.mark.parametrize("name", ["", "q" * 201, "🙂", "a'b", 'a"b', "%s", "{}", "a\nb", "a\n", "a b", None])
async def test_a_bad_name_is_refused_before_any_sql(offline_boss, name):
    with pytest.raises(ValueError, match=r"(?s)^queue: .*is not a name"):
        await offline_boss.create_queue(name)


async def test_an_option_changes_and_the_others_stay(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q", **OPTIONS)

    await boss.update_queue("q", retry_limit=9, dead_letter=None, retry_window=None)

    changes = {"retry_limit": 9, "dead_letter": None, "retry_window": None}
    assert options_of(await boss.get_queue("q")) == {**AS_READ, **changes}


async def test_every_option_but_policy_and_partition_can_change(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q")

    await boss.update_queue("q", **{name: value for name, value in OPTIONS.items() if name not in FIXED})

    changed = {**AS_READ, "policy": Policy.STANDARD, "partition": False}
    assert options_of(await boss.get_queue("q")) == changed


@pytest.mark.parametrize("option", FIXED)
async def test_policy_and_partition_cannot_change(boss, option):
    await boss.create_queue("q")

    with pytest.raises(trioboss.UsageError, match=f"^{option}: cannot be changed"):
        await boss.update_queue("q", **{option: OPTIONS[option]})


async def test_a_change_applies_to_queued_jobs_that_do_not_override_it(boss):
    await boss.create_queue("q")
    await boss.send("q", "before")
    await boss.send("q", "overrides", retry_limit=1, expire_in=60)
    await boss.update_queue("q", retry_limit=7, expire_in=5)
    await boss.send("q", "after")

    before, overrides, after = await boss.fetch("q", batch_size=3)

    assert (before.retry_limit, before.expire_in) == (after.retry_limit, after.expire_in) == (7, 5.0)
    assert (overrides.retry_limit, overrides.expire_in) == (1, 60.0)


async def test_changing_a_queue_that_does_not_exist_names_it(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.update_queue("nowhere", retry_limit=1)


async def test_a_dead_letter_queue_has_to_exist(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'dead'"):
        await boss.create_queue("q", dead_letter="dead")

    await boss.create_queue("q")
    with pytest.raises(trioboss.UnknownQueue, match="'dead'"):
        await boss.update_queue("q", dead_letter="dead")


async def test_a_queue_is_not_its_own_dead_letter_queue(boss):
    with pytest.raises(trioboss.UsageError, match="dead_letter: 'q' would lead back to 'q'"):
        await boss.create_queue("q", dead_letter="q")


async def test_dead_letters_do_not_go_round_in_circles(boss):
    await boss.create_queue("a")
    await boss.create_queue("b", dead_letter="a")
    await boss.create_queue("c", dead_letter="b")

    with pytest.raises(trioboss.UsageError, match="dead_letter: 'c' would lead back to 'a'"):
        await boss.update_queue("a", dead_letter="c")


async def test_a_circle_is_refused_by_the_database_too(boss, database):
    await boss.create_queue("a")
    await boss.create_queue("b", dead_letter="a")

    with pytest.raises(Exception, match="dead_letter: b would lead back to a"):
        database.execute("update trioboss.queue set dead_letter = 'b' where name = 'a'")


async def test_a_deleted_queue_is_gone_with_its_live_jobs(boss, database):
    await boss.create_queue("q")
    await boss.send("q")
    await boss.send_throttled("q", None, 60)

    await boss.delete_queue("q")

    assert await boss.get_queue("q") is None
    assert database.execute("select count(*) from trioboss.job").fetchone() == (0,)
    assert database.execute("select count(*) from trioboss.throttle").fetchone() == (0,)
    with pytest.raises(trioboss.UnknownQueue):
        await boss.send("q")


async def test_the_archive_keeps_the_ended_jobs_of_a_deleted_queue(boss):
    await boss.create_queue("q")
    id = await boss.send("q")
    await boss.complete("q", await boss.fetch("q"), "done")

    await boss.delete_queue("q")

    assert (await boss.get_job_by_id("q", id)).output == "done"


async def test_deleting_a_queue_that_does_not_exist_is_fine(boss):
    await boss.delete_queue("nowhere")


async def test_a_dead_letter_queue_in_use_is_not_deleted(boss):
    await boss.create_queue("dead")
    await boss.create_queue("b", dead_letter="dead")
    await boss.create_queue("a", dead_letter="dead")

    with pytest.raises(trioboss.QueueInUse, match="the dead letter queue of 'a', 'b'") as refusal:
        await boss.delete_queue("dead")
    assert refusal.value.users == ("a", "b")


async def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(boss):
    await boss.create_queue("q")
    await boss.send("q", 1)

    await boss.pause("q")

    assert await boss.fetch("q") == []
    assert (await boss.get_queue("q")).paused
    assert (await boss.get_queue_stats("q")).paused
    await boss.resume_queue("q")
    assert (await take(boss, "q")).data == 1


async def test_a_running_job_of_a_paused_queue_goes_on(boss):
    await boss.create_queue("q")
    await boss.send("q")
    job = await take(boss, "q")

    await boss.pause("q")

    assert (await boss.complete("q", job)).affected == 1


@pytest.mark.parametrize(
    "method", ["pause", "resume_queue", "get_queue_stats", "get_queue_size", "get_blocked_keys"]
)
async def test_a_call_for_a_queue_that_does_not_exist_names_it(boss, method):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await getattr(boss, method)("nowhere")


async def test_a_send_left_open_while_its_queue_is_deleted_leaves_nothing_for_the_next_one(boss, dsn):
    await boss.create_queue("q")
    with psycopg.connect(dsn) as caller:
        await boss.send_throttled("q", "old", 3600, conn=caller)
        await boss.delete_queue("q")
    await boss.create_queue("q", policy="exclusive")
    assert await boss.fetch("q") == []
    assert await boss.send("q", "new") is not None


async def test_a_queue_created_after_such_a_send_may_get_a_table_of_its_own(boss, dsn):
    await boss.create_queue("q")
    with psycopg.connect(dsn) as caller:
        await boss.send("q", "old", conn=caller)
        await boss.delete_queue("q")
    await boss.create_queue("q", partition=True)
    await boss.send("q", "new")
    assert await take_all(boss, "q") == ["new"]


async def test_jobs_without_a_queue_are_pruned(boss, database, dsn):
    await boss.create_queue("q")
    await boss.create_queue("other")
    await boss.send("other")
    with psycopg.connect(dsn) as caller:
        await boss.send("q", "old", conn=caller)
        await boss.delete_queue("q")
    await boss._execute(boss._store.retention.prune())
    assert database.execute("select name from trioboss.job").fetchall() == [("other",)]


@pytest.mark.parametrize("policy", ["singleton", "stately", "key_strict_fifo"])
async def test_checks_of_the_backlogs_of_a_deleted_queue_are_pruned(boss, database, policy):
    for name in ("q", "other"):
        await boss.create_queue(name, policy=policy)
        await boss.send(name, singleton_key="k")
        await boss.fetch(name)
        await boss.delete_queue("q")
    await boss.send("other", singleton_key="another")

    await boss._execute(boss._store.retention.prune())

    assert database.execute("select queue from trioboss.backlog_check").fetchall() == [("other",)]


async def test_the_queue_of_completion_jobs_is_deleted_with_its_queue(boss):
    await boss.create_queue("q")
    await boss.fetch_completed("q")
    await boss.send("q")
    await boss.complete("q", await boss.fetch("q"))
    await boss.delete_queue("q")
    assert await boss.get_queues() == []


async def test_a_dead_letter_queue_that_jobs_name_is_not_deleted(boss):
    await boss.create_queue("dead")
    await boss.create_queue("q", retry_limit=0)
    await boss.send("q", dead_letter="dead")

    with pytest.raises(trioboss.QueueInUse, match="of jobs in 'q': let them end first"):
        await boss.delete_queue("dead")
    await boss.fail("q", await boss.fetch("q"))
    await boss.delete_queue("dead")


async def test_one_name_instead_of_a_list_of_names_is_refused(offline_boss):
    with pytest.raises(
        trioboss.UsageError, match="names: 'qq' is one name: use a list of names, or `get_queue`"
    ):
        await offline_boss.get_queues("qq")
