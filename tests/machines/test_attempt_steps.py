"""AttemptMachine, step by step: what each order of events means."""

from collections import Counter

import pytest

from trioboss.machines.attempt import (
    Action,
    AttemptMachine,
    AttemptState,
    CancelReason,
    Completed,
    Failed,
    ManualSettlement,
    Released,
)
from trioboss.model.settle_and_claim import Failure
from trioboss.model.states import JobState

COMPLETED = Completed('"output"')
FAILED = Failed(Failure('"an error"'), "an error")
MANUAL = ManualSettlement(JobState.COMPLETED, "")
TENTATIVE = ManualSettlement(JobState.COMPLETED, "tentative")
LOST_ELSEWHERE = (CancelReason.CANCELLED, CancelReason.LEASE_LOST)


def running() -> AttemptMachine:
    machine = AttemptMachine()
    machine.started()
    return machine


@pytest.mark.parametrize("outcome", [COMPLETED, FAILED])
def test_the_common_way_is_four_events(outcome):
    machine = running()

    assert machine.ended(outcome) is Action.SETTLE
    assert machine.sent() is outcome
    assert machine.accepted() is Action.REPORT_SETTLED
    assert machine.state is AttemptState.SETTLED


def test_the_first_reason_counts():
    machine = running()
    actions = [machine.cancelled(reason) for reason in CancelReason]

    assert Counter(actions) == {Action.CANCEL_HANDLER: 1, Action.NOTHING: 3}
    assert machine.reason is next(iter(CancelReason))


@pytest.mark.parametrize(
    ("reason", "kind"), [(CancelReason.EXPIRED, Failed), (CancelReason.STOPPING, Released)]
)
@pytest.mark.parametrize("raised", [None, FAILED])
def test_the_outcome_of_a_cancelled_attempt_follows_from_its_reason(reason, kind, raised):
    machine = running()
    machine.cancelled(reason)
    machine.ended(raised)

    assert type(machine.sent()) is kind


@pytest.mark.parametrize("reason", [CancelReason.EXPIRED, CancelReason.STOPPING])
def test_a_handler_that_completes_although_it_is_cancelled_has_completed(reason):
    machine = running()
    machine.cancelled(reason)
    machine.ended(COMPLETED)

    assert machine.sent() is COMPLETED


@pytest.mark.parametrize("reason", [CancelReason.EXPIRED, CancelReason.STOPPING])
def test_an_attempt_that_never_started_is_released_at_once(reason):
    machine = AttemptMachine()

    assert machine.cancelled(reason) is Action.SETTLE
    assert machine.sent() == Released()


@pytest.mark.parametrize("reason", LOST_ELSEWHERE)
def test_an_attempt_whose_lease_is_gone_settles_nothing_however_its_handler_ends(reason):
    machine = running()
    machine.cancelled(reason)

    assert machine.ended(COMPLETED) is not Action.SETTLE
    assert machine.state is AttemptState.LOST


def test_a_lost_lease_is_reported_once_and_recovered_when_the_handler_has_ended_at_last():
    machine = running()
    machine.cancelled(CancelReason.LEASE_LOST)

    assert machine.given_up() is Action.REPORT_LOST
    assert machine.ended(COMPLETED) is Action.RECOVER


def test_the_outcome_of_a_handler_that_was_given_up_does_not_count():
    machine = running()
    machine.cancelled(CancelReason.EXPIRED)
    machine.given_up()

    assert machine.ended(COMPLETED) is Action.NOTHING
    assert isinstance(machine.sent(), Failed)


def test_the_lease_is_renewed_until_a_settlement_is_certain():
    machine = running()
    machine.settled_manually(TENTATIVE, committed=False)
    assert machine.needs_lease
    machine.rolled_back(TENTATIVE)
    assert (machine.state, machine.manual) == (AttemptState.RUNNING, None)
    machine.settled_manually(TENTATIVE, committed=False)
    machine.cancelled(CancelReason.LEASE_LOST)

    assert not machine.needs_lease


def test_a_renewal_of_before_the_last_settlement_does_not_undo_it():
    machine = running()
    machine.settled_manually(TENTATIVE, committed=False)
    machine.settled_manually(MANUAL, committed=False)
    machine.rolled_back(TENTATIVE)

    assert (machine.state, machine.manual) == (AttemptState.TENTATIVE, MANUAL)


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("reason", LOST_ELSEWHERE)
def test_a_handler_that_has_settled_its_job_is_not_cancelled_because_the_lease_is_gone(reason, committed):
    machine = running()
    machine.settled_manually(MANUAL, committed=committed)

    assert machine.cancelled(reason) is Action.NOTHING
    assert machine.reason is None


def test_a_committed_manual_settlement_counts_once():
    machine = running()
    machine.settled_manually(MANUAL, committed=True)
    machine.cancelled(CancelReason.EXPIRED)

    assert machine.given_up() is Action.REPORT_MANUAL
    assert machine.ended(FAILED) is Action.NOTHING


@pytest.mark.parametrize(
    ("accepted", "action"), [(True, Action.REPORT_SETTLED), (False, Action.REPORT_MANUAL)]
)
def test_the_database_decides_whether_a_tentative_settlement_was_committed(accepted, action):
    machine = running()
    machine.settled_manually(MANUAL, committed=False)
    machine.ended(FAILED)
    machine.sent()

    assert (machine.accepted() if accepted else machine.refused()) is action


def test_an_outcome_that_is_refused_after_an_unanswered_statement_counts_as_settled():
    machine = running()
    machine.ended(COMPLETED)
    machine.sent()
    assert machine.unanswered() is Action.SETTLE
    machine.sent()

    assert machine.refused() is Action.REPORT_UNANSWERED


def test_an_outcome_that_is_refused_at_once_came_too_late():
    machine = running()
    machine.ended(COMPLETED)
    machine.sent()

    assert machine.refused() is Action.REPORT_REFUSED
