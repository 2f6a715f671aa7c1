"""publish, subscribe, unsubscribe."""

import contextlib

import pytest
from store_helpers import take, take_all

import trioboss


@pytest.fixture
async def boss_with_subscribers(boss):
    """A boss with two queues that are subscribed to `event`, and one that is not."""
    for name in ("a", "b", "c"):
        await boss.create_queue(name)
    await boss.subscribe("event", "a")
    await boss.subscribe("event", "b")
    return boss


async def test_every_subscriber_gets_a_job_and_nobody_else(boss_with_subscribers):
    ids = await boss_with_subscribers.publish("event", {"n": 1})

    jobs = [await take(boss_with_subscribers, name) for name in ("a", "b")]
    assert [job.id for job in jobs] == ids
    assert [job.data for job in jobs] == [{"n": 1}, {"n": 1}]
    assert await boss_with_subscribers.fetch("c") == []


async def test_an_event_without_subscribers_makes_no_job(boss_with_subscribers):
    assert await boss_with_subscribers.publish("silence", 1) == []


async def test_subscribing_twice_is_the_same_as_once(boss_with_subscribers):
    await boss_with_subscribers.subscribe("event", "a")

    assert len(await boss_with_subscribers.publish("event")) == 2


async def test_a_queue_that_unsubscribed_gets_no_more(boss_with_subscribers):
    await boss_with_subscribers.unsubscribe("event", "a")

    await boss_with_subscribers.publish("event", 1)

    assert await boss_with_subscribers.fetch("a") == []
    assert await take_all(boss_with_subscribers, "b") == [1]


async def test_ending_a_subscription_that_does_not_exist_is_fine(boss_with_subscribers):
    await boss_with_subscribers.unsubscribe("event", "c")
    await boss_with_subscribers.unsubscribe("silence", "a")


async def test_a_deleted_queue_is_no_longer_subscribed(boss_with_subscribers):
    await boss_with_subscribers.delete_queue("a")

    assert len(await boss_with_subscribers.publish("event")) == 1


async def test_a_queue_may_subscribe_to_many_events(boss_with_subscribers):
    await boss_with_subscribers.subscribe("other", "a")

    await boss_with_subscribers.publish("event", 1)
    await boss_with_subscribers.publish("other", 2)

    assert await take_all(boss_with_subscribers, "a") == [1, 2]


async def test_options_go_to_every_job(boss_with_subscribers):
    await boss_with_subscribers.create_queue("dead")
    await boss_with_subscribers.publish(
        "event", priority=5, singleton_key="k", dead_letter="dead", expire_in=3
    )

    for name in ("a", "b"):
        job = await take(boss_with_subscribers, name)
        assert (job.priority, job.singleton_key, job.dead_letter, job.expire_in) == (5, "k", "dead", 3.0)


async def test_a_subscriber_whose_policy_refuses_the_job_is_left_out(boss_with_subscribers):
    await boss_with_subscribers.create_queue("full", policy="short")
    await boss_with_subscribers.send("full")
    await boss_with_subscribers.subscribe("event", "full")

    assert len(await boss_with_subscribers.publish("event")) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [({}, "require a singleton_key"), ({"singleton_key": "k", "dead_letter": "nowhere"}, "'nowhere'")],
)
async def test_if_one_subscriber_cannot_get_the_job_nobody_gets_it(boss_with_subscribers, options, error):
    await boss_with_subscribers.create_queue("strict", policy="key_strict_fifo")
    await boss_with_subscribers.subscribe("event", "strict")

    with pytest.raises(trioboss.UsageError, match=error):
        await boss_with_subscribers.publish("event", 1, **options)
    for name in ("a", "b", "strict"):
        assert await boss_with_subscribers.fetch(name) == []


async def test_an_event_that_is_rolled_back_was_never_published(boss_with_subscribers):
    with contextlib.suppress(ZeroDivisionError):
        async with boss_with_subscribers.transaction() as conn:
            await boss_with_subscribers.publish("event", 1, conn=conn)
            raise ZeroDivisionError

    assert await boss_with_subscribers.fetch("a") == []


async def test_an_event_has_no_id_of_its_own(offline_boss):
    with pytest.raises(ValueError, match=r"^id: an event becomes a job in each queue"):
        await offline_boss.publish("event", id="01890a5d-ac96-774b-bcce-b302099a8057")


async def test_data_that_cannot_come_back_is_refused_before_any_sql(offline_boss):
    with pytest.raises(trioboss.PayloadError, match=r"^data\.a: "):
        await offline_boss.publish("event", {"a": set()})


@pytest.mark.parametrize("method", ["publish", "subscribe", "unsubscribe"])
async def test_a_bad_name_of_an_event_is_refused_before_any_sql(offline_boss, method):
    with pytest.raises(ValueError, match=r"^event: "):
        await getattr(offline_boss, method)("no event", "q")


async def test_a_queue_that_does_not_exist_cannot_subscribe(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.subscribe("event", "nowhere")


async def test_a_thousand_subscribers_get_one_job_each(boss, database):
    database.execute("insert into trioboss.queue (name) select 'q' || i from generate_series(1, 1000) i")
    database.execute(
        "insert into trioboss.subscription (event, queue) select 'event', name from trioboss.queue"
    )

    assert len(await boss.publish("event", 1)) == 1000
    assert database.execute("select count(distinct name), count(*) from trioboss.job").fetchone() == (
        1000,
        1000,
    )
