"""How many outcomes go into one statement, and when postponed ones are tried again."""

import math

from hypothesis import given
from hypothesis import strategies as st

from trioboss.machines.settling import MOST_CHARACTERS, SettleMachine

HALF = MOST_CHARACTERS // 2


def test_outcomes_go_into_one_statement_until_it_is_full():
    machine = SettleMachine()

    assert machine.count_fitting([HALF, HALF]) == 2
    assert machine.count_fitting([HALF, HALF, 1]) == 2
    assert machine.count_fitting([0] * 1000) == 1000


def test_an_outcome_that_is_larger_than_a_statement_goes_alone():
    machine = SettleMachine()

    assert machine.count_fitting([MOST_CHARACTERS + 1, 1]) == 1
    assert machine.count_fitting([1, MOST_CHARACTERS]) == 1


@given(st.lists(st.integers(0, MOST_CHARACTERS * 2), min_size=1, max_size=20), st.integers(0, 5))
def test_the_first_of_those_that_wait_always_goes(sizes, unanswered):
    """Otherwise a dispatcher would settle nothing, for ever."""
    machine = SettleMachine()
    for _ in range(unanswered):
        machine.unanswered()

    assert 1 <= machine.count_fitting(sizes) <= len(sizes)


def test_statements_get_smaller_until_one_is_answered():
    machine = SettleMachine()
    machine.unanswered()

    assert machine.count_fitting([HALF, HALF]) == 1

    machine.answered()

    assert machine.count_fitting([HALF, HALF]) == 2


def test_postponed_outcomes_are_tried_less_and_less_often():
    machine, now, pauses = SettleMachine(), 0.0, []
    for number in range(7):
        machine.postpone(now, again=number > 0)
        pauses.append(machine.postponed_until - now)
        now = machine.postponed_until
        machine.postponed_taken()

    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_outcomes_that_are_postponed_later_do_not_put_off_the_first():
    machine = SettleMachine()
    machine.postpone(1.0, again=False)
    machine.postpone(1.2, again=False)

    assert machine.postponed_until == 1.25


def test_nothing_is_due_when_nothing_is_postponed():
    machine = SettleMachine()
    machine.postpone(1.0, again=False)
    machine.postponed_taken()

    assert machine.postponed_until == math.inf
