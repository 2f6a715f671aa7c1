"""schedule, unschedule, get_schedules: what is stored. That it fires is tested with the scheduler."""

import pytest

import trioboss


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


async def test_a_schedule_is_read_as_it_was_given(q):
    await q.create_queue("dead")
    options = {
        "priority": 3,
        "singleton_key": "k",
        "retry_limit": 1,
        "expire_in": 5.0,
        "dead_letter": "dead",
    }

    await q.schedule("q", "30 3 * * *", {"a": 1}, tz="Europe/Berlin", key="daily", missed="latest", **options)
    (schedule,) = await q.get_schedules()

    assert (schedule.queue, schedule.key, schedule.cron) == ("q", "daily", "30 3 * * *")
    assert (schedule.timezone, schedule.missed, schedule.data) == ("Europe/Berlin", "latest", {"a": 1})
    assert schedule.options == options


async def test_an_argument_that_is_left_out_has_its_default(q):
    await q.schedule("q", "* * * * *")
    (schedule,) = await q.get_schedules()

    assert (schedule.key, schedule.timezone, schedule.missed, schedule.data) == ("", "UTC", "skip", None)
    assert schedule.options == {}


async def test_seconds_come_first(q):
    await q.schedule("q", "*/10 * * * * *")

    assert (await q.get_schedules())[0].cron == "*/10 * * * * *"


async def test_the_schedule_of_the_same_key_is_replaced(q):
    await q.schedule("q", "1 * * * *", 1, tz="Europe/Berlin", priority=1)
    (before,) = await q.get_schedules()
    await q.schedule("q", "2 * * * *", 2)
    (after,) = await q.get_schedules()

    assert (after.cron, after.data, after.timezone, after.options) == ("2 * * * *", 2, "UTC", {})
    assert after.created_on == before.created_on
    assert after.updated_on > before.updated_on


async def test_a_queue_may_have_many_schedules(q):
    await q.create_queue("other")
    await q.schedule("q", "2 * * * *", key="b")
    await q.schedule("q", "1 * * * *", key="a")
    await q.schedule("other", "3 * * * *")

    assert [(s.queue, s.key) for s in await q.get_schedules()] == [("other", ""), ("q", "a"), ("q", "b")]
    assert [s.key for s in await q.get_schedules("q")] == ["a", "b"]


async def test_a_schedule_is_removed_by_its_key(q):
    await q.schedule("q", "1 * * * *")
    await q.schedule("q", "2 * * * *", key="b")

    await q.unschedule("q")
    assert [s.key for s in await q.get_schedules()] == ["b"]
    await q.unschedule("q", "b")
    assert await q.get_schedules() == []


async def test_removing_a_schedule_that_does_not_exist_is_fine(q):
    await q.unschedule("q", "nothing")


async def test_schedules_go_with_their_queue(q):
    await q.schedule("q", "1 * * * *")
    await q.delete_queue("q")

    assert await q.get_schedules() == []


async def test_a_queue_that_does_not_exist_is_named(boss):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await boss.schedule("nowhere", "* * * * *")


async def test_a_dead_letter_queue_that_does_not_exist_is_named_now_and_not_at_every_tick(q):
    with pytest.raises(trioboss.UnknownQueue, match="'nowhere'"):
        await q.schedule("q", "* * * * *", dead_letter="nowhere")
    assert await q.get_schedules() == []


async def test_a_key_that_the_policy_requires_is_missed_now_and_not_at_every_tick(boss):
    await boss.create_queue("q", policy="key_strict_fifo")

    with pytest.raises(ValueError, match="key_strict_fifo queues require a singleton_key"):
        await boss.schedule("q", "* * * * *")
    await boss.schedule("q", "* * * * *", singleton_key="k")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"cron": "* * * *"}, "^cron: "),
        ({"cron": "61 * * * *"}, "^cron: "),
        ({"cron": None}, "^cron: "),
        ({"tz": "Nowhere/City"}, "^tz: "),
        ({"missed": "once"}, "^missed: "),
        ({"key": "a b"}, "^key: "),
        ({"key": None}, "^key: "),
        ({"data": {"a": {1}}}, r"^data\.a: "),
        ({"priority": "high"}, "^priority: "),
        ({"id": "01890a5d-ac96-774b-bcce-b302099a8057"}, "^id: the schedule decides this"),
        ({"start_after": 5}, "^start_after: the schedule decides this"),
    ],
)
async def test_a_wrong_argument_is_refused_by_name_before_any_sql(offline_boss, bad, message):
    with pytest.raises(ValueError, match=message):
        await offline_boss.schedule("q", **{"cron": "* * * * *", **bad})


async def test_an_unknown_option_is_a_type_error(offline_boss):
    with pytest.raises(TypeError, match="'every'"):
        await offline_boss.schedule("q", "* * * * *", every=5)
