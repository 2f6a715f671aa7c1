"""Recurrence rules, aliases of cron expressions, and the preview of any schedule."""

from datetime import UTC, datetime

import pytest

import trioboss
from trioboss import preview_schedule
from trioboss.model.recurrence import NEVER, Recurrence
from trioboss.model.schedule import check_cron


def ticks(cron, count=3, tz="UTC", after="2030-01-01T00:00Z"):
    return [f"{tick:%Y-%m-%d %H:%M:%S}" for tick in preview_schedule(cron, count, tz=tz, after=after)]


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("FREQ=DAILY;BYHOUR=9", ["2030-01-01 09:00:00", "2030-01-02 09:00:00"]),
        ("freq=weekly;byday=mo,we;byhour=6;byminute=30", ["2030-01-02 06:30:00", "2030-01-07 06:30:00"]),
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2030-01-25 00:00:00", "2030-02-22 00:00:00"]),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", ["2032-02-29 00:00:00", "2036-02-29 00:00:00"]),
        ("FREQ=HOURLY;INTERVAL=5", ["2030-01-01 05:00:00", "2030-01-01 10:00:00"]),
        ("FREQ=SECONDLY;INTERVAL=7", ["2030-01-01 00:00:05", "2030-01-01 00:00:12"]),
        (
            "DTSTART:20291231T120000\nRRULE:FREQ=DAILY;INTERVAL=3",
            ["2030-01-03 12:00:00", "2030-01-06 12:00:00"],
        ),
        ("RRULE:FREQ=DAILY\nEXDATE:20300102,20300103T000000", ["2030-01-04 00:00:00", "2030-01-05 00:00:00"]),
        ("RRULE:FREQ=DAILY\nRDATE:20300101T060000Z", ["2030-01-01 06:00:00", "2030-01-02 00:00:00"]),
    ],
)
def test_a_rule_ticks_as_the_rfc_has_it(rule, first):
    assert ticks(rule, 2) == first


@pytest.mark.parametrize(
    "rule", ["FREQ=DAILY;UNTIL=20300102T120000Z", "DTSTART:20291231T000000\nRRULE:FREQ=DAILY;COUNT=3"]
)
def test_a_rule_that_has_ended_never_ticks_again(rule):
    text = check_cron(rule)

    assert ticks(rule) == (["2030-01-02 00:00:00"])
    assert Recurrence(text, "UTC").next_after(datetime(2031, 1, 1, tzinfo=UTC)) == NEVER
    assert list(Recurrence(text, "UTC").ticks(datetime(2031, 1, 1, tzinfo=UTC), NEVER)) == []


def test_a_time_in_the_gap_ticks_at_the_change_and_one_that_comes_twice_the_first_time():
    rule = "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"

    assert ticks(rule, 2, "Europe/Berlin", "2030-03-30T12:00Z") == [
        "2030-03-31 01:00:00",
        "2030-04-01 00:30:00",
    ]
    assert ticks(rule, 2, "Europe/Berlin", "2030-10-26T12:00Z") == [
        "2030-10-27 00:30:00",
        "2030-10-28 01:30:00",
    ]
    assert ticks("FREQ=HOURLY", 3, "Europe/Berlin", "2030-10-27T00:30Z") == [
        "2030-10-27 02:00:00",
        "2030-10-27 03:00:00",
        "2030-10-27 04:00:00",
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SOMETIMES",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;COUNT=3",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;BYHOUR=99",
        "FREQ=DAILY;BYDAY=XX",
        "FREQ=DAILY;COLOUR=RED",
        "FREQ=SECONDLY;BYMONTH=2",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYEASTER=0",
        "FREQ=YEARLY;BYWEEKNO=60",
        "FREQ=DAILY;UNTIL=19600101",
        "RRULE:FREQ=DAILY\nRRULE:FREQ=DAILY",
        "RRULE:FREQ=DAILY\nDTSTART;TZID=Europe/Berlin:20300101T000000",
        "RRULE:FREQ=DAILY\nEXDATE:20301301",
        "FREQ=SECONDLY;BYSECOND=61",
        "FREQ=SECONDLY;INTERVAL=54;BYHOUR=3;BYMINUTE=9;BYSECOND=31",
        "FREQ=YEARLY;BYDAY=-1FR;BYMONTH=0,5",
        "FREQ=DAILY;BYHOUR=9,x",
        "FREQ=DAILY;X=" + "1" * 5000,
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_name(rule):
    with pytest.raises(trioboss.UsageError, match=r"^cron: "):
        check_cron(rule)


@pytest.mark.parametrize(
    ("rule", "most"), [("FREQ=DAILY;BYSETPOS=-207", 1), ("FREQ=WEEKLY;BYDAY=MO,TU;BYHOUR=9;BYSETPOS=3", 2)]
)
def test_a_position_that_no_period_has_is_refused_before_all_periods_are_computed(rule, most):
    with pytest.raises(trioboss.UsageError, match=rf"^cron: BYSETPOS=.* a period has {most} times at most"):
        check_cron(rule)
    assert ticks("FREQ=WEEKLY;BYDAY=MO,TU;BYHOUR=9;BYSETPOS=-1", 1) == ["2030-01-01 09:00:00"]


def test_a_zone_belongs_to_the_schedule_and_not_to_its_lines():
    with pytest.raises(trioboss.UsageError, match="tz='Europe/Berlin'"):
        check_cron("DTSTART;TZID=Europe/Berlin:20300101T000000\nRRULE:FREQ=DAILY")


def test_an_alias_is_the_expression_that_it_stands_for():
    assert [check_cron(alias) for alias in ("@daily", "@HOURLY", "@weekly", "@monthly", "@yearly")] == [
        "0 0 * * *",
        "0 * * * *",
        "0 0 * * 0",
        "0 0 1 * *",
        "0 0 1 1 *",
    ]
    with pytest.raises(trioboss.UsageError, match=r"^cron: '@often' is not one of @yearly"):
        check_cron("@often")


def test_a_preview_shows_the_ticks_in_utc():
    assert ticks("30 3 * * *", 2, "Europe/Berlin") == ["2030-01-01 02:30:00", "2030-01-02 02:30:00"]
    assert ticks("@daily", 0) == []
    assert preview_schedule("* * * * *", 1)[0] > datetime.now(UTC)
