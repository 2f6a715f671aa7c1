"""A world for DispatchMachine: a queue, its senders, the channel, the slots, and the database, step by step.

Each method is one step that can happen between any two others. `come_to_rest` lets everybody finish what they have
begun and then checks what must be true: every job that can run was claimed, every outcome is settled, no lease is
unknown, and the machine will wake up when the next deferred job is due.
"""

import copy
import math
from typing import Literal

import attrs

from trioboss.machines.dispatch import DispatchMachine
from trioboss.machines.dispatch_commands import DatabaseCommand, Pending, Recover, Stop, Wait
from trioboss.model.settle_and_claim import ClaimRequest, Position

LONGEST_PAUSE = 11.0  # seconds: no pause after a failure is longer
CAPACITY = 2  # jobs that can run at once


@attrs.define
class Notification:
    """In how many seconds there is a job, counted from when it was sent; None: anything may have changed."""

    delay: float | None
    sent_at: float


@attrs.define
class Sent:
    """A job that is committed, and whose sender has yet to read the idle marker."""

    due: float
    retry: bool
    deferred: bool

    def notification(self, now: float) -> Notification:
        """As notify_idle.sql makes it. The notification after a failure does not tell when the job is tried again."""
        if self.retry or (self.deferred and self.due <= now):
            return Notification(None, now)
        return Notification(max(0.0, self.due - now), now)


@attrs.define
class Outcome:
    """The end of an attempt, in the completer."""

    id: int
    attempt: int
    fails: bool
    since: float


@attrs.define
class World:
    """Everything besides the machine is what the database, the network and the slots do."""

    machine: DispatchMachine = attrs.field(factory=DispatchMachine)
    now: float = 100.0
    # -- in the database: ready jobs, deferred ones by when they are due, the worker's leases, and its idle marker
    ready: list[int] = attrs.field(factory=list)
    deferred: list[tuple[float, int]] = attrs.field(factory=list)
    leases: dict[int, int] = attrs.field(factory=dict)
    """The attempt of each leased job."""
    attempts: dict[int, int] = attrs.field(factory=dict)
    behind: list[int] = attrs.field(factory=list)
    """Jobs of a keyed queue that wait for the one in front of them to be settled."""
    marker: bool = False
    # -- senders that have committed, and the channel
    senders: list[Sent] = attrs.field(factory=list)
    notifications: list[Notification] = attrs.field(factory=list)
    is_connected: bool = True
    # -- in the worker: attempts that run, outcomes that wait, and leases that were given up
    running: dict[int, int] = attrs.field(factory=dict)
    outcomes: list[Outcome] = attrs.field(factory=list)
    leases_to_recover: int = 0
    extra_room: int = 0
    """Room that other queues take, if negative."""
    # -- the statement under way: what it carries, how far it is, and what it found
    statement: DatabaseCommand | None = None
    carried: list[Outcome] = attrs.field(factory=list)
    known: list[int] = attrs.field(factory=list)
    is_marked: bool = False
    is_executed: bool = False
    found: tuple[list[int], float | None] = ((), None)  # type: ignore[assignment]
    executed_at: float = 0.0
    # -- the bulk poll under way
    bulk_poll: Literal["begun", "marked", "polled"] | None = None
    polled_due: float | None = None
    polled_at: float = 0.0
    has_stopped: bool = False
    slack: float = 0.0
    """How long a notification or an answer took at most: a deferred job may start so much too late."""

    # -- senders: commit, read the marker, and notify if it is set

    def commit(self, delay: float, *, retry: bool = False, behind: bool = False) -> None:
        id = len(self.attempts)
        self.attempts[id] = 0
        if behind and (self.ready or self.leases):
            self.behind.append(id)  # nobody is notified: it cannot run yet
            return
        if delay:
            self.deferred.append((self.now + delay, id))
        else:
            self.ready.append(id)
        self.senders.append(Sent(self.now + delay, retry, delay > 0))

    def read_marker(self, place: int = 0) -> None:
        sent = self.senders.pop(place)
        if self.marker and self.is_connected:
            self.notifications.append(sent.notification(self.now))

    def receive(self) -> None:
        notification = self.notifications.pop(0)
        self.slack = max(self.slack, self.now - notification.sent_at)
        self.machine.ring(self.now, notification.delay)

    # -- the listener: while it is disconnected notifications are lost; a crash of the server loses the marker

    def disconnect(self, *, crashed: bool) -> None:
        self.is_connected = False
        self.notifications.clear()
        if crashed:
            self.marker = False

    def lose_presence(self) -> None:
        """The listener stayed away for too long: all attempts are given up."""
        self.machine.presence_lost(has_leases=bool(self.running))
        for id in list(self.running):
            self.give_up(id)

    def reconnect(self) -> None:
        self.is_connected = True
        self.machine.presence_regained()

    # -- a bulk poll instead of a claim: it marks, polls, and tells; a new one takes the place of the last

    def begin_bulk_poll(self) -> None:
        self.is_connected = True
        self.bulk_poll = "begun"
        self.machine.await_bulk_poll()

    def continue_bulk_poll(self) -> None:
        if self.bulk_poll == "begun":
            self.marker, self.bulk_poll = True, "marked"
        elif self.bulk_poll == "marked":
            waits = [0.0] * len(self.ready) + [max(0.0, due - self.now) for due, _ in self.deferred]
            self.polled_due, self.polled_at = min(waits, default=None), self.now
            self.bulk_poll = "polled"
        else:
            self.slack = max(self.slack, self.now - self.polled_at)
            self.machine.bulk_polled(self.now, self.polled_due)
            self.bulk_poll = None

    # -- slots: attempts end, or are given up

    def end(self, id: int, *, fails: bool = False) -> None:
        self.outcomes.append(Outcome(id, self.running.pop(id), fails, self.now))

    def give_up(self, id: int) -> None:
        del self.running[id]
        self.leases_to_recover += 1

    # -- the dispatcher: plan, set the marker, execute, get the answer

    @property
    def room(self) -> int:
        return CAPACITY - len(self.running) + self.extra_room

    def pending(self) -> Pending:
        return Pending(
            self.outcomes[0].since if self.outcomes else None,
            any(outcome.fails for outcome in self.outcomes),
            self.leases_to_recover,
            bool(self.running),
        )

    def plan(self) -> Wait | Stop | None:
        """Ask the machine; return its command, unless it is a statement."""
        command = self.machine.plan(self.now, self.room, self.pending())
        if isinstance(command, Stop):
            assert not self.running, "it stops although attempts run"
            assert not self.outcomes, "it stops although outcomes wait"
        if isinstance(command, Wait | Stop):
            return command
        self.begin(command)
        return None

    def begin(self, statement: DatabaseCommand) -> None:
        if isinstance(statement, ClaimRequest):
            assert 0 < statement.limit <= self.room
            assert not self.machine.is_absent
            assert not self.has_stopped, "a dispatcher that stops has claimed"
            assert not self.unknown_leases(), "it claims although it has leases that it does not know of"
        if isinstance(statement, Recover):
            self.known = [*self.running, *(outcome.id for outcome in self.outcomes)]
        else:
            self.carried, self.outcomes = self.outcomes, []
        self.statement, self.is_marked, self.is_executed = statement, False, False

    def unknown_leases(self) -> set[int]:
        """Leases in the database that belong to nothing in the worker."""
        here = {(outcome.id, outcome.attempt) for outcome in self.outcomes} | set(self.running.items())
        return {id for id, attempt in self.leases.items() if (id, attempt) not in here}

    def set_marker(self) -> None:
        if isinstance(self.statement, ClaimRequest) and self.statement.idle is not None:
            self.marker = self.statement.idle
        self.is_marked = True

    def execute(self) -> None:
        """In the database: settle, then claim."""
        if isinstance(self.statement, Recover):
            for id in [id for id in self.leases if id not in self.known]:
                del self.leases[id]
                self.ready.append(id)
        for outcome in self.carried:
            self._settle(outcome)
        if isinstance(self.statement, ClaimRequest):
            self._claim(self.statement)
        self.is_executed, self.executed_at = True, self.now

    def _settle(self, outcome: Outcome) -> None:
        if self.leases.get(outcome.id) != outcome.attempt:
            return  # the fence: it was settled before, or leased again
        del self.leases[outcome.id]
        if outcome.fails:
            self.ready.append(outcome.id)
        elif self.behind:
            self.ready.append(self.behind.pop(0))

    def _claim(self, claim: ClaimRequest) -> None:
        if claim.promote_due:
            self.ready += [id for due, id in self.deferred if due <= self.now]
            self.deferred = [(due, id) for due, id in self.deferred if due > self.now]
        # In the order of sending, which the ids are.
        first = 0 if claim.after is None else claim.after.seq + 1
        claimed = sorted(id for id in self.ready if id >= first)[: claim.limit]
        self.ready = [id for id in self.ready if id not in claimed]
        for id in claimed:
            self.attempts[id] += 1
            self.leases[id] = self.attempts[id]
        dues = [due for due, _ in self.deferred]
        next_due = max(0.0, min(dues) - self.now) if dues and claim.find_next_due else None
        self.found = (claimed, next_due)

    def get_answer(self, *, keyed: bool = False, slow: bool = False) -> None:
        """``slow``: the claim has passed over many entries of jobs that were claimed before."""
        assert self.is_executed
        self.slack = max(self.slack, self.now - self.executed_at)
        if isinstance(self.statement, ClaimRequest):
            claimed, next_due = self.found
            self.running |= {id: self.leases[id] for id in claimed}
            self.machine.claimed(len(claimed), next_due, self.now, keyed=keyed, took=1.0 if slow else 0.0)
            if self.machine.goes_onward:
                self.machine.claimed_until(Position(0, claimed[-1]) if claimed else None)
        elif isinstance(self.statement, Recover):
            self.machine.recovered()
        else:
            self.machine.answered(self.now)
        self.statement, self.carried = None, []

    def lose_answer(self, chance: float = 1.0) -> None:
        """The statement may have been executed all the same."""
        assert self.statement is not None
        self.outcomes += self.carried
        self.machine.failed(self.statement, self.now, chance)
        self.statement, self.carried = None, []

    def stop(self) -> None:
        self.has_stopped = True
        self.machine.stop()

    # -- what must hold

    def come_to_rest(self, *, keyed: bool = False) -> None:
        if not self.is_connected:
            self.reconnect()
        self.extra_room = 0
        for _ in range(200):
            self._finish_all(keyed=keyed)
            command = self.plan()
            if isinstance(command, Wait) and self._goes_on(command):
                self.now = max(self.now, command.until)
            elif command is not None:
                break
        else:
            raise AssertionError("does not come to rest")
        if self.has_stopped:
            assert isinstance(command, Stop)
            self._settle_rest()
        assert not self.outcomes, "an outcome was dropped"
        assert not self.leases, "a lease is unknown"
        if not self.has_stopped:
            self._check_rest(command)

    def _finish_all(self, *, keyed: bool) -> None:
        self._finish_statement(keyed=keyed)
        while self.bulk_poll is not None:
            self.continue_bulk_poll()
        while self.senders:
            self.read_marker()
        while self.notifications:
            self.receive()
        for id in list(self.running):
            self.end(id)

    def _goes_on(self, wait: Wait) -> bool:
        busy = self.machine.may_have_jobs or self.outcomes or self.machine.goes_onward
        return bool(busy) and wait.until <= self.now + LONGEST_PAUSE

    def _finish_statement(self, *, keyed: bool = False) -> None:
        if self.statement is None:
            return
        if not self.is_marked:
            self.set_marker()
        if not self.is_executed:
            self.execute()
        self.get_answer(keyed=keyed)

    def _settle_rest(self) -> None:
        while not isinstance(command := self.machine.plan_rest(self.pending()), Stop):
            self.begin(command)
            self._finish_statement()

    def _check_rest(self, command: object) -> None:
        assert isinstance(command, Wait)
        assert not self.ready, "a job that can run was forgotten"
        assert not self.behind, "a job that waited for another was forgotten"
        first = min((due for due, _ in self.deferred), default=math.inf)
        assert command.until <= first + self.slack + 1e-6, "a deferred job will start too late"
        assert self.marker, "senders do not see the idle marker"
        assert not command.for_room

    def copied(self) -> "World":
        return copy.deepcopy(self)

    def key(self) -> tuple[object, ...]:
        return tuple(str(field) for field in attrs.astuple(self, recurse=False))
