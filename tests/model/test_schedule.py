"""Checks of cron expressions, of time zones, and of the rule for missed ticks."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trioboss
from trioboss.model.schedule import Missed, check_cron, check_missed, check_timezone


@pytest.mark.parametrize(
    "cron",
    ["* * * * *", "30 3 * * *", "*/15 9-17 * * mon-fri", "0 0 L * *", "0 0 * * 5#3", "0 12 1,15 jan *"],
)
def test_five_fields_are_minutes_to_weekdays(cron):
    assert check_cron(cron) == cron


@pytest.mark.parametrize("cron", ["30 30 3 * * *", "*/5 * * * * *", "59 59 23 31 12 0"])
def test_six_fields_begin_with_the_seconds(cron):
    assert check_cron(cron) == cron


def test_the_last_of_six_fields_is_the_weekday():
    with pytest.raises(trioboss.UsageError, match="out of range"):
        check_cron("0 0 3 * * 59")


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "*/0 * * * *",
        "a b c d e",
        None,
        5,
    ],
)
def test_an_invalid_cron_expression_is_refused_by_name(cron):
    with pytest.raises(trioboss.UsageError, match=r"^cron: "):
        check_cron(cron)


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6 *"])
def test_a_day_that_never_comes_is_refused(cron):
    with pytest.raises(trioboss.UsageError, match="never occur"):
        check_cron(cron)


def test_the_29th_of_february_is_a_day_that_comes():
    assert check_cron("0 0 29 2 *") == "0 0 29 2 *"


@pytest.mark.parametrize("cron", ["H * * * *", "R * * * *", "0 r(1-5) * * *"])
def test_expressions_that_each_process_would_expand_differently_are_refused(cron):
    with pytest.raises(trioboss.UsageError, match="each process"):
        check_cron(cron)


@given(st.lists(st.text("*/,-0123456789LW#?hrjanmo", min_size=1, max_size=6), min_size=5, max_size=6))
def test_any_text_is_accepted_or_refused_with_a_usage_error(fields):
    with contextlib.suppress(trioboss.UsageError):
        assert check_cron(" ".join(fields)) == " ".join(fields)


@pytest.mark.parametrize("tz", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_a_time_zone_is_given_by_its_name(tz):
    assert check_timezone(tz) == tz


@pytest.mark.parametrize(
    "tz", ["", "Nowhere/City", "Europe", "../etc/passwd", "UTC\0", "é", "\ud800", None, 5, b"UTC"]
)
def test_an_unknown_time_zone_is_refused_by_name(tz):
    with pytest.raises(trioboss.UsageError, match=r"^tz: .*use a name like Europe/Berlin"):
        check_timezone(tz)


def test_missed_ticks_are_skipped_or_fired_latest_or_all():
    assert [check_missed(value) for value in ("skip", "latest", "all")] == list(Missed)


@pytest.mark.parametrize("value", ["once", "", None, ["skip"]])
def test_another_rule_for_missed_ticks_is_refused_by_name(value):
    with pytest.raises(trioboss.UsageError, match=r"^missed: .*skip, latest, all"):
        check_missed(value)
