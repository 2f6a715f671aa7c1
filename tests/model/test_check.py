"""Checks of one field: its final form, or a UsageError that names it."""

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trioboss import UsageError
from trioboss.model import check

NAMES = ["a", "A.b-c_d/e", "0", "__x", "a" * 200, "__state__completed__" + "a" * 200]
NOT_NAMES = [
    *("", "a" * 201, "a b", "a\n", "\na", "a\0", "🙂", "é", "ab\u202e"),
    *("'; drop table job; --", '"a"', "%s", "{}", "a*"),
    *(None, 1, b"a", ["a"]),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_valid_name_is_accepted(name):
    assert check.check_name("queue", name) == name


@pytest.mark.parametrize("name", NOT_NAMES)
def test_an_invalid_name_is_refused_and_the_field_is_named(name):
    with pytest.raises(UsageError, match=r"^queue: .*is not a name: use 1 to 200"):
        check.check_name("queue", name)


@given(st.text())
def test_a_name_has_only_letters_that_are_safe_everywhere(text):
    try:
        name = check.check_name("queue", text)
    except UsageError:
        return
    assert name.isascii()
    assert all(letter.isalnum() or letter in "_.-/" for letter in name)


@pytest.mark.parametrize("key", ["a", " ", "é🙂", "a'b\"c\\d", "%s", "\n", "x" * 1000])
def test_a_key_is_any_text(key):
    assert check.check_key("singleton_key", key) == key


@pytest.mark.parametrize("key", ["", "a\0b", "\ud800", "x" * 1001, "é" * 501, None, 5, b"a"])
def test_a_key_that_postgres_cannot_hold_is_refused(key):
    with pytest.raises(UsageError, match=r"^singleton_key: "):
        check.check_key("singleton_key", key)


def test_an_id_is_a_uuid_or_its_text():
    id = UUID("01890a5d-ac96-774b-bcce-b302099a8057")

    assert check.check_uuid("id", id) == id
    assert check.check_uuid("id", str(id)) == id


@pytest.mark.parametrize("id", ["", "x", "01890a5d", 5, None, b"0" * 16])
def test_an_invalid_id_is_refused(id):
    with pytest.raises(UsageError, match=r"^id: .*is not a UUID"):
        check.check_uuid("id", id)


@pytest.mark.parametrize("value", [0, 1, "yes", None])
def test_a_flag_is_true_or_false_and_nothing_like_it(value):
    with pytest.raises(UsageError, match=r"^partition: .*True or False"):
        check.check_flag("partition", value)


@pytest.mark.parametrize("value", [-1, 1.0, "1", True, None, 10**9 + 1])
def test_a_count_is_a_whole_number_up_to_a_billion(value):
    with pytest.raises(UsageError, match=r"^retry_limit: .*from 0 to 1000000000"):
        check.check_count("retry_limit", value)


def test_a_priority_may_be_negative():
    assert check.check_priority("priority", -(2**31)) == -(2**31)
    with pytest.raises(UsageError, match=r"^priority: "):
        check.check_priority("priority", -(2**31) - 1)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_a_fraction_is_a_number_from_0_to_1(value):
    with pytest.raises(UsageError, match=r"^retry_jitter: .*from 0 to 1"):
        check.check_fraction("retry_jitter", value)


@pytest.mark.parametrize(("value", "seconds"), [(0, 0.0), (1.5, 1.5), (timedelta(minutes=2), 120.0)])
def test_a_duration_is_seconds_or_a_timedelta(value, seconds):
    assert check.check_duration("retry_delay", value) == seconds


def test_a_duration_is_rounded_to_microseconds():
    assert check.check_duration("expire_in", 1 / 3) == 0.333333


@pytest.mark.parametrize(
    "value", [-1, float("inf"), float("nan"), 101 * 366 * 86400, timedelta(seconds=-1), "5", None, True]
)
def test_a_duration_is_neither_negative_nor_endless(value):
    with pytest.raises(UsageError, match=r"^retry_delay: "):
        check.check_duration("retry_delay", value)


def test_a_number_beyond_all_floats_is_refused_like_any_other():
    with pytest.raises(UsageError, match=r"^retry_delay: "):
        check.check_duration("retry_delay", 10**400)


@pytest.mark.parametrize("value", [0, 1e-9])
def test_a_duration_that_must_be_positive_is_refused_if_it_rounds_to_zero(value):
    with pytest.raises(UsageError, match=r"^expire_in: .*more than 0"):
        check.check_duration("expire_in", value, above=True)


def test_a_start_is_a_duration_or_an_instant():
    instant = datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=2)))

    assert check.check_start("start_after", 5) == 5.0
    assert check.check_start("start_after", timedelta(hours=1)) == 3600.0
    assert check.check_start("start_after", instant) == instant
    assert check.check_start("start_after", instant.isoformat()) == instant


def test_an_instant_without_a_zone_is_refused():
    with pytest.raises(UsageError, match=r"^start_after: .*no time zone"):
        check.check_start("start_after", datetime(2030, 1, 1))


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00+01:00", datetime(1899, 12, 31, tzinfo=UTC)])
def test_a_start_long_ago_is_a_mistake(value):
    with pytest.raises(UsageError, match=r"^start_after: .*too long ago"):
        check.check_start("start_after", value)


@pytest.mark.parametrize(
    "value",
    [-1, float("inf"), "infinity", "tomorrow", "5", datetime.max.replace(tzinfo=UTC), "2262-01-01", None, []],
)
def test_an_invalid_start_is_refused(value):
    with pytest.raises(UsageError, match=r"^start_after: "):
        check.check_start("start_after", value)


def test_a_time_as_text_needs_a_time_zone_like_any_other():
    with pytest.raises(UsageError, match=r"^start_after: .*no time zone"):
        check.check_start("start_after", "2030-01-01T00:00:00")
