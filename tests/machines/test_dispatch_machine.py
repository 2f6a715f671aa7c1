"""DispatchMachine, decision by decision: what it claims, when it settles, how long it waits."""

import math

from trioboss.machines.dispatch import DispatchMachine
from trioboss.machines.dispatch_commands import Recover, Settle, Wait
from trioboss.model.settle_and_claim import ClaimRequest

INTERVAL = 0.005
BURST = 10
CLAIM = ClaimRequest(5, promote_due=True, idle=True, find_next_due=True)


def become_idle(machine: DispatchMachine, now: float = 0.0) -> None:
    while isinstance(machine.plan(now, 5), ClaimRequest):
        machine.claimed(0, None, now)


def test_the_first_claim_promotes_due_jobs_and_sets_the_idle_marker():
    machine = DispatchMachine()

    assert machine.plan(0.0, 5) == ClaimRequest(5, promote_due=True, idle=True, find_next_due=True)


def test_one_fruitless_claim_after_the_marker_is_enough_to_wait():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(0, None, 0.0)

    assert machine.plan(0.0, 5) == Wait(math.inf)


def test_a_notification_needs_no_second_marker():
    machine = DispatchMachine()
    become_idle(machine)
    machine.ring(1.0)

    assert machine.plan(1.0, 5) == ClaimRequest(5, promote_due=False, idle=None, find_next_due=True)


def test_a_notification_of_a_ready_job_needs_no_question_for_the_next_due_time():
    machine = DispatchMachine()
    become_idle(machine)
    machine.ring(1.0, delay=0.0)

    assert machine.plan(1.0, 5) == ClaimRequest(5, promote_due=False, idle=None, find_next_due=False)


def test_a_claim_that_did_not_ask_for_the_next_due_time_forgets_none():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 5.0, 10.0)
    machine.ring(11.0, delay=0.0)
    machine.plan(11.0, 5)
    machine.ring(11.0, delay=2.0)
    machine.claimed(1, None, 11.0)

    assert machine.plan(11.0, 5) == Wait(13.0)
    assert machine.plan(13.0, 5) == ClaimRequest(5, promote_due=True, idle=None, find_next_due=True)


def test_a_job_that_became_due_during_a_claim_is_claimed_at_once():
    machine = DispatchMachine()
    become_idle(machine)
    machine.ring(1.0, delay=0.0)
    machine.plan(1.0, 5)
    machine.claimed(1, 0.0, 1.0)

    assert machine.plan(1.0, 5) == ClaimRequest(5, promote_due=True, idle=None, find_next_due=True)


def test_while_senders_do_not_notify_the_next_due_time_is_asked_for_every_ten_milliseconds():
    machine = DispatchMachine()
    asked = []
    for millisecond in range(40):
        now = millisecond / 1000
        claim = machine.plan(now, 5)
        assert isinstance(claim, ClaimRequest)
        if claim.find_next_due:
            asked.append(millisecond)
        machine.claimed(5, None, now)

    assert asked == [0, 2, 12, 22, 32]


def test_a_full_claim_is_followed_by_another_at_once():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(5, None, 0.0)

    assert isinstance(machine.plan(0.0, 5), ClaimRequest)


def test_after_two_full_claims_the_marker_is_removed_and_before_waiting_it_is_set_again():
    machine = DispatchMachine()
    markers = []
    for count in (5, 5, 5, 5, 3, 0):
        claim = machine.plan(0.0, 5)
        assert isinstance(claim, ClaimRequest)
        markers.append(claim.idle)
        machine.claimed(count, None, 0.0)

    assert markers == [True, None, False, None, None, True]
    assert machine.plan(0.0, 5) == Wait(math.inf)


def test_before_it_waits_again_it_asks_for_the_next_due_time_however_shortly_it_was_saturated():
    machine = DispatchMachine()
    for count in (5, 5, 5, 3):
        machine.plan(0.0, 5)
        machine.claimed(count, None, 0.0)

    assert machine.plan(0.0, 5) == ClaimRequest(5, promote_due=False, idle=True, find_next_due=True)


def test_it_waits_exactly_until_the_next_deferred_job_is_due():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 2.5, 10.0)

    assert machine.plan(10.0, 5) == Wait(12.5)
    assert machine.plan(12.5, 5) == ClaimRequest(5, promote_due=True, idle=None, find_next_due=True)


def test_a_deferred_job_that_is_notified_during_a_claim_is_not_forgotten():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.ring(10.0, delay=3.0)
    machine.claimed(0, None, 10.1)

    assert machine.plan(10.1, 5) == Wait(13.0)


def test_a_notification_of_a_deferred_job_never_moves_the_alarm_back():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 5.0, 10.0)
    machine.ring(10.0, delay=7.0)
    assert machine.plan(10.0, 5) == Wait(15.0)
    machine.ring(10.0, delay=1.0)

    assert machine.plan(10.0, 5) == Wait(11.0)


def test_without_room_it_waits_for_room():
    machine = DispatchMachine()

    assert machine.plan(0.0, 0) == Wait(math.inf, for_room=True)


def test_a_deferred_job_that_comes_due_while_there_is_no_room_waits_for_room():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 2.0, 10.0)

    assert machine.plan(12.0, 0) == Wait(math.inf, for_room=True)
    assert machine.plan(13.0, 1) == ClaimRequest(1, promote_due=True, idle=None, find_next_due=True)


def test_a_flood_of_notifications_costs_ten_claims_and_then_one_in_five_milliseconds():
    machine = DispatchMachine()
    asked: list[float] = []
    for millisecond in range(2000):
        now = millisecond / 1000
        machine.ring(now)
        if isinstance(machine.plan(now, 5), ClaimRequest):
            machine.claimed(0, None, now)
            asked.append(now)

    assert asked[:BURST] == [i / 1000 for i in range(BURST)]
    assert 300 <= len(asked) <= BURST + 2 / INTERVAL + 1


def test_after_a_quiet_second_a_few_claims_are_free_again():
    machine = DispatchMachine()
    for _ in range(BURST):
        machine.ring(0.0)
        machine.plan(0.0, 5)
        machine.claimed(0, None, 0.0)
    machine.ring(0.0)
    assert machine.plan(0.0, 5) == Wait(INTERVAL)
    for _ in range(BURST):
        machine.ring(1.0)
        assert isinstance(machine.plan(1.0, 5), ClaimRequest)
        machine.claimed(0, None, 1.0)


def test_notifications_of_jobs_that_the_last_claim_has_brought_delay_no_claim():
    machine = DispatchMachine()
    for _ in range(1000):
        for found in (1, 0):
            machine.ring(0.0)
            assert isinstance(machine.plan(0.0, 5), ClaimRequest)
            machine.claimed(found, None, 0.0)


def test_claims_that_find_jobs_are_never_delayed():
    machine = DispatchMachine()
    for _ in range(1000):
        assert isinstance(machine.plan(0.0, 5), ClaimRequest)
        machine.claimed(5, None, 0.0)


def recover_and_claim(machine: DispatchMachine, now: float) -> ClaimRequest:
    command = machine.plan(now, 5)
    if isinstance(command, Recover):
        machine.recovered()
        command = machine.plan(now, 5)
    assert isinstance(command, ClaimRequest)
    return command


def test_claims_that_fail_are_repeated_later_and_later_each_at_its_own_time():
    machine = DispatchMachine()
    now, delays = 0.0, []
    for chance in (1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        machine.failed(recover_and_claim(machine, now), now, chance)
        wait = machine.plan(now, 5)
        assert isinstance(wait, Wait)
        delays.append(round(wait.until - now, 6))
        now = wait.until

    assert delays == [0.1, 0.2, 0.2, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert recover_and_claim(machine, now) == CLAIM


def test_a_dispatcher_whose_presence_is_lost_claims_nothing_until_it_is_connected_again():
    machine = DispatchMachine()
    become_idle(machine)
    machine.presence_lost(has_leases=False)
    machine.ring(1.0)
    assert machine.plan(1.0, 5) == Wait(math.inf)
    machine.presence_regained()

    assert machine.plan(1.0, 5) == ClaimRequest(5, promote_due=False, idle=True, find_next_due=True)


def test_an_outage_may_last_for_days():
    machine = DispatchMachine()
    for _ in range(5000):
        machine.failed(Settle(), 0.0, 1.0)

    assert machine.retry_at == 10.0
