"""AttemptMachine: an outcome is settled at most once and never dropped, whatever happens in whatever order."""

from collections.abc import Callable, Iterator

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trioboss.machines.attempt import (
    TRANSITIONS,
    Action,
    AttemptMachine,
    AttemptState,
    CancelReason,
    Completed,
    Event,
    Failed,
    ManualSettlement,
    Outcome,
)
from trioboss.model.settle_and_claim import Failure
from trioboss.model.states import JobState

COMPLETED = Completed('"output"')
FAILED = Failed(Failure('"an error"'), "an error")
MANUAL = ManualSettlement(JobState.COMPLETED, "")
TENTATIVE = ManualSettlement(JobState.COMPLETED, "tentative")
REPORTS = {
    Action.REPORT_SETTLED,
    Action.REPORT_MANUAL,
    Action.REPORT_UNANSWERED,
    Action.REPORT_REFUSED,
    Action.REPORT_LOST,
    Action.REPORT_LOST_AND_RECOVER,
}
LOST_ELSEWHERE = (CancelReason.CANCELLED, CancelReason.LEASE_LOST)


@attrs.define
class World:
    """An attempt with its slot, the completer and the database: each method is one step, and checks what must hold.

    The handler, the completer and the statement go their own ways: every step can come between any two others.
    """

    machine: AttemptMachine = attrs.field(factory=AttemptMachine)
    handler: str = "buffered"
    """buffered, running or ended"""
    outcome: str = "unknown"
    """unknown, waiting (in the completer) or sent (in a statement)"""
    first_cancel: CancelReason | None = None
    reports: list[Action] = attrs.field(factory=list)
    accepted: int = 0
    unanswered: int = 0

    def do(self, action: Action) -> None:
        if action is Action.CANCEL_HANDLER:
            assert self.handler == "running", "the scope belongs to another job"
            assert self.first_cancel is None
        elif action is Action.SETTLE:
            assert self.outcome != "waiting", "an outcome is in the completer twice"
            assert self.machine.outcome is not None
            self.outcome = "waiting"
        elif action in REPORTS:
            self.reports.append(action)

    # -- the slot and the handler

    def start(self) -> None:
        self.machine.started()
        self.handler = "running"

    def cancel(self, reason: CancelReason) -> None:
        state, known = self.machine.state, self.machine.reason
        uncancelled = self.machine.is_uncancelled
        action = self.machine.cancelled(reason)
        self.do(action)
        if action is Action.NOTHING:
            assert self.machine.state in (state, AttemptState.UNLEASED)
        elif self.machine.state is not state:
            assert uncancelled
            assert self.first_cancel is None
            self.first_cancel = reason
        assert known in (None, self.machine.reason), "a later reason has replaced the first one"

    def settle_manually(self, *, committed: bool) -> None:
        self.machine.settled_manually(MANUAL if committed else TENTATIVE, committed=committed)

    def roll_back(self) -> None:
        self.machine.rolled_back(TENTATIVE)
        assert self.machine.needs_lease

    def end(self, outcome: Outcome | None) -> None:
        self.handler = "ended"
        self.do(self.machine.ended(outcome))

    def give_up(self) -> None:
        self.do(self.machine.given_up())

    # -- the completer and the database

    def send(self) -> None:
        assert self.machine.sent() is self.machine.outcome
        self.outcome = "sent"

    def accept(self) -> None:
        assert self.accepted == 0, "the database has settled it twice"
        self.accepted += 1
        self.outcome = "done"
        self.do(self.machine.accepted())

    def refuse(self) -> None:
        self.outcome = "done"
        self.do(self.machine.refused())

    def lose_answer(self) -> None:
        self.outcome = "unknown"
        self.unanswered += 1
        self.do(self.machine.unanswered())

    def postpone(self) -> None:
        self.outcome = "unknown"
        self.do(self.machine.postponed())

    # -- what can happen, and what must be true

    def steps(self) -> Iterator[tuple[str, Callable[["World"], None]]]:
        """Every step that is possible now."""
        if self.handler == "buffered" and self.machine.state is AttemptState.BUFFERED:
            yield "start", World.start
        if self.handler == "buffered" and self.machine.state is not AttemptState.BUFFERED:
            yield "leave buffer", lambda world: world.end(None)
        for reason in CancelReason:
            yield reason, lambda world, reason=reason: world.cancel(reason)
        if self.handler != "buffered":  # also a thread that was left behind
            yield "tentative", lambda world: world.settle_manually(committed=False)
            yield "manual", lambda world: world.settle_manually(committed=True)
        if self.machine.state is AttemptState.TENTATIVE:
            yield "roll back", World.roll_back
        if self.handler == "running":
            yield "complete", lambda world: world.end(COMPLETED)
            yield "fail", lambda world: world.end(FAILED)
        if self.handler == "running" and self.machine.reason is not None:
            yield "obey", lambda world: world.end(None)
            yield "give up", World.give_up
        if self.outcome == "waiting":
            yield "send", World.send
            yield "superseded", World.refuse
        if self.outcome == "sent":
            yield "accept", World.accept
            yield "refuse", World.refuse
            yield "no answer", World.lose_answer
            yield "postpone", World.postpone

    def check(self) -> None:
        """The invariants after every step."""
        assert len(self.reports) <= 1, "counted twice"
        state = self.machine.state
        if state in (AttemptState.SETTLED, AttemptState.LOST):
            assert self.outcome not in ("waiting", "sent")
        if state is AttemptState.SETTLED:
            assert len(self.reports) == 1, "settled and not counted"
        if self.first_cancel in LOST_ELSEWHERE:
            assert self.outcome == "unknown", "the outcome of a lost lease is settled"

    def check_end(self) -> None:
        """The invariants when the handler has ended and nothing waits."""
        assert self.machine.state in (AttemptState.SETTLED, AttemptState.LOST)
        if self.first_cancel is CancelReason.CANCELLED:
            # The caller has cancelled the job itself; only a settlement by the handler itself is reported.
            assert self.reports in ([], [Action.REPORT_MANUAL])
        else:
            assert len(self.reports) == 1

    def finish(self) -> None:
        """Let everybody finish what is under way, in good order."""
        if self.handler == "buffered" and self.machine.state is AttemptState.BUFFERED:
            self.start()
        if self.handler != "ended":
            self.end(COMPLETED if self.handler == "running" else None)
        if self.outcome == "waiting":
            self.send()
        if self.outcome == "sent":
            self.accept()
        self.check()
        self.check_end()

    def key(self) -> tuple[object, ...]:
        machine = attrs.astuple(self.machine, recurse=False)
        return (machine, *(str(value) for value in attrs.astuple(self, recurse=False)[1:]))

    def copied(self) -> "World":
        machine = AttemptMachine()
        for field in attrs.fields(AttemptMachine):
            setattr(machine, field.name, getattr(self.machine, field.name))
        return attrs.evolve(self, machine=machine, reports=list(self.reports))


def explore() -> tuple[set[tuple[object, ...]], set[tuple[AttemptState, Event]]]:
    """Every state that some order of steps leads to, and every cell of the table that is used on the way."""
    seen: set[tuple[object, ...]] = set()
    cells: set[tuple[AttemptState, Event]] = set()
    frontier = [World()]
    while frontier:
        world = frontier.pop()
        if world.key() in seen:
            continue
        seen.add(world.key())
        world.copied().finish()
        for name, step in world.steps():
            after = world.copied()
            cells.add((world.machine.state, event_of(world, name)))
            step(after)
            after.check()
            if after.unanswered <= 2:
                frontier.append(after)
    return seen, cells


def event_of(world: World, step: str) -> Event:
    if step in ("refuse", "superseded"):
        return Event.REFUSE if world.machine.manual is None else Event.REFUSE_MANUAL
    return {
        "start": Event.START,
        "leave buffer": Event.END,
        "complete": Event.END,
        "fail": Event.END,
        "obey": Event.END,
        "give up": Event.GIVE_UP,
        "expired": Event.EXPIRE,
        "stopping": Event.STOP,
        "cancelled": Event.CANCEL,
        "lease_lost": Event.LOSE,
        "tentative": Event.TENTATIVE,
        "manual": Event.MANUAL,
        "roll back": Event.ROLL_BACK,
        "send": Event.SEND,
        "accept": Event.ACCEPT,
        "no answer": Event.NO_ANSWER,
        "postpone": Event.POSTPONE,
    }[step]


def test_in_every_order_of_events_an_outcome_is_settled_once_and_never_dropped():
    seen, _ = explore()

    assert len(seen) > 300


def test_the_table_has_a_cell_for_everything_that_can_happen_and_for_nothing_else():
    _, cells = explore()

    assert cells == {(state, event) for event, column in TRANSITIONS.items() for state in column}


class Attempting(RuleBasedStateMachine):
    """The same steps in long random orders, with many unanswered statements."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(data=st.data())
    def step(self, data: st.DataObject) -> None:
        steps = dict(self.world.steps())
        steps[data.draw(st.sampled_from(sorted(steps)))](self.world)

    @precondition(lambda self: self.world.outcome == "sent")
    @rule()
    def lose_answer(self) -> None:
        self.world.lose_answer()

    @invariant()
    def holds(self) -> None:
        self.world.check()

    @invariant()
    def could_finish(self) -> None:
        self.world.copied().finish()


TestAttempting = Attempting.TestCase
TestAttempting.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
