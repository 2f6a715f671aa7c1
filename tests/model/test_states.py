"""The two tables of a job's life, by themselves. tests/sql compares them with what the database does."""

import re
from importlib import resources

import pytest

from trioboss import JobState
from trioboss.model.states import READINESS, TRANSITIONS, Action, Readiness, ReadinessEvent, state_of

SQL = resources.files("trioboss.sql")
QUEUED = [Readiness.DEFERRED, Readiness.BLOCKED, Readiness.WAITING, Readiness.READY]
NOT_WRITTEN_YET = {ReadinessEvent.UNBLOCK}
CLAIMS = {ReadinessEvent.CLAIM, ReadinessEvent.CLAIM_EARLY}

# The action that users see, and the event by which the database performs it.
PERFORMED_BY = {
    Action.CLAIM: ReadinessEvent.CLAIM,
    Action.COMPLETE: ReadinessEvent.COMPLETE,
    Action.COMPLETE_QUEUED: ReadinessEvent.COMPLETE_QUEUED,
    Action.FAIL: ReadinessEvent.RETRY_FAILED,
    Action.EXHAUST: ReadinessEvent.FAIL,
    Action.RELEASE: ReadinessEvent.RELEASE,
    Action.QUARANTINE: ReadinessEvent.QUARANTINE,
    Action.CANCEL: ReadinessEvent.CANCEL,
    Action.RETRY: ReadinessEvent.RETRY,
}
OUTCOMES = {
    ReadinessEvent.COMPLETE: JobState.COMPLETED,
    ReadinessEvent.COMPLETE_QUEUED: JobState.COMPLETED,
    ReadinessEvent.CANCEL: JobState.CANCELLED,
    ReadinessEvent.FAIL: JobState.FAILED,
    ReadinessEvent.QUARANTINE: JobState.FAILED,
}


def values_of_type(migration, name):
    """The values of an enumeration of the database, in order."""
    text = SQL.joinpath("migrations", migration).read_text("utf-8")
    (values,) = re.findall(rf"CREATE TYPE trioboss\.{name} AS ENUM \((.*?)\)", text)
    return re.findall(r"'(\w+)'", values)


# -- states


def test_every_state_is_in_the_table():
    assert set(TRANSITIONS) == set(JobState)


@pytest.mark.parametrize("state", list(JobState))
def test_a_state_is_either_queued_or_active_or_ended(state):
    assert [state.is_queued, state is JobState.ACTIVE, state.is_ended].count(True) == 1


def test_states_are_in_the_order_of_a_life():
    assert list(JobState) == ["created", "retry", "active", "completed", "cancelled", "failed"]


def test_the_outcomes_of_the_archive_are_the_states_that_have_ended():
    assert values_of_type("0003_history.sql", "outcome") == [state for state in JobState if state.is_ended]


def test_only_queued_jobs_are_claimed_and_only_active_jobs_are_settled():
    claimed = {state for state, moves in TRANSITIONS.items() if Action.CLAIM in moves}
    settling = {Action.COMPLETE, Action.FAIL, Action.EXHAUST, Action.RELEASE}
    settled = {state for state, moves in TRANSITIONS.items() if settling & set(moves)}

    assert claimed == {JobState.CREATED, JobState.RETRY}
    assert settled == {JobState.ACTIVE}


def test_nothing_happens_to_a_completed_job():
    assert TRANSITIONS[JobState.COMPLETED] == {}


def test_every_action_is_possible_and_every_state_is_reached():
    moves = [move for moves in TRANSITIONS.values() for move in moves.items()]

    assert {action for action, _ in moves} == set(Action)
    assert {state for _, states in moves for state in states} == set(JobState)


# -- readiness


def test_every_readiness_is_in_the_table():
    assert set(READINESS) == set(Readiness)


def test_the_database_has_the_same_readinesses_in_the_same_order():
    assert values_of_type("0002_jobs.sql", "readiness") == list(Readiness)


@pytest.mark.parametrize("event", list(ReadinessEvent))
def test_every_event_is_a_statement(event):
    exists = SQL.joinpath("statements", f"{event}.sql").is_file()

    assert exists == (event not in NOT_WRITTEN_YET)


def test_every_event_changes_some_readiness():
    assert {event for events in READINESS.values() for event in events} == set(ReadinessEvent)


@pytest.mark.parametrize("readiness", list(Readiness))
def test_no_event_leaves_a_readiness_as_it_is(readiness):
    for event, following in READINESS[readiness].items():
        assert following, event
        assert readiness not in following
        assert len(set(following)) == len(following)


@pytest.mark.parametrize("readiness", list(Readiness))
def test_every_live_job_can_be_deleted_and_is_gone_then(readiness):
    assert READINESS[readiness][ReadinessEvent.DELETE] == (None,)


def test_every_job_that_has_not_ended_can_be_cancelled_and_is_gone_then():
    cancelled = {readiness: events.get(ReadinessEvent.CANCEL) for readiness, events in READINESS.items()}

    assert cancelled == dict.fromkeys(Readiness, (None,)) | {Readiness.ENDED: None}


def reach(start):
    """The next states of a job; None: it leaves the live table."""
    reached = {start}
    while (
        following := {
            after
            for readiness in reached - {None}
            for event, afters in READINESS[readiness].items()
            if event not in (ReadinessEvent.QUARANTINE, ReadinessEvent.CANCEL, ReadinessEvent.DELETE)
            for after in afters
        }
        - reached
    ):
        reached |= following
    return reached


@pytest.mark.parametrize("readiness", QUEUED)
def test_a_queued_job_of_any_readiness_can_run_and_end(readiness):
    assert {Readiness.ACTIVE, Readiness.ENDED, None} <= reach(readiness)


def test_only_a_claim_makes_a_job_active():
    makes_active = {
        event for events in READINESS.values() for event, after in events.items() if Readiness.ACTIVE in after
    }

    assert makes_active == CLAIMS


# -- both tables together


@pytest.mark.parametrize("attempt", [0, 1])
@pytest.mark.parametrize("readiness", QUEUED)
def test_a_queued_job_is_created_until_its_first_attempt_and_a_retry_then(readiness, attempt):
    assert state_of(readiness, attempt) is (JobState.RETRY if attempt else JobState.CREATED)


def test_an_active_job_is_active_and_one_that_stays_as_ended_has_failed():
    assert state_of(Readiness.ACTIVE, 1) is JobState.ACTIVE
    assert {state_of(Readiness.ENDED, attempt) for attempt in (0, 1)} == {JobState.FAILED}


def moves_of(readiness, attempt):
    """The moves of one readiness, as users see them: pairs of an event and the state after it."""
    for event, following in READINESS[readiness].items():
        for after in following:
            if event is ReadinessEvent.DELETE:
                continue
            attempts = attempt + 1 if event in CLAIMS else attempt
            yield event, OUTCOMES[event] if after is None else state_of(after, attempts)


@pytest.mark.parametrize(
    ("readiness", "attempt"),
    [
        *((readiness, attempt) for readiness in QUEUED for attempt in (0, 1)),
        (Readiness.ACTIVE, 1),
        (Readiness.ENDED, 0),
        (Readiness.ENDED, 1),
    ],
)
def test_every_move_between_readinesses_is_a_move_between_states_or_not_seen(readiness, attempt):
    state = state_of(readiness, attempt)
    actions = {event: action for action, event in PERFORMED_BY.items()}
    actions[ReadinessEvent.CLAIM_EARLY] = Action.CLAIM
    for event, after in moves_of(readiness, attempt):
        if event in actions:
            assert after in TRANSITIONS[state][actions[event]], event
        else:
            assert after is state, event


def test_every_action_on_a_live_job_is_performed_by_an_event():
    live = {state_of(readiness, attempt): readiness for readiness in Readiness for attempt in (0, 1)}
    for state, readiness in live.items():
        for action in TRANSITIONS[state]:
            assert PERFORMED_BY[action] in READINESS[readiness]


def test_only_a_job_that_is_resumed_comes_back_from_the_archive_without_an_event():
    assert set(Action) - set(PERFORMED_BY) == {Action.RESUME}
    assert TRANSITIONS[JobState.CANCELLED] == {Action.RESUME: (JobState.CREATED, JobState.RETRY)}
