"""A world for DispatchMachine: a queue, its senders, the channel, and the exchange with the database, step by step.

Each method is one step that can happen between any two others. `settle` lets everybody finish what they began and
then says what must be true: whatever could run was claimed, and the machine will be awake when the rest is due.
"""

import copy
import math
from typing import Literal

import attrs

from trioboss.machines.dispatch import Ask, DispatchMachine

PATIENCE = 11.0  # seconds: no pause after a failure is longer


@attrs.define
class Word:
    """In how many seconds there is a job, counted from when that was said; None: look for yourself."""

    delay: float | None
    said_at: float


@attrs.define
class Job:
    """A job that is committed, and what its sender can say of it."""

    due: float
    retry: bool
    deferred: bool

    def word(self, now: float) -> Word:
        """As wake.sql words it. Who fails a job says nothing of when it will be tried again."""
        if self.retry or (self.deferred and self.due <= now):
            return Word(None, now)
        return Word(max(0.0, self.due - now), now)


@attrs.define
class World:
    """Everything besides the machine is what the database and the network do, according to their manuals."""

    machine: DispatchMachine = attrs.field(factory=DispatchMachine)
    now: float = 100.0
    room: int = 2
    # -- in the database: jobs made ready, others by when they are due, and the dispatcher's mark
    ready: int = 0
    deferred: list[float] = attrs.field(factory=list)
    marked: bool = False
    # -- jobs that are committed, whose senders have yet to read the mark
    committed: list[Job] = attrs.field(factory=list)
    # -- on the channel
    words: list[Word] = attrs.field(factory=list)
    hears: bool = True
    # -- the exchange under way
    ask: Ask | None = None
    mark_is_committed: bool = False
    answer: tuple[int, float | None] | None = None
    claimed_at: float = 0.0
    # -- the bulk_poll under way: what is done of it, and what it saw
    bulk_poll: Literal["begun", "marked", "looked"] | None = None
    surveyed_due: float | None = None
    surveyed_at: float = 0.0
    slack: float = 0.0
    """How long a word or an answer took at most: by so much a deferred job may start too late."""

    # -- senders: commit, read the mark, and ring if it is set

    def commit(self, delay: float, *, retry: bool = False) -> None:
        if delay:
            self.deferred.append(self.now + delay)
        else:
            self.ready += 1
        self.committed.append(Job(self.now + delay, retry, delay > 0))

    def read_mark(self, place: int = 0) -> None:
        job = self.committed.pop(place)
        if self.marked and self.hears:
            self.words.append(job.word(self.now))

    def hear(self) -> None:
        word = self.words.pop(0)
        self.slack = max(self.slack, self.now - word.said_at)
        self.machine.ring(self.now, word.delay)

    # -- the listener: while it is down words are lost, and after a crash of the server the mark is, too

    def lose_connection(self, *, crashed: bool) -> None:
        self.hears = False
        self.words.clear()
        if crashed:
            self.marked = False

    def listen_again(self) -> None:
        self.hears = True
        self.machine.unfence()

    # -- a bulk_poll instead of a look of its own: marks, looks, and tells; a new one takes the place of the last

    def begin_survey(self) -> None:
        self.hears = True
        self.bulk_poll = "begun"
        self.machine.await_bulk_poll()

    def go_on_with_survey(self) -> None:
        if self.bulk_poll == "begun":
            self.marked, self.bulk_poll = True, "marked"
        elif self.bulk_poll == "marked":
            waits = [0.0] * self.ready + [max(0.0, due - self.now) for due in self.deferred]
            self.surveyed_due, self.surveyed_at = min(waits, default=None), self.now
            self.bulk_poll = "looked"
        else:
            self.slack = max(self.slack, self.now - self.surveyed_at)
            self.machine.bulk_polled(self.now, self.surveyed_due)
            self.bulk_poll = None

    # -- the dispatcher: plan, commit the mark, claim, get the answer

    def plan(self) -> None:
        plan = self.machine.plan(self.now, self.room)
        if isinstance(plan, Ask):
            assert 0 < plan.limit <= self.room
            assert not self.machine.fenced
            self.ask, self.mark_is_committed, self.answer = plan, False, None

    def commit_mark(self) -> None:
        assert self.ask is not None
        if self.ask.idle is not None:
            self.marked = self.ask.idle
        self.mark_is_committed = True

    def claim(self) -> None:
        assert self.ask is not None
        if self.ask.promote_due:
            self.ready += sum(due <= self.now for due in self.deferred)
            self.deferred = [due for due in self.deferred if due > self.now]
        count = min(self.ready, self.ask.limit)
        self.ready -= count
        next_due = (
            max(0.0, min(self.deferred) - self.now) if self.deferred and self.ask.find_next_due else None
        )
        self.answer, self.claimed_at = (count, next_due), self.now

    def get_answer(self) -> None:
        assert self.answer is not None
        self.slack = max(self.slack, self.now - self.claimed_at)
        self.room -= self.answer[0]
        self.machine.claimed(*self.answer, self.now)
        self.ask = self.answer = None

    def lose_answer(self, chance: float = 1.0) -> None:
        """The claim may have been made all the same: what it took is queued again before the next one."""
        if self.answer is not None:
            self.ready += self.answer[0]
        self.machine.failed(self.now, chance)
        self.ask = self.answer = None

    # -- what must hold

    def settle(self) -> None:
        if not self.hears:
            self.listen_again()
        for _ in range(200):
            self._finish_exchange()
            while self.bulk_poll is not None:
                self.go_on_with_survey()
            while self.committed:
                self.read_mark()
            while self.words:
                self.hear()
            self.room = 2
            rest = self.machine.plan(self.now, self.room)
            if isinstance(rest, Ask):
                self.ask, self.mark_is_committed, self.answer = rest, False, None
            elif self.machine.may_have_jobs and rest.until <= self.now + PATIENCE:
                self.now = max(self.now, rest.until)
            else:
                break
        else:
            raise AssertionError("does not come to rest")
        assert self.ready == 0, "a job that can run was forgotten"
        assert rest.until <= min(self.deferred, default=math.inf) + self.slack + 1e-6, "it will oversleep"
        assert self.marked, "senders do not know that it sleeps"
        assert not rest.for_room

    def _finish_exchange(self) -> None:
        if self.ask is None:
            return
        if not self.mark_is_committed:
            self.commit_mark()
        if self.answer is None:
            self.claim()
        self.get_answer()

    def copied(self) -> "World":
        return copy.deepcopy(self)

    def key(self) -> tuple[object, ...]:
        fields = attrs.astuple(self)
        return tuple(str(field) for field in fields)
