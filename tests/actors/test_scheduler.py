"""Schedules: each tick is fired once, on time by the clock of the database, whatever the clocks of the bosses show."""

from datetime import timedelta
from uuid import RFC_4122

import attrs
import pytest
import trio
import trio.testing
from scripted_listening import Ledger
from scripted_ports import NOON

from trioboss.actors.actor import Doorbell
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.scheduler import Scheduler, tick_id
from trioboss.errors import DatabaseUnavailable, UnknownQueue
from trioboss.events import ErrorEvent, TickFired


@attrs.define(eq=False)
class Setting:
    scheduler: Scheduler
    clock: DatabaseClock
    changed: Doorbell


@pytest.fixture
async def ledger():
    return Ledger()


@pytest.fixture
async def start(ledger, reporter, nursery):
    """Start a scheduler on the ledger."""

    def start(port=None):
        changed = Doorbell()
        clock = DatabaseClock(changed)
        scheduler = Scheduler(port or ledger, clock, changed, reporter)
        nursery.start_soon(scheduler.run)
        return Setting(scheduler, clock, changed)

    return start


def after(seconds):
    return NOON + timedelta(seconds=seconds)


async def test_a_tick_is_fired_exactly_when_it_is_due(ledger, start, events):
    ledger.add("*/5 * * * *")
    setting = start()
    await trio.sleep(901)

    assert ledger.order == [(300, after(300)), (600, after(600)), (900, after(900))]
    assert [event.due for event in events.of(TickFired)] == [after(300), after(600), after(900)]
    assert setting.scheduler.statistics().fired == 3
    assert len(ledger.reads) == 1


async def test_six_fields_are_exact_to_the_second(ledger, start):
    ledger.add("*/10 * * * * *")
    start()
    await trio.sleep(35)

    assert ledger.order == [(10, after(10)), (20, after(20)), (30, after(30))]


async def test_a_schedule_created_half_a_minute_past_does_not_fire_for_the_minute(ledger, start):
    await trio.sleep(30)
    ledger.add("* * * * *")
    start()
    await trio.sleep(1)
    assert not ledger.order
    await trio.sleep(30)

    assert ledger.order == [(60, after(60))]


async def test_without_schedules_it_does_nothing(ledger, start):
    start()
    await trio.sleep(100_00)

    assert len(ledger.reads) == 1
    assert ledger.tries == 0


async def test_a_new_schedule_is_noticed(ledger, start):
    setting = start()
    await trio.sleep(30)
    ledger.add("* * * * *")
    setting.changed.ring()
    await trio.sleep(31)

    assert ledger.order == [(60, after(60))]


async def test_a_changed_schedule_no_longer_fires_as_it_was(ledger, start):
    ledger.add("* * * * *")
    setting = start()
    await trio.sleep(90)
    ledger.schedules.clear()
    ledger.add("30 * * * *")
    setting.changed.ring()
    await trio.sleep(2000)

    assert [due for _, due in ledger.order] == [after(60), after(1800)]


async def test_a_change_without_a_notification_fires_no_old_tick(ledger, start):
    """The ledger refuses ticks from before the change."""
    ledger.add("* * * * *")
    start()
    await trio.sleep(90)
    ledger.schedules.clear()
    await trio.sleep(200)

    assert [due for _, due in ledger.order] == [after(60)]


async def test_twenty_bosses_fire_each_tick_once(ledger, start):
    ledger.add("*/7 * * * * *")
    for _ in range(20):
        start()
    await trio.sleep(70.5)

    dues = [due for _, due in ledger.order]
    assert len(dues) == len(set(dues)) == 10
    assert ledger.tries == 20 * len(dues)


async def test_bosses_with_wrong_clocks_fire_each_tick_once_and_none_too_early(ledger, start):
    """Each got another time when it started; the ledger has the right one."""
    ledger.add("* * * * *")
    settings = []
    for skew in (-30, -5, -0.2, 0, 0.2, 5, 30):
        ledger.skew = skew
        settings.append(start())
        await trio.testing.wait_all_tasks_blocked()
    ledger.skew = 0
    await trio.sleep(301)

    assert [due for _, due in ledger.order] == [after(60 * minute) for minute in range(1, 6)]
    assert all(0 <= at - (due - NOON).total_seconds() <= 0.3 for at, due in ledger.order)


async def test_a_scheduler_that_is_too_early_waits_before_it_tries_again(ledger, start):
    ledger.add("* * * * *")
    ledger.skew = 10
    start()
    await trio.testing.wait_all_tasks_blocked()
    ledger.skew = 0
    await trio.sleep(61)

    assert ledger.order == [(60, after(60))]
    assert ledger.tries <= 3


async def test_when_the_clock_is_set_the_schedules_are_read_again(ledger, start):
    """As after a laptop was suspended: the monotonic clock has not moved, that of the database has, by hours."""
    ledger.add("0 * * * *", missed="latest")
    setting = start()
    await trio.sleep(100)
    ledger.skew = 4 * 3600
    setting.clock.set(ledger.now(), trio.current_time())
    await trio.testing.wait_all_tasks_blocked()

    assert ledger.order == [(100, after(4 * 3600))]


# -- missed ticks


@pytest.mark.parametrize(
    ("missed", "fired"),
    [("skip", []), ("latest", [600]), ("all", [120, 240, 360, 480, 600])],
)
async def test_missed_ticks_are_fired_as_the_schedule_says(ledger, start, missed, fired):
    ledger.add("*/2 * * * *", missed=missed)
    await trio.sleep(700)
    start()
    await trio.testing.wait_all_tasks_blocked()

    assert [due for _, due in ledger.order] == [after(seconds) for seconds in fired]


@pytest.mark.parametrize("missed", ["skip", "latest", "all"])
async def test_a_tick_that_is_less_than_a_minute_late_is_not_missed(ledger, start, missed):
    ledger.add("*/10 * * * *", missed=missed)
    await trio.sleep(650)
    start()
    await trio.testing.wait_all_tasks_blocked()

    assert [due for _, due in ledger.order] == [after(600)]


async def test_ticks_that_another_boss_has_fired_are_not_fired_again(ledger, start):
    schedule = ledger.add("*/2 * * * *", missed="all")
    await trio.sleep(500)
    ledger.fired["q", "", after(360)] = tick_id(schedule, after(360))
    await trio.sleep(200)
    start()
    await trio.testing.wait_all_tasks_blocked()

    assert [due for _, due in ledger.order] == [after(480), after(600)]


# -- failures


async def test_a_tick_that_could_not_be_fired_is_repeated(ledger, start, events):
    ledger.add("* * * * *")
    start()
    await trio.sleep(59)
    ledger.faults["fire"].extend(DatabaseUnavailable("away") for _ in range(3))
    await trio.sleep(10)

    assert [due for _, due in ledger.order] == [after(60)]
    assert 63 <= ledger.order[0][0] <= 64
    assert len(events.of(ErrorEvent)) == 3


async def test_schedules_that_could_not_be_read_are_read_again(ledger, start):
    ledger.add("* * * * *")
    ledger.faults["read"].extend(DatabaseUnavailable("away") for _ in range(5))
    start()
    await trio.sleep(61)

    assert ledger.order == [(60, after(60))]


async def test_a_schedule_whose_queue_refuses_does_not_delay_the_others(ledger, start, events):
    ledger.add("* * * * *", queue="gone")
    ledger.add("* * * * *", queue="here")
    start()
    ledger.faults["fire"].append(UnknownQueue("gone"))
    await trio.sleep(61)

    assert [queue for queue, _, _ in ledger.fired] == ["here"]
    assert [event.actor for event in events.of(ErrorEvent)] == ["schedule gone"]


@pytest.mark.parametrize(
    "nonsense",
    [
        {"cron": "not a cron"},
        {"cron": "0 0 30 2 *"},
        {"cron": "* * * * *", "timezone": "Atlantis/Poseidonis"},
    ],
)
async def test_an_invalid_schedule_does_not_delay_the_others(ledger, start, events, nonsense):
    ledger.add(key="bad", **nonsense)
    ledger.add("* * * * *")
    start()
    await trio.sleep(61)

    assert ledger.order == [(60, after(60))]
    assert [event.actor for event in events.of(ErrorEvent)] == ["schedule q bad"]


def test_the_id_of_a_tick_is_the_same_in_every_boss():
    ledger = Ledger()
    first, second = (trio.run(_make, ledger) for _ in range(2))

    assert tick_id(first, after(60)) == tick_id(second, after(60))
    assert tick_id(first, after(60)) != tick_id(first, after(120))


def test_the_ids_of_ticks_are_in_the_order_of_their_times():
    """Lists of jobs and rates are by ids: those of schedules must be among the ids of jobs sent at that time."""
    schedule = trio.run(_make, Ledger())
    ids = [tick_id(schedule, after(60 * minute)) for minute in range(100)]

    assert ids == sorted(ids)
    assert {(id.version, id.variant) for id in ids} == {(7, RFC_4122)}
    assert [id.int >> 80 for id in ids[:2]] == [int(after(s).timestamp() * 1000) for s in (0, 60)]


async def _make(ledger):
    return ledger.add("* * * * *", created_on=NOON, updated_on=NOON)
