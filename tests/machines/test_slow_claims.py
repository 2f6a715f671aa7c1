"""DispatchMachine while claims are slow, because of an old snapshot: they begin where the last one ended."""

import math

from trioboss.machines.dispatch import DispatchMachine
from trioboss.machines.dispatch_commands import Wait
from trioboss.model.settle_and_claim import ClaimRequest, Position


def saturate(machine: DispatchMachine) -> None:
    """Two full claims in a row, both fast."""
    for _ in range(2):
        machine.plan(0.0, 5)
        machine.claimed(5, None, 0.0)


def claim_slowly(machine: DispatchMachine, now: float, *, keyed: bool = False) -> None:
    claim = machine.plan(now, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after is None
    machine.claimed(5, None, now, keyed=keyed, took=0.1)
    machine.claimed_until(Position(0, 5, 3))


def test_claims_after_a_slow_one_begin_where_it_ended_for_four_times_as_long():
    machine = DispatchMachine()
    saturate(machine)
    claim_slowly(machine, 0.0)

    claim = machine.plan(0.1, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after == Position(0, 5, 3)
    machine.claimed(5, None, 0.1, took=0.001)
    machine.claimed_until(Position(0, 10))
    claim = machine.plan(0.39, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after == Position(0, 10, 3)
    machine.claimed(5, None, 0.39, took=0.001)
    claim = machine.plan(0.4, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after is None


def test_a_claim_of_many_jobs_may_take_longer_before_it_counts_as_slow():
    machine = DispatchMachine()
    machine.plan(0.0, 1000)
    machine.claimed(1000, None, 0.0, took=0.03)

    assert not machine.goes_onward


def test_a_claim_without_keys_that_begins_onward_and_is_not_full_is_followed_by_one_from_the_beginning():
    machine = DispatchMachine()
    saturate(machine)
    claim_slowly(machine, 0.0)
    machine.plan(0.1, 5)
    machine.claimed(0, None, 0.1)

    claim = machine.plan(0.1, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after is None


def test_a_claim_with_keys_that_begins_onward_and_is_not_full_waits_to_begin_anew():
    machine = DispatchMachine(has_marker=True, keyed=True)
    claim_slowly(machine, 0.0, keyed=True)
    machine.plan(0.1, 5)
    machine.claimed(1, None, 0.1, keyed=True)
    machine.claimed_until(Position(0, 2))

    assert machine.plan(0.1, 5) == Wait(0.4)
    machine.ring(0.2)
    claim = machine.plan(0.2, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after == Position(0, 5, 3)


def test_a_claim_that_found_nothing_is_not_repeated_however_slow_it_was():
    machine = DispatchMachine(has_marker=True, keyed=True)
    machine.plan(0.0, 5)
    machine.claimed(0, None, 0.0, keyed=True, took=1.0)

    assert machine.plan(0.0, 5) == Wait(math.inf)


def test_a_claim_that_failed_is_followed_by_one_from_the_beginning():
    machine = DispatchMachine()
    saturate(machine)
    claim_slowly(machine, 0.0)
    machine.failed(machine.plan(0.1, 5), 0.1, 0.0)
    machine.plan(0.2, 5)
    machine.recovered()

    claim = machine.plan(0.2, 5)
    assert isinstance(claim, ClaimRequest)
    assert claim.after is None
