"""The ticks of cron: time zones, the two days a year when clocks change, missed ticks."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cron_oracle import Oracle, find_transition
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from trioboss import UsageError
from trioboss.model.cron import Cron, due_ticks
from trioboss.model.schedule import Missed

MINUTE = timedelta(minutes=1)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local_ticks(cron, zone, after, until):
    """The ticks in a period, in local time with its offset."""
    return [
        f"{tick.astimezone(ZoneInfo(zone)):%d %H:%M %z}"
        for tick in Cron(cron, zone).ticks(utc(after), utc(until))
    ]


# -- plain


@pytest.mark.parametrize(
    ("cron", "after", "tick"),
    [
        ("* * * * *", "2030-01-01 12:00:00", "2030-01-01 12:01:00"),
        ("* * * * *", "2030-01-01 12:00:59.999", "2030-01-01 12:01:00"),
        ("*/15 * * * *", "2030-01-01 12:00:30", "2030-01-01 12:15:00"),
        ("0 3 * * *", "2030-01-01 03:00:00", "2030-01-02 03:00:00"),
        ("30 4 1 * *", "2030-01-01 12:00:00", "2030-02-01 04:30:00"),
        ("0 0 * * 0", "2030-01-01 12:00:00", "2030-01-06 00:00:00"),
        ("0 0 * * 7", "2030-01-01 12:00:00", "2030-01-06 00:00:00"),
        ("0 0 1 1 *", "2030-01-01 00:00:00", "2031-01-01 00:00:00"),
        ("0 0 29 2 *", "2030-01-01 00:00:00", "2032-02-29 00:00:00"),
        ("0 0 31 * *", "2030-01-31 00:00:00", "2030-03-31 00:00:00"),
        ("0 0 13 * 5", "2030-01-01 00:00:00", "2030-01-04 00:00:00"),
        ("* * * * * *", "2030-01-01 12:00:00", "2030-01-01 12:00:01"),
        ("*/10 * * * * *", "2030-01-01 12:00:31", "2030-01-01 12:00:40"),
        ("30 0 3 * * *", "2030-01-01 12:00:00", "2030-01-02 03:00:30"),
    ],
)
def test_the_next_tick(cron, after, tick):
    assert Cron(cron, "UTC").next_after(utc(after)) == utc(tick)


def test_six_fields_have_the_seconds_first():
    assert Cron("5 4 3 2 1 *", "UTC").next_after(utc("2030-01-01")) == utc("2030-01-02 03:04:05")


def test_a_schedule_created_half_a_minute_past_does_not_tick_for_the_minute():
    assert Cron("* * * * *", "UTC").next_after(utc("2030-01-01 12:00:30")) == utc("2030-01-01 12:01:00")


def test_a_day_that_never_comes_is_refused():
    with pytest.raises(UsageError, match="never comes"):
        Cron("0 0 30 2 *", "UTC").next_after(utc("2030-01-01"))


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu", "Pacific/Kiritimati", "Etc/GMT+12"])
def test_a_zone_without_summer_time_has_one_offset(zone):
    offset = f"{datetime(2030, 1, 1, tzinfo=ZoneInfo(zone)):%z}"

    shown = local_ticks("30 9 * * *", zone, "2030-03-29", "2030-04-02")

    assert [tick.split(" ", 1)[1] for tick in shown] == [f"09:30 {offset}"] * 4


def test_a_range_of_one_value_is_that_value():
    assert local_ticks("0 3-3 * * 2-2", "UTC", "2030-01-01", "2030-01-09") == [
        "01 03:00 +0000",
        "08 03:00 +0000",
    ]


def test_no_tick_is_lost_on_the_way_to_a_change_of_the_clocks():
    """Four hours before a change the computation takes another path."""
    ticks = list(
        Cron("*/30 * * * *", "Europe/Berlin").ticks(utc("2030-03-30 12:00"), utc("2030-03-31 12:00"))
    )

    assert ticks == [utc("2030-03-30 12:00") + i * timedelta(minutes=30) for i in range(1, 49)]


# -- when clocks go forward: in Berlin on 31 March 2030 at 2:00 it is 3:00


def test_a_fixed_time_in_the_gap_ticks_once_at_the_change():
    assert local_ticks("30 2 * * *", "Europe/Berlin", "2030-03-29 12:00", "2030-04-01 12:00") == [
        "30 02:30 +0100",
        "31 03:00 +0200",
        "01 02:30 +0200",
    ]


def test_several_fixed_times_in_the_gap_tick_once():
    assert local_ticks("0,15,45 2 * * *", "Europe/Berlin", "2030-03-30 12:00", "2030-03-31 12:00") == [
        "31 03:00 +0200"
    ]


def test_a_time_in_the_gap_and_one_at_its_end_are_one_tick():
    assert local_ticks("0 2,3 * * *", "Europe/Berlin", "2030-03-30 12:00", "2030-03-31 12:00") == [
        "31 03:00 +0200"
    ]


def test_the_next_tick_from_the_hour_before_the_gap_is_at_the_change():
    assert Cron("30 2 * * *", "Europe/Berlin").next_after(utc("2030-03-31 00:59:59")) == utc(
        "2030-03-31 01:00"
    )
    assert Cron("30 2 * * *", "Europe/Berlin").next_after(utc("2030-03-31 01:00")) == utc("2030-04-01 00:30")


def test_every_quarter_of_an_hour_keeps_its_interval_across_the_gap():
    assert local_ticks("*/15 * * * *", "Europe/Berlin", "2030-03-31 00:30", "2030-03-31 01:30") == [
        "31 01:45 +0100",
        "31 03:00 +0200",
        "31 03:15 +0200",
        "31 03:30 +0200",
    ]


# -- when clocks go back: in Berlin on 27 October 2030 at 3:00 it is 2:00 again


def test_a_fixed_time_that_comes_twice_ticks_once_the_first_time():
    assert local_ticks("30 2 * * *", "Europe/Berlin", "2030-10-26 12:00", "2030-10-28 12:00") == [
        "27 02:30 +0200",
        "28 02:30 +0100",
    ]


def test_every_quarter_of_an_hour_keeps_its_interval_across_the_hour_that_comes_twice():
    ticks = list(
        Cron("*/15 * * * *", "Europe/Berlin").ticks(utc("2030-10-26 23:50"), utc("2030-10-27 02:10"))
    )

    assert ticks == [utc("2030-10-27 00:00") + i * timedelta(minutes=15) for i in range(9)]


@pytest.mark.parametrize("hours", ["*", "*/1", "0-23"])
def test_every_hour_however_it_is_written_is_every_hour(hours):
    ticks = list(
        Cron(f"0 {hours} * * *", "Europe/Berlin").ticks(utc("2030-10-26 23:30"), utc("2030-10-27 03:30"))
    )

    assert ticks == [utc("2030-10-27 00:00") + i * timedelta(hours=1) for i in range(4)]


def test_every_other_hour_is_a_list_of_fixed_times():
    assert local_ticks("0 */2 * * *", "Europe/Berlin", "2030-10-26 21:30", "2030-10-27 04:30") == [
        "27 00:00 +0200",
        "27 02:00 +0200",
        "27 04:00 +0100",
    ]


def test_the_next_tick_from_the_second_of_two_equal_hours_is_on_the_next_day():
    assert Cron("30 2 * * *", "Europe/Berlin").next_after(utc("2030-10-27 01:15")) == utc("2030-10-28 01:30")


# -- half an hour, on Lord Howe Island


def test_a_gap_of_half_an_hour():
    """On 6 October 2030 at 2:00 it is 2:30."""
    zone = "Australia/Lord_Howe"
    assert local_ticks("15 2 * * *", zone, "2030-10-04 20:00", "2030-10-06 20:00") == [
        "06 02:30 +1100",
        "07 02:15 +1100",
    ]
    assert local_ticks("45 2 * * *", zone, "2030-10-05 12:00", "2030-10-06 12:00") == ["06 02:45 +1100"]


def test_half_an_hour_that_comes_twice():
    """On 7 April 2030 at 2:00 it is 1:30 again."""
    zone = "Australia/Lord_Howe"
    assert local_ticks("45 1 * * *", zone, "2030-04-06 00:00", "2030-04-07 20:00") == [
        "07 01:45 +1100",
        "08 01:45 +1030",
    ]
    assert len(local_ticks("*/10 * * * *", zone, "2030-04-06 14:00", "2030-04-06 16:00")) == 12


# -- against the oracle

ZONES = (
    "Europe/Berlin",
    "Europe/Dublin",
    "America/New_York",
    "America/Havana",
    "America/Santiago",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Africa/Cairo",
    "Asia/Beirut",
    "Asia/Kolkata",
    "Pacific/Chatham",
    "UTC",
)
MONTHS = {
    zone: [
        (year, month)
        for year in (2026, 2027)
        for month in range(1, 13)
        if find_transition(ZoneInfo(zone), year, month).day != 15 or zone in ("UTC", "Asia/Kolkata")
    ]
    for zone in ZONES
}


def fields(low, high):
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.sampled_from([2, 3, 5, 7, 15, 20]).map(lambda n: f"*/{n}")
    return st.one_of(
        st.just("*"),
        number.map(str),
        span,
        step,
        st.lists(number.map(str), min_size=2, max_size=3).map(",".join),
    )


UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)  # an example takes a tenth of a second

# Mostly times in the small hours, where clocks change.
hours = st.one_of(fields(0, 23), fields(0, 4), fields(0, 4))
expressions = st.builds(
    lambda minute, hour, day, weekday: f"{minute} {hour} {day} * {weekday}",
    fields(0, 59),
    hours,
    st.one_of(st.just("*"), st.just("*"), fields(1, 28)),
    st.one_of(st.just("*"), st.just("*"), fields(0, 6)),
)


@settings(max_examples=40, deadline=None, phases=UNSHRUNK)
@given(st.data(), expressions, st.sampled_from(ZONES), st.integers(-1440, 720), st.integers(0, 59))
def test_it_ticks_as_the_oracle_says(data, expression, zone, minutes, seconds):
    year, month = data.draw(st.sampled_from(MONTHS[zone]))
    after = find_transition(ZoneInfo(zone), year, month) + minutes * MINUTE + timedelta(seconds=seconds)
    until = after.replace(second=0) + timedelta(days=1)
    oracle = Oracle(expression, ZoneInfo(zone))
    expected = oracle.ticks(after.replace(second=0), until, MINUTE)

    assert list(Cron(expression, zone).ticks(after, until)) == expected


@settings(max_examples=20, deadline=None, phases=UNSHRUNK)
@given(st.data(), fields(0, 59), expressions, st.sampled_from(ZONES), st.integers(-7200, 7200))
def test_it_ticks_to_the_second_as_the_oracle_says(data, second, expression, zone, seconds):
    year, month = data.draw(st.sampled_from(MONTHS[zone]))
    after = find_transition(ZoneInfo(zone), year, month) + timedelta(seconds=seconds)
    until = after + timedelta(minutes=20)
    oracle = Oracle(f"{second} {expression}", ZoneInfo(zone))
    cron = Cron(f"{second} {expression}", zone)

    assert list(cron.ticks(after, until)) == oracle.ticks(after, until, timedelta(seconds=1))


# -- what is due

NOON = utc("2030-01-01 12:00")


def due(missed, last, now, cron="* * * * *"):
    ticks = due_ticks(Cron(cron, "UTC"), Missed(missed), NOON + last * MINUTE, NOON + now * MINUTE)
    return [(tick - NOON) / MINUTE for tick in ticks]


def test_skip_fires_the_tick_of_now_and_no_missed_one():
    assert due("skip", 0, 5) == [5]
    assert due("skip", 0, 5.9) == [5]


def test_skip_fires_nothing_when_the_last_tick_is_more_than_a_minute_old():
    assert due("skip", 0, 8, "*/5 * * * *") == []


def test_latest_fires_the_last_missed_one():
    assert due("latest", 0, 8, "*/5 * * * *") == [5]
    assert due("latest", 0, 1000, "*/5 * * * *") == [1000]


def test_all_fires_all_of_them():
    assert due("all", 0, 17, "*/5 * * * *") == [5, 10, 15]


def test_all_fires_a_thousand_ticks_at_most():
    ticks = due("all", 0, 5000)

    assert ticks == list(range(4001, 5001))


@pytest.mark.parametrize("missed", list(Missed))
def test_nothing_is_due_before_the_next_tick(missed):
    assert due(missed, 5, 5.9) == []
    assert due(missed, 5, 5) == []


@pytest.mark.parametrize(("missed", "count"), [("skip", 1), ("latest", 1), ("all", 1000)])
def test_a_long_absence_costs_no_more_than_a_short_one(missed, count, monkeypatch):
    """A schedule for every second, and no boss for a year: ticks that are not fired are not computed."""
    computed = []
    next_after = Cron.next_after
    monkeypatch.setattr(Cron, "next_after", lambda *args: computed.append(args) or next_after(*args))

    assert len(due(missed, 0, 365 * 1440, "* * * * * *")) == count
    assert len(computed) < 5000


def test_a_rare_tick_is_found_however_long_ago_it_was():
    ticks = due_ticks(Cron("0 0 29 2 *", "UTC"), Missed.LATEST, utc("2020-03-01"), utc("2030-01-01"))

    assert ticks == [utc("2028-02-29")]
