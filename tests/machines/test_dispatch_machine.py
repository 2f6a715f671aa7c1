"""DispatchMachine: no job is forgotten, and nobody is asked in vain too often."""

import math
from collections.abc import Callable, Iterator

from dispatch_world import World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trioboss.machines.dispatch import Ask, DispatchMachine, Rest

INTERVAL = 0.005
BURST = 10


# -- all orders of a few steps, so that none is missed


def enabled_steps(world: World, budget: dict[str, int]) -> Iterator[tuple[str, Callable[[World], None]]]:
    """What can happen next; what could go on for ever has a budget."""
    if budget["now"]:
        yield "now", lambda world: world.commit(0.0)
    if budget["later"]:
        yield "later", lambda world: world.commit(5.0)
    if budget["soon"]:
        yield "soon", lambda world: world.commit(2.0)
    if budget["retry"]:
        yield "retry", lambda world: world.commit(3.0, retry=True)
    if budget["wait"]:
        yield "wait", lambda world: setattr(world, "now", world.now + 6.0)
    for place in range(len(world.committed)):
        yield "", lambda world, place=place: world.read_mark(place)
    if world.words:
        yield "", World.hear
    if not world.hears:
        yield "", World.begin_survey if budget["bulk_poll"] else World.listen_again
    elif budget["gap"]:
        yield "gap", lambda world: world.lose_connection(crashed=True)
    if world.bulk_poll is not None:
        yield "", World.go_on_with_survey
    if world.ask is None:
        yield "", World.plan
    elif not world.mark_is_committed:
        yield "", World.commit_mark
    elif world.answer is None:
        yield "", World.claim
    else:
        yield "", World.get_answer
    if world.ask is not None and budget["failure"]:
        yield "failure", World.lose_answer


def explore(budget: dict[str, int]) -> int:
    """Visit every state that some order of steps leads to; whatever happened, it comes to rest well."""
    seen = set()
    world = World()
    if budget["bulk_poll"]:
        world.begin_survey()
    frontier = [(world, budget)]
    while frontier:
        world, budget = frontier.pop()
        key = (world.key(), *budget.values())
        if key in seen:
            continue
        seen.add(key)
        world.copied().settle()
        for cost, step in enabled_steps(world, budget):
            after = world.copied()
            step(after)
            frontier.append((after, budget | {cost: budget[cost] - 1} if cost else budget))
    return len(seen)


NOTHING = {"now": 0, "soon": 0, "later": 0, "retry": 0, "wait": 0, "gap": 0, "failure": 0, "bulk_poll": 0}


def test_no_order_of_steps_of_two_senders_and_a_dispatcher_loses_a_wake_up():
    assert explore(NOTHING | {"now": 1, "later": 1, "wait": 1}) > 250


def test_no_order_of_steps_makes_it_oversleep_the_sooner_of_two_deferred_jobs():
    assert explore(NOTHING | {"soon": 1, "later": 1}) > 100


def test_no_order_of_steps_makes_it_oversleep_the_retry_of_somebody_elses_job():
    assert explore(NOTHING | {"now": 1, "retry": 1, "wait": 1}) > 250


def test_no_order_of_steps_loses_a_wake_up_when_the_connection_drops():
    assert explore(NOTHING | {"now": 1, "later": 1, "gap": 1}) > 250


def test_no_order_of_steps_loses_a_wake_up_when_an_answer_gets_lost():
    assert explore(NOTHING | {"now": 1, "later": 1, "failure": 1}) > 250


def test_no_order_of_steps_loses_a_wake_up_when_somebody_else_looks_first():
    assert explore(NOTHING | {"now": 1, "later": 1, "bulk_poll": 1}) > 250


def test_no_order_of_steps_loses_a_wake_up_when_the_connection_drops_while_somebody_else_looks():
    assert explore(NOTHING | {"now": 1, "gap": 1, "failure": 1, "bulk_poll": 1}) > 250


# -- random orders of many steps


class Dispatching(RuleBasedStateMachine):
    """Backlogs, floods and forged words, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(seconds=st.sampled_from([0.001, 0.06, 1.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(delay=st.sampled_from([0.0, 0.5, 40.0]), count=st.sampled_from([1, 9]), retry=st.booleans())
    def commit(self, delay: float, count: int, retry: bool) -> None:
        for _ in range(count):
            self.world.commit(delay, retry=retry)

    @precondition(lambda self: self.world.committed)
    @rule()
    def read_mark(self) -> None:
        self.world.read_mark()

    @precondition(lambda self: self.world.words)
    @rule()
    def hear(self) -> None:
        self.world.hear()

    @rule(delay=st.sampled_from([None, 0.0, 0.5, math.inf, math.nan, -1.0]))
    def hear_forged_word(self, delay: float | None) -> None:
        self.world.machine.ring(self.world.now, delay)

    @precondition(lambda self: self.world.hears)
    @rule(crashed=st.booleans(), fenced=st.booleans())
    def lose_connection(self, crashed: bool, fenced: bool) -> None:
        self.world.lose_connection(crashed=crashed)
        if fenced:
            self.world.machine.fence()

    @precondition(lambda self: not self.world.hears)
    @rule()
    def listen_again(self) -> None:
        self.world.listen_again()

    @rule()
    def begin_survey(self) -> None:
        self.world.begin_survey()

    @precondition(lambda self: self.world.bulk_poll)
    @rule()
    def go_on_with_survey(self) -> None:
        self.world.go_on_with_survey()

    @rule(room=st.integers(0, 3))
    def dispatch(self, room: int) -> None:
        world = self.world
        if world.ask is None:
            world.room = room
            world.plan()
        elif not world.mark_is_committed:
            world.commit_mark()
        elif world.answer is None:
            world.claim()
        else:
            world.get_answer()

    @precondition(lambda self: self.world.ask is not None)
    @rule(chance=st.floats(0, 1))
    def lose_answer(self, chance: float) -> None:
        self.world.lose_answer(chance)

    @invariant()
    def asks_once_at_a_time(self) -> None:
        if self.world.ask is not None:
            assert self.world.machine.plan(self.world.now, 3) == Rest(math.inf)

    @invariant()
    def could_come_to_rest(self) -> None:
        self.world.copied().settle()


TestDispatching = Dispatching.TestCase
TestDispatching.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


# -- one by one


def fall_asleep(machine: DispatchMachine, now: float = 0.0) -> None:
    while isinstance(machine.plan(now, 5), Ask):
        machine.claimed(0, None, now)


def test_the_first_claim_makes_ripe_jobs_ready_and_leaves_its_mark():
    machine = DispatchMachine()

    assert machine.plan(0.0, 5) == Ask(5, promote_due=True, idle=True, find_next_due=True)


def test_one_fruitless_claim_behind_the_mark_is_enough_to_sleep():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(0, None, 0.0)

    assert machine.plan(0.0, 5) == Rest(math.inf)


def test_a_ring_wakes_and_needs_no_second_mark():
    machine = DispatchMachine()
    fall_asleep(machine)
    machine.ring(1.0)

    assert machine.plan(1.0, 5) == Ask(5, promote_due=False, idle=None, find_next_due=True)


def test_a_ring_for_a_ready_job_needs_no_look_for_what_is_due():
    machine = DispatchMachine()
    fall_asleep(machine)
    machine.ring(1.0, delay=0.0)

    assert machine.plan(1.0, 5) == Ask(5, promote_due=False, idle=None, find_next_due=False)


def test_a_claim_that_did_not_look_forgets_nothing_that_is_due():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 5.0, 10.0)
    machine.ring(11.0, delay=0.0)
    machine.plan(11.0, 5)
    machine.ring(11.0, delay=2.0)
    machine.claimed(1, None, 11.0)

    assert machine.plan(11.0, 5) == Rest(13.0)
    assert machine.plan(13.0, 5) == Ask(5, promote_due=True, idle=None, find_next_due=True)


def test_a_job_that_changed_under_the_hands_of_a_claim_is_looked_for_at_once():
    machine = DispatchMachine()
    fall_asleep(machine)
    machine.ring(1.0, delay=0.0)
    machine.plan(1.0, 5)
    machine.claimed(1, 0.0, 1.0)

    assert machine.plan(1.0, 5) == Ask(5, promote_due=True, idle=None, find_next_due=True)


def test_while_senders_are_spared_it_looks_for_what_is_due_each_ten_milliseconds():
    machine = DispatchMachine()
    looks = []
    for millisecond in range(40):
        now = millisecond / 1000
        ask = machine.plan(now, 5)
        assert isinstance(ask, Ask)
        if ask.find_next_due:
            looks.append(millisecond)
        machine.claimed(5, None, now)

    assert looks == [0, 2, 12, 22, 32]


def test_a_full_claim_is_followed_by_another_at_once():
    machine = DispatchMachine()
    machine.plan(0.0, 5)
    machine.claimed(5, None, 0.0)

    assert isinstance(machine.plan(0.0, 5), Ask)


def test_after_two_full_claims_senders_are_spared_and_before_sleeping_they_are_told_again():
    machine = DispatchMachine()
    marks = []
    for count in (5, 5, 5, 5, 3, 0):
        ask = machine.plan(0.0, 5)
        assert isinstance(ask, Ask)
        marks.append(ask.idle)
        machine.claimed(count, None, 0.0)

    assert marks == [True, None, False, None, None, True]
    assert machine.plan(0.0, 5) == Rest(math.inf)


def test_before_it_sleeps_after_a_rush_it_looks_for_what_is_due_however_short_the_rush_was():
    machine = DispatchMachine()
    for count in (5, 5, 5, 3):
        machine.plan(0.0, 5)
        machine.claimed(count, None, 0.0)

    assert machine.plan(0.0, 5) == Ask(5, promote_due=False, idle=True, find_next_due=True)


def test_it_sleeps_exactly_until_the_next_deferred_job_is_due():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 2.5, 10.0)

    assert machine.plan(10.0, 5) == Rest(12.5)
    assert machine.plan(12.5, 5) == Ask(5, promote_due=True, idle=None, find_next_due=True)


def test_a_deferred_job_that_is_announced_during_a_claim_is_not_forgotten():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.ring(10.0, delay=3.0)
    machine.claimed(0, None, 10.1)

    assert machine.plan(10.1, 5) == Rest(13.0)


def test_a_deferred_job_that_is_announced_moves_the_alarm_forward_only():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 5.0, 10.0)
    machine.ring(10.0, delay=7.0)
    assert machine.plan(10.0, 5) == Rest(15.0)
    machine.ring(10.0, delay=1.0)

    assert machine.plan(10.0, 5) == Rest(11.0)


def test_without_room_it_waits_for_room():
    machine = DispatchMachine()

    assert machine.plan(0.0, 0) == Rest(math.inf, for_room=True)


def test_a_deferred_job_that_comes_due_while_there_is_no_room_waits_for_room():
    machine = DispatchMachine()
    machine.plan(10.0, 5)
    machine.claimed(0, 2.0, 10.0)

    assert machine.plan(12.0, 0) == Rest(math.inf, for_room=True)
    assert machine.plan(13.0, 1) == Ask(1, promote_due=True, idle=None, find_next_due=True)


def test_a_flood_of_words_costs_ten_claims_and_then_one_in_five_milliseconds():
    machine = DispatchMachine()
    asked: list[float] = []
    for millisecond in range(2000):
        now = millisecond / 1000
        machine.ring(now)
        if isinstance(machine.plan(now, 5), Ask):
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
    assert machine.plan(0.0, 5) == Rest(INTERVAL)
    for _ in range(BURST):
        machine.ring(1.0)
        assert isinstance(machine.plan(1.0, 5), Ask)
        machine.claimed(0, None, 1.0)


def test_words_for_jobs_that_the_last_claim_had_brought_already_hold_no_claim_back():
    machine = DispatchMachine()
    for _ in range(1000):
        for found in (1, 0):
            machine.ring(0.0)
            assert isinstance(machine.plan(0.0, 5), Ask)
            machine.claimed(found, None, 0.0)


def test_claims_that_find_jobs_are_never_held_back():
    machine = DispatchMachine()
    for _ in range(1000):
        assert isinstance(machine.plan(0.0, 5), Ask)
        machine.claimed(5, None, 0.0)


def test_claims_that_fail_are_repeated_later_and_later_each_at_its_own_time():
    machine = DispatchMachine()
    now, delays = 0.0, []
    for chance in (1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        assert isinstance(machine.plan(now, 5), Ask)
        machine.failed(now, chance)
        rest = machine.plan(now, 5)
        assert isinstance(rest, Rest)
        delays.append(round(rest.until - now, 6))
        now = rest.until

    assert delays == [0.1, 0.2, 0.2, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert machine.plan(now, 5) == Ask(5, promote_due=True, idle=True, find_next_due=True)


def test_a_fenced_dispatcher_asks_for_nothing_until_it_is_seen_again():
    machine = DispatchMachine()
    fall_asleep(machine)
    machine.fence()
    machine.ring(1.0)
    assert machine.plan(1.0, 5) == Rest(math.inf)
    machine.unfence()

    assert machine.plan(1.0, 5) == Ask(5, promote_due=False, idle=True, find_next_due=True)


def test_an_outage_may_last_for_days():
    machine = DispatchMachine()
    for _ in range(5000):
        machine.failed(0.0, 1.0)

    assert machine.retry_at == 10.0


def test_outcomes_wait_like_claims_do_while_the_database_fails():
    machine = DispatchMachine()
    machine.failed(5.0, 1.0)
    assert machine.retry_at == 5.1
    machine.answered(6.0)

    assert machine.retry_at == -math.inf


def test_what_has_ended_is_settled_at_once_where_no_claim_is_waiting():
    assert DispatchMachine().settles_at(Rest(math.inf), ended_at=7.0) <= 7.0


def test_what_has_ended_waits_a_moment_for_a_claim_that_lacks_only_room():
    machine = DispatchMachine()

    assert machine.settles_at(Rest(math.inf, for_room=True), ended_at=7.0) == 7.005


def test_what_ended_during_an_exchange_gives_the_next_claim_its_chance():
    machine = DispatchMachine()
    machine.answered(8.0)

    assert machine.settles_at(Rest(math.inf, for_room=True), ended_at=7.0) == 8.005


def test_company_is_no_reason_to_ask_a_database_that_fails():
    machine = DispatchMachine()
    machine.failed(8.0, 1.0)

    assert machine.settles_at(Rest(math.inf, for_room=True), ended_at=7.0) == machine.retry_at
