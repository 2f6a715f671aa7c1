"""The states and their table. That the database keeps to it is tested in tests/sql."""

import pytest

from trioboss import JobState
from trioboss.model.states import TRANSITIONS, Verb


def test_every_state_is_in_the_table():
    assert set(TRANSITIONS) == set(JobState)


@pytest.mark.parametrize("state", list(JobState))
def test_a_state_is_queued_active_or_ended_and_only_one_of_them(state):
    assert [state.is_queued, state is JobState.ACTIVE, state.is_ended].count(True) == 1


def test_the_order_of_states_is_the_order_of_a_life():
    assert list(JobState) == ["created", "retry", "active", "completed", "cancelled", "failed"]


def test_only_queued_jobs_are_claimed_and_only_active_ones_settled():
    claimed = {state for state, moves in TRANSITIONS.items() if Verb.CLAIM in moves}
    settled = {state for state, moves in TRANSITIONS.items() if {Verb.COMPLETE, Verb.FAIL} & set(moves)}

    assert claimed == {JobState.CREATED, JobState.RETRY}
    assert settled == {JobState.ACTIVE}


def test_a_completed_job_is_completed_for_ever():
    assert TRANSITIONS[JobState.COMPLETED] == {}


def test_every_verb_is_good_for_something_and_every_state_can_be_reached():
    moves = [move for moves in TRANSITIONS.values() for move in moves.items()]

    assert {verb for verb, _ in moves} == set(Verb)
    assert {state for _, state in moves} | {JobState.CREATED} == set(JobState)
