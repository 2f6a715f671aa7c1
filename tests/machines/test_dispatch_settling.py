"""DispatchMachine, decision by decision: when it settles, which leases it recovers, and how it stops."""

import math

from test_dispatch_machine import CLAIM, become_idle

from trioboss.machines.dispatch import DispatchMachine
from trioboss.machines.dispatch_commands import Pending, Recover, Settle, Stop, Wait
from trioboss.model.settle_and_claim import ClaimRequest

# -- settling


def become_full(machine: DispatchMachine, now: float = 0.0) -> None:
    """There is a job to claim, and no room for it."""
    machine.plan(now, 5)
    machine.claimed(5, None, now)


def test_outcomes_wait_like_claims_do_while_the_database_fails():
    machine = DispatchMachine()
    machine.failed(Settle(), 5.0, 1.0)
    assert machine.plan(5.0, 5, Pending(since=4.0)) == Wait(5.1)
    machine.plan(5.1, 5)
    machine.claimed(0, None, 5.2)

    assert machine.plan(5.2, 5, Pending(since=4.0)) == Settle()


def test_an_outcome_is_settled_at_once_where_there_is_nothing_to_claim():
    machine = DispatchMachine()
    become_idle(machine)

    assert machine.plan(7.0, 5, Pending(since=7.0)) == Settle()


def test_an_outcome_goes_with_a_claim_where_there_may_be_jobs():
    assert DispatchMachine().plan(7.0, 5, Pending(since=7.0)) == CLAIM


def test_an_outcome_waits_a_moment_for_a_claim_that_lacks_only_room():
    machine = DispatchMachine()
    become_full(machine)

    assert machine.plan(7.0, 0, Pending(since=7.0)) == Wait(7.005, for_room=True, to_settle=True)
    assert machine.plan(7.005, 0, Pending(since=7.0)) == Settle()


def test_an_outcome_that_came_during_a_statement_gives_the_next_claim_its_chance():
    machine = DispatchMachine()
    become_full(machine, now=8.0)

    assert machine.plan(8.0, 0, Pending(since=7.0)) == Wait(8.005, for_room=True, to_settle=True)


def test_an_outcome_that_waits_for_a_claim_does_not_hurry_a_database_that_fails():
    machine = DispatchMachine()
    become_full(machine)
    machine.failed(Settle(), 8.0, 1.0)

    assert machine.plan(8.0, 0, Pending(since=7.0)) == Wait(8.1)


def test_postponed_outcomes_are_tried_again_when_their_time_has_come_and_not_with_others():
    machine = DispatchMachine()
    become_idle(machine)

    assert machine.plan(7.0, 5, Pending(postponed_until=8.0)) == Wait(8.0, to_settle=True)
    assert machine.plan(7.0, 5, Pending(since=7.0, postponed_until=8.0)) == Settle()
    machine.answered(7.0)
    assert machine.plan(8.0, 5, Pending(since=7.9, postponed_until=8.0)) == Settle(postponed=True)


def test_a_busy_dispatcher_also_tries_postponed_outcomes_again():
    assert DispatchMachine().plan(8.0, 5, Pending(postponed_until=8.0)) == Settle(postponed=True)


def test_postponed_outcomes_do_not_hurry_a_database_that_fails():
    machine = DispatchMachine()
    become_idle(machine)
    machine.failed(Settle(), 8.0, 1.0)

    assert machine.plan(8.0, 5, Pending(postponed_until=8.0)) == Wait(8.1)


def test_a_dispatcher_that_stops_waits_for_its_postponed_outcomes():
    machine = DispatchMachine()
    machine.stop()

    assert machine.plan(7.0, 5, Pending(postponed_until=8.0)) == Wait(8.0, to_settle=True)
    assert machine.plan(7.0, 5, Pending()) == Stop()


def test_a_dispatcher_without_jobs_claims_with_an_outcome_that_may_make_one_ready():
    machine = DispatchMachine()
    become_idle(machine)

    assert isinstance(machine.plan(7.0, 5, Pending(since=7.0, frees_jobs=True)), ClaimRequest)


def test_a_dispatcher_of_a_keyed_queue_claims_with_every_outcome():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(1, None, 0.0, keyed=True)

    assert isinstance(machine.plan(7.0, 5, Pending(since=7.0)), ClaimRequest)


def test_a_dispatcher_whose_presence_is_lost_settles_all_the_same():
    machine = DispatchMachine()
    machine.presence_lost(has_leases=False)

    assert machine.plan(7.0, 5, Pending(since=7.0)) == Settle()


# -- leases that the worker does not know of


def test_after_a_claim_without_an_answer_its_leases_are_recovered_before_the_next_claim():
    machine = DispatchMachine()
    claim = machine.plan(0.0, 5)
    machine.failed(claim, 0.0, 1.0)
    assert machine.plan(0.1, 5) == Recover()
    machine.recovered()

    assert machine.plan(0.1, 5) == CLAIM


def test_outcomes_are_settled_before_leases_are_recovered():
    machine = DispatchMachine()
    machine.failed(machine.plan(0.0, 5), 0.0, 1.0)

    assert machine.plan(0.1, 5, Pending(since=0.0)) == Settle()
    machine.answered(0.1)
    assert machine.plan(0.1, 5) == Recover()


def test_a_recovery_that_fails_is_repeated_later():
    machine = DispatchMachine()
    machine.failed(machine.plan(0.0, 5), 0.0, 1.0)
    machine.failed(machine.plan(0.1, 5), 0.1, 1.0)

    assert machine.plan(0.1, 5) == Wait(0.1 + 0.2)
    assert machine.plan(0.4, 5) == Recover()


def test_a_statement_that_only_settles_leaves_no_unknown_lease():
    machine = DispatchMachine()
    machine.failed(Settle(), 0.0, 1.0)

    assert machine.plan(0.1, 5) == CLAIM


def test_a_lease_that_was_given_up_is_recovered_once():
    machine = DispatchMachine()
    become_idle(machine)

    assert machine.plan(1.0, 5, Pending(leases_to_recover=1)) == Recover()
    machine.recovered()
    become_idle(machine, 1.0)
    assert machine.plan(1.0, 5, Pending(leases_to_recover=1)) == Wait(math.inf)


def test_a_lease_that_is_given_up_during_a_recovery_is_recovered_by_another():
    machine = DispatchMachine()
    become_idle(machine)
    machine.plan(1.0, 5, Pending(leases_to_recover=1))
    machine.presence_lost(has_leases=True)
    machine.recovered()
    machine.presence_regained()

    assert machine.plan(1.0, 5, Pending(leases_to_recover=1)) == Recover()


def test_a_fence_around_a_claim_makes_its_leases_unknown():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.presence_lost(has_leases=False)
    machine.claimed(1, None, 0.0)
    machine.presence_regained()

    assert machine.plan(0.0, 5) == Recover()


def test_jobs_of_a_claim_are_checked_if_one_was_cancelled_meanwhile():
    machine = DispatchMachine()
    machine.cancelled_elsewhere()
    machine.plan(0.0, 5)
    assert not machine.claimed(5, None, 0.0)
    machine.plan(0.0, 5)
    machine.cancelled_elsewhere()

    assert machine.claimed(5, None, 0.0)


# -- stopping


def test_a_dispatcher_that_stops_settles_waits_for_the_last_attempt_and_ends():
    machine = DispatchMachine()
    machine.stop()

    assert machine.plan(0.0, 5, Pending(since=0.0, unfinished=True)) == Settle()
    machine.answered(0.0)
    assert machine.plan(0.0, 5, Pending(unfinished=True)) == Wait(math.inf)
    assert machine.plan(0.0, 5, Pending()) == Stop()


def test_a_dispatcher_that_stops_leaves_unknown_leases_to_the_very_end():
    machine = DispatchMachine()
    machine.failed(machine.plan(0.0, 5), 0.0, 1.0)
    machine.stop()

    assert machine.plan(0.1, 5) == Stop()
    assert machine.plan_rest(Pending(since=0.0)) == Settle()
    machine.answered(0.1)
    assert machine.plan_rest(Pending()) == Recover()
    machine.recovered()
    assert machine.plan_rest(Pending()) == Stop()


def test_leases_of_a_claim_whose_answer_was_not_read_are_recovered_before_the_next_claim():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claim_unknown(1.0)

    assert machine.plan(1.0, 5) == Recover()
    machine.recovered()
    assert isinstance(machine.plan(1.0, 5), ClaimRequest)
