"""Dead letters: what a job leaves behind when it fails for good."""

from datetime import timedelta
from functools import partial

import psycopg
import pytest
import trio
from store_helpers import fail_for_good, take, take_all, until_blocked

import trioboss

RETRYING = {"retry_limit": 4, "retry_delay": 2.0, "retry_backoff": True, "retry_delay_max": 50.0}


@pytest.fixture
async def post(boss):
    """A boss with a queue `q` whose dead letters go to `letters`."""
    await boss.create_queue("letters")
    await boss.create_queue("q", dead_letter="letters")
    return boss


async def test_a_job_that_fails_for_good_leaves_one_copy(post):
    failed = await fail_for_good(post, "q", data={"a": 1}, priority=3, singleton_key="k")

    (letter,) = await post.find_jobs("letters")
    assert (letter.data, letter.priority, letter.singleton_key) == ({"a": 1}, 3, "k")
    assert (letter.state, letter.attempt, letter.retry_count) == ("created", 0, 0)
    assert letter.id != failed.id
    assert letter.output == failed.output == {"message": "broken"}


async def test_a_letter_says_where_it_comes_from(post, clock):
    id = await post.send("q", retry_limit=1)
    sent_on = clock.now
    for _ in range(2):
        clock.advance(10)
        await post.fail("q", await post.fetch("q"))

    letter = await take(post, "letters")

    assert (letter.source_queue, letter.source_id) == ("q", id)
    assert (letter.source_created_on, letter.source_retry_count) == (sent_on, 1)
    assert letter.created_on == letter.start_after == clock.now
    assert [job.id for job in await post.find_jobs("letters", source_id=id)] == [letter.id]


async def test_a_job_that_will_be_retried_leaves_none(post):
    await post.send("q", retry_limit=1)
    await post.fail("q", await post.fetch("q"))

    assert await post.find_jobs("letters") == []


@pytest.mark.parametrize("verb", ["complete", "cancel", "delete_job"])
async def test_a_job_that_ends_otherwise_leaves_none(post, verb):
    await post.send("q")
    await getattr(post, verb)("q", await post.fetch("q"))

    assert await post.find_jobs("letters") == []


async def test_a_retried_job_that_fails_again_leaves_another_letter(post):
    failed = await fail_for_good(post, "q")
    await post.retry("q", failed.id)
    await post.fail("q", await post.fetch("q"))

    assert [job.source_id for job in await post.find_jobs("letters")] == [failed.id, failed.id]


async def test_a_letter_is_retried_and_kept_as_the_job_was(boss, clock):
    await boss.create_queue("letters", retry_limit=0, expire_in=5, retention=5)
    await boss.create_queue("q", dead_letter="letters", expire_in=60)
    await boss.send("q", **{**RETRYING, "retry_limit": 0}, retention=1000)
    clock.advance(100)
    await boss.fail("q", await boss.fetch("q"))

    letter = await take(boss, "letters")

    assert (letter.retry_limit, letter.retry_delay, letter.retry_backoff, letter.retry_delay_max) == (
        0,
        2.0,
        True,
        50.0,
    )
    assert letter.keep_until == clock.now + timedelta(seconds=1000)
    assert letter.expire_in == 5.0  # how long a letter may take is a matter of who reads it


async def test_a_letter_is_kept_as_long_as_the_job_however_late_the_last_retry(boss, clock):
    await boss.create_queue("letters")
    await boss.create_queue("q", dead_letter="letters")
    await boss.send("q", retry_limit=1, retry_delay=5000, retention=1000)
    await boss.fail("q", await boss.fetch("q"))
    clock.advance(5000)
    await boss.fail("q", await boss.fetch("q"))

    assert (await take(boss, "letters")).keep_until == clock.now + timedelta(seconds=1000)


async def test_a_job_may_name_its_own_dead_letter_queue(post):
    await post.create_queue("elsewhere")
    await fail_for_good(post, "q", data=1, dead_letter="elsewhere")

    assert await take_all(post, "letters") == []
    assert await take_all(post, "elsewhere") == [1]


async def test_a_dead_letter_queue_that_does_not_exist_is_refused(post):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await post.send("q", dead_letter="nowhere")


async def test_a_dead_letter_queue_named_later_is_for_jobs_sent_later(boss):
    await boss.create_queue("letters")
    await boss.create_queue("q", retry_limit=0)
    await boss.send("q", "before")
    await boss.update_queue("q", dead_letter="letters")
    await boss.send("q", "after")
    await boss.fail("q", await boss.fetch("q", batch_size=2))

    assert await take_all(boss, "letters") == ["after"]


async def test_letters_go_down_a_chain_of_dead_letter_queues(boss):
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


async def test_many_jobs_leave_their_letters_in_the_order_they_were_sent(post):
    await post.insert("q", [{"data": i, "retry_limit": 0} for i in range(20)])
    await post.fail("q", await post.fetch("q", batch_size=20))

    assert await take_all(post, "letters") == list(range(20))


@pytest.mark.parametrize(
    ("policy", "kept"), [("short", 1), ("exclusive", 1), ("stately", 1), ("singleton", 2)]
)
async def test_letters_obey_the_policy_of_their_queue(boss, policy, kept):
    await boss.create_queue("letters", policy=policy)
    await boss.create_queue("q", dead_letter="letters")
    for _ in range(2):
        await fail_for_good(boss, "q", singleton_key="k")

    assert len(await boss.find_jobs("letters")) == kept
    assert len(await boss.fetch("letters", batch_size=5)) == 1


async def test_letters_to_a_strict_queue_keep_their_key_or_get_that_of_their_queue(boss):
    await boss.create_queue("letters", policy="key_strict_fifo")
    await boss.create_queue("q", dead_letter="letters")
    await fail_for_good(boss, "q", data=1)
    await fail_for_good(boss, "q", data=2)
    await fail_for_good(boss, "q", data=3, singleton_key="k")

    assert [job.singleton_key for job in await boss.find_jobs("letters")] == ["q", "q", "k"]
    assert await take_all(boss, "letters") == [1, 3]


async def test_letters_go_to_a_queue_with_a_table_of_its_own(boss):
    await boss.create_queue("letters", partition=True)
    await boss.create_queue("q", dead_letter="letters")
    await fail_for_good(boss, "q", data=1)

    assert await take_all(boss, "letters") == [1]


async def test_letters_that_wait_are_counted_with_the_queue_they_came_from(post):
    await fail_for_good(post, "q")
    await fail_for_good(post, "q")
    await post.fetch("letters")

    assert (await post.get_queue_stats("q")).dead_letter == 1


async def test_a_letter_whose_own_queue_is_gone_goes_where_those_of_its_queue_go(boss):
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
    """A boss with an active job `letter`, of the key `k`, whose dead letters go to a strict FIFO queue."""
    await boss.create_queue("letters", policy="key_strict_fifo")
    await boss.create_queue("q", retry_limit=0, dead_letter="letters")
    await boss.send("q", "letter", singleton_key="k")
    return boss, await take(boss, "q")


async def read_in_order(boss, queue):
    """Run all jobs of a queue one after the other, and return their data."""
    order = []
    while jobs := await boss.fetch(queue):
        order += [job.data for job in jobs]
        await boss.complete(queue, jobs)
    return order


async def test_letters_to_a_strict_queue_stand_in_the_order_of_commit(strict, database, dsn):
    boss, job = strict
    with trio.fail_after(60), psycopg.connect(dsn) as caller:
        await boss.fail("q", job, conn=caller)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(boss.send, "letters", "later", singleton_key="k"))
            await until_blocked(database)
            caller.commit()

    assert await read_in_order(boss, "letters") == ["letter", "later"]


async def test_a_job_fails_beside_an_open_transaction_that_sends_to_its_dead_letter_queue(strict, dsn):
    boss, job = strict
    with trio.fail_after(60), psycopg.connect(dsn) as caller:
        await boss.send("letters", "open", singleton_key="k", conn=caller)
        await boss.fail("q", job)
        assert await read_in_order(boss, "letters") == ["letter"]
        caller.commit()

    assert await read_in_order(boss, "letters") == ["open"]
