"""DispatchMachine, decision by decision: what it claims, when it settles, how long it waits."""

import math

from trioboss.machines.dispatch import Claim, DispatchMachine, Pending, Recover, Settle, Stop, Wait

INTERVAL = 0.005
BURST = 10
CLAIM = Claim(5, promote_due=True, idle=True, find_next_due=True)


def become_idle(machine: DispatchMachine, now: float = 0.0) -> None:
    while isinstance(machine.plan(now, 5), Claim):
        machine.claimed(0, None, now)


def test_the_first_claim_promotes_due_jobs_and_sets_the_idle_marker():
    machine = DispatchMachine()

    assert machine.plan(0.0, 5) == Claim(5, promote_due=True, idle=True, find_next_due=True)


def test_one_fruitless_claim_after_the_marker_is_enough_to_wait():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(0, None, 0.0)

    assert machine.plan(0.0, 5) == Wait(math.inf)


def test_a_notification_needs_no_second_marker():
    machine = DispatchMachine()
    become_idle(machine)
    machine.ring(1.0)

    assert machine.plan(1.0, 5) == Claim(5, promote_due=False, idle=None, find_next_due=True)


def test_a_notification_of_a_ready_job_needs_no_question_for_the_next_due_time():
    machine = DispatchMachine()
    become_idle(machine)
    machine.ring(1.0, delay=0.0)

    assert machine.plan(1.0, 5) == Claim(5, promote_due=False, idle=None, find_next_due=False)


def test_a_claim_that_did_not_ask_for_the_next_due_time_forgets_none():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 5.0, 10.0)
    machine.ring(11.0, delay=0.0)
    machine.plan(11.0, 5)
    machine.ring(11.0, delay=2.0)
    machine.claimed(1, None, 11.0)

    assert machine.plan(11.0, 5) == Wait(13.0)
    assert machine.plan(13.0, 5) == Claim(5, promote_due=True, idle=None, find_next_due=True)


def test_a_job_that_became_due_during_a_claim_is_claimed_at_once():
    machine = DispatchMachine()
    become_idle(machine)
    machine.ring(1.0, delay=0.0)
    machine.plan(1.0, 5)
    machine.claimed(1, 0.0, 1.0)

    assert machine.plan(1.0, 5) == Claim(5, promote_due=True, idle=None, find_next_due=True)


def test_while_senders_do_not_notify_the_next_due_time_is_asked_for_every_ten_milliseconds():
    machine = DispatchMachine()
    asked = []
    for millisecond in range(40):
        now = millisecond / 1000
        claim = machine.plan(now, 5)
        assert isinstance(claim, Claim)
        if claim.find_next_due:
            asked.append(millisecond)
        machine.claimed(5, None, now)

    assert asked == [0, 2, 12, 22, 32]


def test_a_full_claim_is_followed_by_another_at_once():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(5, None, 0.0)

    assert isinstance(machine.plan(0.0, 5), Claim)


def test_after_two_full_claims_the_marker_is_removed_and_before_waiting_it_is_set_again():
    machine = DispatchMachine()
    markers = []
    for count in (5, 5, 5, 5, 3, 0):
        claim = machine.plan(0.0, 5)
        assert isinstance(claim, Claim)
        markers.append(claim.idle)
        machine.claimed(count, None, 0.0)

    assert markers == [True, None, False, None, None, True]
    assert machine.plan(0.0, 5) == Wait(math.inf)


def test_before_it_waits_again_it_asks_for_the_next_due_time_however_shortly_it_was_saturated():
    machine = DispatchMachine()
    for count in (5, 5, 5, 3):
        machine.plan(0.0, 5)
        machine.claimed(count, None, 0.0)

    assert machine.plan(0.0, 5) == Claim(5, promote_due=False, idle=True, find_next_due=True)


def test_it_waits_exactly_until_the_next_deferred_job_is_due():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 2.5, 10.0)

    assert machine.plan(10.0, 5) == Wait(12.5)
    assert machine.plan(12.5, 5) == Claim(5, promote_due=True, idle=None, find_next_due=True)


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
    assert machine.plan(13.0, 1) == Claim(1, promote_due=True, idle=None, find_next_due=True)


def test_a_flood_of_notifications_costs_ten_claims_and_then_one_in_five_milliseconds():
    machine = DispatchMachine()
    asked: list[float] = []
    for millisecond in range(2000):
        now = millisecond / 1000
        machine.ring(now)
        if isinstance(machine.plan(now, 5), Claim):
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
        assert isinstance(machine.plan(1.0, 5), Claim)
        machine.claimed(0, None, 1.0)


def test_notifications_of_jobs_that_the_last_claim_has_brought_delay_no_claim():
    machine = DispatchMachine()
    for _ in range(1000):
        for found in (1, 0):
            machine.ring(0.0)
            assert isinstance(machine.plan(0.0, 5), Claim)
            machine.claimed(found, None, 0.0)


def test_claims_that_find_jobs_are_never_delayed():
    machine = DispatchMachine()
    for _ in range(1000):
        assert isinstance(machine.plan(0.0, 5), Claim)
        machine.claimed(5, None, 0.0)


def recover_and_claim(machine: DispatchMachine, now: float) -> Claim:
    command = machine.plan(now, 5)
    if isinstance(command, Recover):
        machine.recovered()
        command = machine.plan(now, 5)
    assert isinstance(command, Claim)
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

    assert machine.plan(1.0, 5) == Claim(5, promote_due=False, idle=True, find_next_due=True)


def test_an_outage_may_last_for_days():
    machine = DispatchMachine()
    for _ in range(5000):
        machine.failed(Settle(), 0.0, 1.0)

    assert machine.retry_at == 10.0


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
    assert machine.plan(7.005, 0, Pending(since=7.0)) == Settle(for_room=True)


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

    assert isinstance(machine.plan(7.0, 5, Pending(since=7.0, frees_jobs=True)), Claim)


def test_a_dispatcher_of_a_keyed_queue_claims_with_every_outcome():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(1, None, 0.0, keyed=True)

    assert isinstance(machine.plan(7.0, 5, Pending(since=7.0)), Claim)


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

    assert machine.plan(1.0, 5, Pending(given_up=1)) == Recover()
    machine.recovered()
    become_idle(machine, 1.0)
    assert machine.plan(1.0, 5, Pending(given_up=1)) == Wait(math.inf)


def test_a_lease_that_is_given_up_during_a_recovery_is_recovered_by_another():
    machine = DispatchMachine()
    become_idle(machine)
    machine.plan(1.0, 5, Pending(given_up=1))
    machine.presence_lost(has_leases=True)
    machine.recovered()
    machine.presence_regained()

    assert machine.plan(1.0, 5, Pending(given_up=1)) == Recover()


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
    assert isinstance(machine.plan(1.0, 5), Claim)
