"""Collects what has ended in one queue, and keeps it until the database has it."""

from collections.abc import Iterator, Mapping
from typing import Literal
from uuid import UUID

import attrs

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import Completed, Failed, Outcome, Released
from trioboss.actors.running import ByHand, CancelReason, Running, superseded
from trioboss.events import JobCompleted, JobFailed, JobReleased, LeaseLostEvent
from trioboss.model.job import Lease
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState

__all__ = ["Completer", "waited"]

_NOTHING = Settlements()


@attrs.define(eq=False)
class Completer:
    """The completer in which slots put outcomes, and from which the dispatcher takes them to the database.

    Nothing is dropped on the way: what could not be settled is put back, and goes with the next exchange.
    """

    _bell: Doorbell
    _reporter: Reporter
    completed: int = attrs.field(default=0, init=False)
    failed: int = attrs.field(default=0, init=False)
    lost: int = attrs.field(default=0, init=False)
    _waiting: list[Running] = attrs.field(factory=list, init=False)
    has_failures: bool = attrs.field(default=False, init=False)
    """Something in it may be tried again."""
    _lost_any: bool = attrs.field(default=False, init=False)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __iter__(self) -> Iterator[Running]:
        return iter(self._waiting)

    @property
    def waits_since(self) -> float:
        """When the first of those in it ended."""
        return self._waiting[0].ended_at

    def put(self, running: Running, outcome: Outcome, now: float) -> None:
        """Take an outcome. What is settled already, or is nobody's any more, needs nothing."""
        if running.by_hand is not None and running.settled:
            self._settled_by_hand(running, now)
        elif outcome is not None and not running.settled:
            running.settle(outcome, now)
            self._waiting.append(running)
            if type(outcome) is not Completed:
                self.has_failures = True
        elif running.reason is CancelReason.LEASE_LOST:
            self._lost_any = True
            self._lost_on_the_way(running, now)
        self._bell.ring()

    def _settled_by_hand(self, running: Running, now: float) -> None:
        """By a verb, and for certain: counted once, although a handler that got stuck may still come to its end."""
        if running.outcome is None:
            running.ended_at = now
            self.settled([running], {})

    def _lost_on_the_way(self, running: Running, now: float) -> None:
        """Given up before its end: counted once, although a handler that got stuck may still come to its end."""
        if not running.ended_at:
            running.ended_at = now
            self._report_lost(running, "its lease was lost while it ran")

    def take_lost(self) -> bool:
        """Whether leases were given up as lost since this was asked last."""
        lost, self._lost_any = self._lost_any, False
        return lost

    def take(self) -> tuple[list[Running], Settlements]:
        """All that waits, and the same for the database. An attempt that a later one has outrun is lost here."""
        if not self._waiting:
            return [], _NOTHING
        entries, self._waiting = self._waiting, []
        self.has_failures = False
        for running in superseded(entries):
            entries.remove(running)
            self.settled([running], {})
        completed: list[tuple[Lease, str]] = []
        failed: list[tuple[Lease, Failure]] = []
        released: list[Lease] = []
        for running in entries:
            outcome = running.outcome
            if isinstance(outcome, Completed):
                completed.append((running.lease, outcome.output))
            elif isinstance(outcome, Failed):
                failed.append((running.lease, outcome.failure))
            else:
                released.append(running.lease)
        return entries, Settlements(completed, failed, released)

    def put_back(self, entries: list[Running]) -> None:
        """The database did not answer: it may or may not have settled these."""
        for running in entries:
            running.unsure = True
        self._waiting += entries
        self.has_failures = bool(self._waiting)

    def settled(self, entries: list[Running], states: Mapping[UUID, JobState]) -> None:
        """The database has answered: count and report what became of each."""
        tell = self._reporter.wants(JobCompleted)
        for running in entries:
            state = states.get(running.job.id)
            if state is None and running.by_hand is not None:
                state = running.by_hand.state
                running.outcome = _as_outcome(running.by_hand)
            if state is JobState.COMPLETED:
                self.completed += 1
                if tell:
                    self._report_completed(running)
            else:
                self._report(running, state)

    def _report_completed(self, running: Running) -> None:
        job = running.job
        ran = running.ended_at - running.started
        self._reporter.report(JobCompleted(job.queue, job.id, job.attempt, waited(running), ran))

    def _report(self, running: Running, state: JobState | None) -> None:
        job, outcome = running.job, running.outcome
        if isinstance(outcome, Released):
            self._reporter.report(JobReleased(job.queue, job.id, job.attempt))
        elif state is None and running.unsure:
            # Its first answer got lost, and with it whether that was the one that settled the job.
            self.completed += isinstance(outcome, Completed)
            self.failed += isinstance(outcome, Failed)
        elif state is None:
            self._report_lost(running, "its lease had ended when its outcome came")
        elif isinstance(outcome, Failed):
            self.failed += 1
            ran = running.ended_at - running.started
            end: Literal["failed", "retry"] = "failed" if state is JobState.FAILED else "retry"
            event = JobFailed(job.queue, job.id, job.attempt, waited(running), ran, outcome.error, end)
            self._reporter.report(event)

    def _report_lost(self, running: Running, reason: str) -> None:
        self.lost += 1
        job = running.job
        self._reporter.report(LeaseLostEvent(job.queue, job.id, job.attempt, reason))


def _as_outcome(by_hand: ByHand) -> Outcome:
    if by_hand.state is JobState.COMPLETED:
        return Completed("null")
    return Failed(Failure(None), by_hand.error)


def waited(running: Running) -> float:
    """Seconds from when the job could have started until it did: to its claim by the database's clock, then by ours."""
    job = running.job
    unclaimed = (running.lease.started_on - max(job.start_after, job.created_on)).total_seconds()
    return max(0.0, unclaimed) + max(0.0, running.started - running.began)
