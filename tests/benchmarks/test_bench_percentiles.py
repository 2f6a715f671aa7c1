"""Percentiles by nearest rank, and latencies free of coordinated omission."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.percentiles import (
    TIMER_SLACK,
    curve,
    interval_of_median,
    latencies,
    median,
    percentile,
    summarize,
)

values = st.lists(st.floats(0, 1e6), min_size=1, max_size=200)


def test_a_percentile_is_one_of_the_values():
    ordered = [float(number) for number in range(1, 101)]
    assert [percentile(ordered, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]


def test_a_share_that_is_not_exact_in_binary_gives_the_expected_rank():
    assert percentile([float(number) for number in range(1, 101)], 0.55) == 55


@given(values, st.floats(0, 1))
def test_the_share_of_values_up_to_a_percentile_is_large_enough(found: list[float], share: float):
    limit = percentile(sorted(found), share)
    assert sum(value <= limit for value in found) >= share * len(found) - 1e-6


def test_the_percentile_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)
    with pytest.raises(ValueError, match="no values"):
        median([])


def test_the_median_of_an_even_number_lies_between_the_two_in_the_middle():
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5
    assert median([3.0, 1.0, 2.0]) == 2.0


def test_a_summary_ends_with_the_maximum():
    found = summarize([1.0] * 999 + [50.0])
    assert (found.count, found.p50, found.p99, found.p999, found.max) == (1000, 1.0, 1.0, 1.0, 50.0)


@given(values)
def test_a_curve_never_falls_and_ends_with_the_maximum(found: list[float]):
    points = curve(found)
    assert points == sorted(points)
    assert points[-1] == (1.0, max(found))


def test_a_job_that_was_sent_late_counts_from_when_it_was_due():
    assert latencies([10.0], [9.0], [4.0]) == [6.0]


def test_a_delay_within_the_timer_resolution_is_not_counted():
    called = 4.0 + TIMER_SLACK / 2
    assert latencies([10.0], [called], [4.0]) == [10.0 - called]
    assert latencies([10.0], [called], [4.0], slack=0.0) == [6.0]


def test_a_job_without_a_due_time_counts_from_its_call():
    assert latencies([10.0], [9.0], [0.0]) == [1.0]


@pytest.mark.parametrize(
    ("number", "interval"), [(1, (1, 1)), (5, (1, 5)), (6, (1, 6)), (20, (6, 15)), (30, (10, 21))]
)
def test_the_interval_of_a_median_is_that_of_the_sign_test(number, interval):
    """As in the tables of statistics books."""
    assert interval_of_median(range(number, 0, -1)) == interval
