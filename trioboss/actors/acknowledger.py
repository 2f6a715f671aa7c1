"""Collects what has ended in one queue, and keeps it until the database has it."""

from typing import Literal
from uuid import UUID

import attrs
import trio

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import Completed, Failed, Outcome, Released
from trioboss.actors.running import Running
from trioboss.events import JobCompleted, JobFailed, JobReleased, LeaseLostEvent
from trioboss.model.exchange import Settlements
from trioboss.model.states import JobState

__all__ = ["Acknowledger"]


@attrs.define(eq=False)
class Acknowledger:
    """The tray in which slots put outcomes, and from which the dispatcher takes them to the database.

    Nothing is dropped on the way: what could not be settled is put back, and goes with the next exchange.
    """

    _bell: Doorbell
    _reporter: Reporter
    completed: int = attrs.field(default=0, init=False)
    failed: int = attrs.field(default=0, init=False)
    lost: int = attrs.field(default=0, init=False)
    _waiting: dict[UUID, tuple[Running, Outcome, float]] = attrs.field(factory=dict, init=False)
    _unsure: set[UUID] = attrs.field(factory=set, init=False)
    """Settled once already, but the answer got lost."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, running: Running, outcome: Outcome) -> None:
        """Take an outcome. What is settled already, or is nobody's any more, needs nothing."""
        if outcome is not None and not running.settled:
            running.settled = True
            self._waiting[running.job.id] = (running, outcome, trio.current_time())
        self._bell.ring()

    def take(self) -> tuple[list[tuple[Running, Outcome, float]], Settlements]:
        """All that waits, and the same for the database."""
        entries = list(self._waiting.values())
        self._waiting.clear()
        return entries, Settlements(
            [(r.lease, o.output) for r, o, _ in entries if isinstance(o, Completed)],
            [(r.lease, o.failure) for r, o, _ in entries if isinstance(o, Failed)],
            [r.lease for r, o, _ in entries if isinstance(o, Released)],
        )

    def put_back(self, entries: list[tuple[Running, Outcome, float]]) -> None:
        """The database did not answer: it may or may not have settled these."""
        for entry in entries:
            self._waiting[entry[0].job.id] = entry
            self._unsure.add(entry[0].job.id)

    def settled(self, entries: list[tuple[Running, Outcome, float]], states: dict[UUID, JobState]) -> None:
        """The database has answered: report what became of each."""
        for running, outcome, ended in entries:
            self._report(running, outcome, ended - running.started, states.get(running.job.id))

    def _report(self, running: Running, outcome: Outcome, ran: float, state: JobState | None) -> None:
        job = running.job
        unsure = job.id in self._unsure
        self._unsure.discard(job.id)
        if isinstance(outcome, Released):
            if self._reporter.wants(JobReleased):
                self._reporter.report(JobReleased(job.queue, job.id, job.attempt))
        elif state is None and not unsure:
            self.lost += 1
            reason = "its lease had ended when its outcome came"
            self._reporter.report(LeaseLostEvent(job.queue, job.id, job.attempt, reason))
        elif isinstance(outcome, Completed):
            self.completed += 1
            if self._reporter.wants(JobCompleted):
                self._reporter.report(JobCompleted(job.queue, job.id, job.attempt, waited(running), ran))
        elif isinstance(outcome, Failed):
            self.failed += 1
            end: Literal["failed", "retry"] = "failed" if state is JobState.FAILED else "retry"
            self._reporter.report(
                JobFailed(job.queue, job.id, job.attempt, waited(running), ran, outcome.error, end)
            )


def waited(running: Running) -> float:
    """Seconds from when the job could have started to its claim, by the database's clock."""
    job = running.job
    return max(0.0, (running.lease.started_on - max(job.start_after, job.created_on)).total_seconds())
