"""publish, subscribe, unsubscribe."""

import contextlib

import pytest
from store_helpers import take, take_all

import trioboss


@pytest.fixture
async def news(boss):
    """A boss with two queues that subscribed to `event`, and one that did not."""
    for name in ("a", "b", "c"):
        await boss.create_queue(name)
    await boss.subscribe("event", "a")
    await boss.subscribe("event", "b")
    return boss


async def test_every_subscriber_gets_a_job_and_nobody_else(news):
    ids = await news.publish("event", {"n": 1})

    jobs = [await take(news, name) for name in ("a", "b")]
    assert [job.id for job in jobs] == ids
    assert [job.data for job in jobs] == [{"n": 1}, {"n": 1}]
    assert await news.fetch("c") == []


async def test_an_event_without_subscribers_is_no_job(news):
    assert await news.publish("silence", 1) == []


async def test_subscribing_twice_is_subscribing(news):
    await news.subscribe("event", "a")

    assert len(await news.publish("event")) == 2


async def test_a_queue_that_unsubscribed_gets_no_more(news):
    await news.unsubscribe("event", "a")

    await news.publish("event", 1)

    assert await news.fetch("a") == []
    assert await take_all(news, "b") == [1]


async def test_ending_a_subscription_that_does_not_exist_is_fine(news):
    await news.unsubscribe("event", "c")
    await news.unsubscribe("silence", "a")


async def test_a_deleted_queue_is_no_subscriber(news):
    await news.delete_queue("a")

    assert len(await news.publish("event")) == 1


async def test_a_queue_may_subscribe_to_many_events(news):
    await news.subscribe("other", "a")

    await news.publish("event", 1)
    await news.publish("other", 2)

    assert await take_all(news, "a") == [1, 2]


async def test_options_go_to_every_job(news):
    await news.create_queue("letters")
    await news.publish("event", priority=5, singleton_key="k", dead_letter="letters", expire_in=3)

    for name in ("a", "b"):
        job = await take(news, name)
        assert (job.priority, job.singleton_key, job.dead_letter, job.expire_in) == (5, "k", "letters", 3.0)


async def test_a_subscriber_whose_policy_refuses_the_job_is_left_out(news):
    await news.create_queue("full", policy="short")
    await news.send("full")
    await news.subscribe("event", "full")

    assert len(await news.publish("event")) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [({}, "require a singleton_key"), ({"singleton_key": "k", "dead_letter": "nowhere"}, "'nowhere'")],
)
async def test_if_one_subscriber_cannot_get_the_job_nobody_gets_it(news, options, error):
    await news.create_queue("strict", policy="key_strict_fifo")
    await news.subscribe("event", "strict")

    with pytest.raises(trioboss.UsageError, match=error):
        await news.publish("event", 1, **options)
    for name in ("a", "b", "strict"):
        assert await news.fetch(name) == []


async def test_an_event_that_is_rolled_back_was_never_published(news):
    with contextlib.suppress(ZeroDivisionError):
        async with news.transaction() as conn:
            await news.publish("event", 1, conn=conn)
            raise ZeroDivisionError

    assert await news.fetch("a") == []


async def test_an_event_has_no_id_of_its_own(offline_boss):
    with pytest.raises(ValueError, match=r"^id: an event becomes a job in each queue"):
        await offline_boss.publish("event", id="01890a5d-ac96-774b-bcce-b302099a8057")


async def test_data_that_cannot_come_back_is_refused_before_any_sql(offline_boss):
    with pytest.raises(trioboss.PayloadError, match=r"^data\.a: "):
        await offline_boss.publish("event", {"a": set()})


@pytest.mark.parametrize("verb", ["publish", "subscribe", "unsubscribe"])
async def test_a_bad_name_of_an_event_is_refused_before_any_sql(offline_boss, verb):
    with pytest.raises(ValueError, match=r"^event: "):
        await getattr(offline_boss, verb)("no event", "q")


async def test_a_queue_that_does_not_exist_cannot_subscribe(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.subscribe("event", "nowhere")


async def test_a_thousand_subscribers_get_one_job_each(boss, database):
    database.execute("insert into trioboss.queue (name) select 'q' || i from generate_series(1, 1000) i")
    database.execute(
        "insert into trioboss.subscription (event, name) select 'event', name from trioboss.queue"
    )

    assert len(await boss.publish("event", 1)) == 1000
    assert database.execute("select count(distinct name), count(*) from trioboss.job").fetchone() == (
        1000,
        1000,
    )
