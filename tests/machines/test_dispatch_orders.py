"""DispatchMachine: in no order of events a job is forgotten, an outcome dropped, or a lease left unknown."""

import math
from collections.abc import Callable, Iterator

from dispatch_world import World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trioboss.machines.dispatch_commands import Wait
from trioboss.model.settle_and_claim import ClaimRequest

Step = Callable[[World], None]

NOTHING = dict.fromkeys(
    (
        "now",
        "soon",
        "later",
        "retry",
        "behind",
        "wait",
        "gap",
        "failure",
        "bulk_poll",
        "end",
        "fail",
        "lose",
        "stop",
    ),
    0,
)


# -- all orders of a few steps, so that none is missed


def steps_of_others(world: World, budget: dict[str, int]) -> Iterator[tuple[str, Step]]:
    """The possible next steps of senders, the network and the clock; a step that may be repeated has a budget."""
    if budget["now"]:
        yield "now", lambda world: world.commit(0.0)
    if budget["later"]:
        yield "later", lambda world: world.commit(5.0)
    if budget["soon"]:
        yield "soon", lambda world: world.commit(2.0)
    if budget["retry"]:
        yield "retry", lambda world: world.commit(3.0, retry=True)
    if budget["behind"]:
        yield "behind", lambda world: world.commit(0.0, behind=True)
    if budget["wait"]:
        yield "wait", lambda world: setattr(world, "now", world.now + 6.0)
    for place in range(len(world.senders)):
        yield "", lambda world, place=place: world.read_marker(place)
    if world.notifications:
        yield "", World.receive
    if not world.is_connected:
        yield "", World.begin_bulk_poll if budget["bulk_poll"] else World.reconnect
    elif budget["gap"]:
        yield "gap", lambda world: world.disconnect(crashed=True)
    if world.bulk_poll is not None:
        yield "", World.continue_bulk_poll


def steps_of_the_worker(
    world: World, budget: dict[str, int], *, keyed: bool, slow: bool
) -> Iterator[tuple[str, Step]]:
    """The possible next steps of the slots and the dispatcher."""
    for id in world.running:
        if budget["end"]:
            yield "end", lambda world, id=id: world.end(id)
        if budget["fail"]:
            yield "fail", lambda world, id=id: world.end(id, fails=True)
        if budget["lose"]:
            yield "lose", lambda world, id=id: world.give_up(id)
    if budget["stop"]:
        yield "stop", World.stop
    if world.statement is None:
        yield "", lambda world: (world.plan(), None)[1]
    elif not world.is_marked:
        yield "", World.set_marker
    elif not world.is_executed:
        yield "", World.execute
    else:
        yield "", lambda world: world.get_answer(keyed=keyed, slow=slow)
    if world.statement is not None and budget["failure"]:
        yield "failure", World.lose_answer


def explore(keyed: bool = False, slow: bool = False, **budget: int) -> int:
    """Visit every state that some order of steps leads to; from each the world comes to rest well."""
    seen = set()
    world = World()
    whole = NOTHING | budget
    if whole["bulk_poll"]:
        world.begin_bulk_poll()
    frontier = [(world, whole)]
    while frontier:
        world, left = frontier.pop()
        key = (world.key(), *left.values())
        if key in seen:
            continue
        seen.add(key)
        world.copied().come_to_rest(keyed=keyed)
        steps = [*steps_of_others(world, left), *steps_of_the_worker(world, left, keyed=keyed, slow=slow)]
        for cost, step in steps:
            after = world.copied()
            step(after)
            frontier.append((after, left | {cost: left[cost] - 1} if cost else left))
    return len(seen)


def test_no_order_of_steps_of_two_senders_and_a_dispatcher_loses_a_wake_up():
    assert explore(now=1, later=1, wait=1) > 250


def test_in_no_order_of_steps_the_sooner_of_two_deferred_jobs_starts_too_late():
    assert explore(soon=1, later=1) > 100


def test_in_no_order_of_steps_the_retry_of_another_workers_job_starts_too_late():
    assert explore(now=1, retry=1, wait=1) > 250


def test_no_order_of_steps_loses_a_wake_up_when_the_connection_drops():
    assert explore(now=1, later=1, gap=1) > 250


def test_no_order_of_steps_loses_a_wake_up_when_an_answer_is_lost():
    assert explore(now=1, later=1, failure=1) > 250


def test_no_order_of_steps_loses_a_wake_up_when_the_bulk_poller_polls_first():
    assert explore(now=1, later=1, bulk_poll=1) > 250


def test_no_order_of_steps_loses_a_wake_up_when_the_connection_drops_during_a_bulk_poll():
    assert explore(now=1, gap=1, failure=1, bulk_poll=1) > 250


def test_in_no_order_of_steps_an_outcome_is_dropped_or_a_lease_left_unknown_when_answers_are_lost():
    assert explore(now=2, fail=1, end=1, failure=1) > 2500


def test_in_no_order_of_steps_a_lease_that_was_given_up_stays_in_the_database():
    assert explore(now=1, lose=1, end=1, failure=1) > 250


def test_in_no_order_of_steps_a_job_that_waits_behind_another_is_forgotten():
    assert explore(keyed=True, now=1, behind=1, end=1, failure=1) > 250


def test_in_no_order_of_steps_a_job_is_forgotten_before_the_position_where_slow_claims_begin():
    assert explore(keyed=True, slow=True, now=2, fail=1, wait=1) > 250


def test_in_every_order_of_steps_a_dispatcher_that_stops_claims_nothing_and_settles_everything():
    assert explore(now=1, end=1, lose=1, failure=1, stop=1) > 250


# -- random orders of many steps


class Dispatching(RuleBasedStateMachine):
    """Backlogs, floods and forged notifications, in any order."""

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

    @precondition(lambda self: self.world.senders)
    @rule()
    def read_marker(self) -> None:
        self.world.read_marker()

    @precondition(lambda self: self.world.notifications)
    @rule()
    def receive(self) -> None:
        self.world.receive()

    @rule(delay=st.sampled_from([None, 0.0, 0.5, math.inf, math.nan, -1.0]))
    def receive_forged_notification(self, delay: float | None) -> None:
        self.world.machine.ring(self.world.now, delay)

    @precondition(lambda self: self.world.is_connected)
    @rule(crashed=st.booleans(), absent=st.booleans())
    def disconnect(self, crashed: bool, absent: bool) -> None:
        self.world.disconnect(crashed=crashed)
        if absent:
            self.world.lose_presence()

    @precondition(lambda self: not self.world.is_connected)
    @rule()
    def reconnect(self) -> None:
        self.world.reconnect()

    @rule()
    def begin_bulk_poll(self) -> None:
        self.world.begin_bulk_poll()

    @precondition(lambda self: self.world.bulk_poll)
    @rule()
    def continue_bulk_poll(self) -> None:
        self.world.continue_bulk_poll()

    @precondition(lambda self: self.world.running)
    @rule(fails=st.booleans())
    def end(self, fails: bool) -> None:
        self.world.end(next(iter(self.world.running)), fails=fails)

    @precondition(lambda self: self.world.running)
    @rule()
    def give_up(self) -> None:
        self.world.give_up(next(iter(self.world.running)))

    @rule(extra_room=st.integers(-2, 1), slow=st.booleans())
    def dispatch(self, extra_room: int, slow: bool) -> None:
        world = self.world
        if world.statement is None:
            world.extra_room = extra_room
            world.plan()
        elif not world.is_marked:
            world.set_marker()
        elif not world.is_executed:
            world.execute()
        else:
            world.get_answer(slow=slow)

    @precondition(lambda self: self.world.statement is not None)
    @rule(chance=st.floats(0, 1))
    def lose_answer(self, chance: float) -> None:
        self.world.lose_answer(chance)

    @invariant()
    def one_statement_at_a_time(self) -> None:
        if isinstance(self.world.statement, ClaimRequest):
            assert self.world.copied().machine.plan(self.world.now, 3) == Wait(math.inf)

    @invariant()
    def could_come_to_rest(self) -> None:
        self.world.copied().come_to_rest()


TestDispatching = Dispatching.TestCase
TestDispatching.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
