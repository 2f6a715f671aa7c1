"""Collects the outcomes of one queue until the database has them, and reports what became of each."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal
from uuid import UUID

import attrs

from trioboss.actors.actor import Doorbell
from trioboss.actors.attempts import Running, superseded
from trioboss.actors.reporter import Reporter
from trioboss.errors import LeaseLost
from trioboss.events import (
    JobCancelled,
    JobCompleted,
    JobFailed,
    JobReleased,
    LateError,
    LeaseLostEvent,
    QueueWarning,
)
from trioboss.machines.attempt import Action, Completed, Failed, Outcome, Released
from trioboss.machines.dispatch_commands import Pending
from trioboss.machines.settling import MOST_ROWS, SettleMachine
from trioboss.model.described_error import is_instance
from trioboss.model.job import Lease
from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState

__all__ = ["Completer"]

_NOTHING = Settlements()
_NONE_REJECTED: Mapping[UUID, str] = {}

_DROPPED_OUTPUT = (
    "the output that it returned is dropped; pass it to job.complete(output), also within job.transaction"
)


@attrs.define(eq=False)
class Completer:
    """Slots put attempts in when their handlers end; the dispatcher takes those that wait into one statement, as many
    as it can hold.

    No outcome is dropped: those of a statement that was not answered wait here again.
    """

    _bell: Doorbell
    _reporter: Reporter
    completed: int = attrs.field(default=0, init=False)
    failed: int = attrs.field(default=0, init=False)
    lost: int = attrs.field(default=0, init=False)
    last_ended: Running | None = attrs.field(default=None, init=False)
    """The last attempt that was settled."""
    last_error: tuple[str, float] | None = attrs.field(default=None, init=False)
    """The last failure, and when it was."""
    _waiting: list[Running] = attrs.field(factory=list, init=False)
    _postponed: list[Running] = attrs.field(factory=list, init=False)
    """Outcomes that could not be settled because of another open transaction. They have a statement of their own, so
    that no other outcome waits with them.
    """
    _machine: SettleMachine = attrs.field(factory=SettleMachine, init=False)
    _frees_jobs: bool = attrs.field(default=False, init=False)
    """Settling may make a job ready: a failed or released one is queued again."""
    _leases_to_recover: int = attrs.field(default=0, init=False)
    """How many leases this process has ended, so far, that may still be in the database, and have to be recovered."""

    def __iter__(self) -> Iterator[Running]:
        return chain(self._waiting, self._postponed)

    def pending(self, *, unfinished: bool) -> Pending:
        """The facts for the dispatcher's machine. ``unfinished``: further attempts will come."""
        since = self._waiting[0].ended_at if self._waiting else None
        postponed_until = self._machine.postponed_until
        return Pending(since, self._frees_jobs, self._leases_to_recover, unfinished, postponed_until)

    def put(self, running: Running, action: Action, now: float) -> None:
        """Take an attempt about which something has to be settled, counted or reported."""
        if action is Action.SETTLE:
            running.ended_at = now
            self._waiting.append(running)
            if type(running.outcome) is not Completed:
                self._frees_jobs = True
        elif action is not Action.NOTHING:
            running.ended_at = now
            self._report(running, action, None)
        # Also if nothing is left to settle: a dispatcher that stops waits for the last of its attempts to end.
        self._bell.ring()

    def take(self) -> tuple[list[Running], Settlements]:
        """The first of those that wait, as many as fit into one statement: as attempts, and as the values for it."""
        if not self._waiting:
            return [], _NOTHING
        fitting = self._machine.count_fitting(
            [_size_of(running.outcome) for running in self._waiting[:MOST_ROWS]]
        )
        # In the order in which they ended: none waits for ever behind later ones.
        entries, self._waiting = self._waiting[:fitting], self._waiting[fitting:]
        # The rest may be completed jobs only, whose settlement makes no job ready.
        self._frees_jobs = any(type(running.outcome) is not Completed for running in self._waiting)
        return entries, self._send(entries)

    def take_postponed(self) -> tuple[list[Running], Settlements]:
        """Those that were postponed, in the same form."""
        entries, self._postponed = self._postponed, []
        self._machine.postponed_taken()
        # Marked: the store settles these without waiting for a lock, or it would wait as long as before.
        return entries, attrs.evolve(self._send(entries), postponed=True)

    def retry_postponed(self) -> None:
        """Let those that were postponed wait with the others, so that the next statement tries them once more."""
        self._waiting += self._postponed
        self._postponed = []
        self._machine.postponed_taken()

    def _send(self, entries: list[Running]) -> Settlements:
        for running in superseded(entries):
            entries.remove(running)
            self._report(running, running.refused(), None)
        completed: list[tuple[Lease, str]] = []
        failed: list[tuple[Lease, Failure]] = []
        released: list[Lease] = []
        for running in entries:
            outcome = running.sent()
            if isinstance(outcome, Completed):
                completed.append((running.lease, outcome.output))
            elif isinstance(outcome, Failed):
                failed.append((running.lease, outcome.failure))
            else:
                released.append(running.lease)
        return Settlements(completed, failed, released)

    def unanswered(self, entries: list[Running]) -> None:
        """The database did not answer: the attempts of the statement wait for the next one."""
        for running in entries:
            running.unanswered()
        # Whether the database has settled them is unknown. Fenced, a second settlement of the same lease changes
        # nothing.
        self._waiting += entries
        # As if each freed a job: if the statement was executed, failed ones are queued again already.
        self._frees_jobs = bool(self._waiting)
        self._machine.unanswered()

    def answered(
        self,
        entries: list[Running],
        states: Mapping[UUID, JobState],
        rejected: Mapping[UUID, str] = _NONE_REJECTED,
    ) -> None:
        """The database has answered, with the states of the jobs that it has settled. ``rejected``: jobs whose outcome
        it did not accept, by id, with the reason; these were failed instead.
        """
        self._machine.answered()
        if entries:
            self.last_ended = entries[-1]
        # Asked once for all: most programs read no such events, and each would be an object for every job.
        reports_completed = self._reporter.has_reader(JobCompleted)
        for running in entries:
            state = states.get(running.job.id)
            if state is JobState.COMPLETED:
                running.accepted()
                self.completed += 1
                if reports_completed:
                    self._report_completed(running)
            elif state is not None and running.job.id in rejected:
                running.accepted()
                self._report_failed(running, f"rejected by the database: {rejected[running.job.id]}", state)
            elif state is not None or type(running.outcome) is Released:
                # The answer does not show whether the job was released, or had been settled elsewhere before: then it
                # needs no release.
                self._report(running, running.accepted(), state)
            else:
                self._report(running, running.refused(), None)

    def postpone(self, entries: list[Running], now: float, *, again: bool) -> None:
        """The database has not settled these: each would have to wait for another transaction. ``again``: they were
        postponed before, so no warning is reported.
        """
        self._machine.postpone(now, again=again)
        for running in entries:
            running.postponed()
            self._postponed.append(running)
            if not again:
                job = running.job
                reason = "has changed it, or is sending another job of its singleton key, and is still open"
                message = f"job {job.id} has ended; its outcome waits for a transaction that {reason}"
                self._reporter.report(QueueWarning(job.queue, "postponed", message))

    def _report(self, running: Running, action: Action, state: JobState | None) -> None:
        match action:
            case Action.REPORT_SETTLED:
                self._report_settled(running, state)
            case Action.REPORT_MANUAL:
                self._report_manual(running)
            case Action.REPORT_UNANSWERED:
                # No event: nothing shows whether the first statement has settled it, or somebody else.
                self.completed += isinstance(running.outcome, Completed)
                self.failed += isinstance(running.outcome, Failed)
            case Action.REPORT_REFUSED:
                self._report_lost(running, "its lease had ended when its outcome came")
            case Action.REPORT_LOST | Action.REPORT_LOST_AND_RECOVER:
                self._report_lost(running, "its lease was lost while it ran")
            case Action.REPORT_CANCELLED:
                job = running.job
                ran = running.ran if running.started_at else None
                self._reporter.report(JobCancelled(job.queue, job.id, job.attempt, ran))
        if action in (Action.REPORT_MANUAL, Action.REPORT_REFUSED) and running.outcome is not None:
            # It was sent to the database, which had another end of the attempt.
            self.report_late(running, running.outcome)
        if action in (Action.RECOVER, Action.REPORT_LOST_AND_RECOVER):
            self._leases_to_recover += 1

    def report_late(self, running: Running, outcome: Outcome) -> None:
        """Report what a handler has raised or returned after the end of its attempt was decided."""
        if isinstance(outcome, Failed):
            # A lost lease has an event of its own, and each call of the handler raises it.
            if outcome.exception is not None and not is_instance(outcome.exception, LeaseLost):
                self._report_late(running, outcome.error, outcome.exception)
        elif isinstance(outcome, Completed) and outcome.output != "null" and running.manual is not None:
            self._report_late(running, _DROPPED_OUTPUT, None)

    def _report_late(self, running: Running, error: str, exception: BaseException | None) -> None:
        job = running.job
        self._reporter.report(LateError(job.queue, job.id, job.attempt, error, exception))

    def _report_settled(self, running: Running, state: JobState | None) -> None:
        job, outcome = running.job, running.outcome
        if isinstance(outcome, Failed):
            self._report_failed(running, outcome.error, state, outcome.exception)
        else:
            self._reporter.report(JobReleased(job.queue, job.id, job.attempt))

    def _report_manual(self, running: Running) -> None:
        manual = running.manual
        assert manual is not None
        self.last_ended = running
        if manual.state is JobState.COMPLETED:
            self.completed += 1
            self._report_completed(running)
        else:
            self._report_failed(running, manual.error, manual.state)

    def _report_completed(self, running: Running) -> None:
        job = running.job
        self._reporter.report(JobCompleted(job.queue, job.id, job.attempt, running.waited, running.ran))

    def _report_failed(
        self, running: Running, error: str, state: JobState | None, exception: BaseException | None = None
    ) -> None:
        self.failed += 1
        self.last_error = (error, running.ended_at)
        job = running.job
        end: Literal["failed", "retry"] = "failed" if state is JobState.FAILED else "retry"
        dead_letter = job.dead_letter if end == "failed" else None
        times = (running.waited, running.ran)
        blocks = end == "failed" and job.policy == Policy.KEY_STRICT_FIFO
        key = job.singleton_key if blocks else None
        event = JobFailed(job.queue, job.id, job.attempt, *times, error, end, exception, dead_letter, key)
        self._reporter.report(event)

    def _report_lost(self, running: Running, reason: str) -> None:
        self.lost += 1
        job = running.job
        self._reporter.report(LeaseLostEvent(job.queue, job.id, job.attempt, reason))


def _size_of(outcome: Outcome | None) -> int:
    """The characters that an outcome has in the statement that settles it."""
    if type(outcome) is Completed:
        return len(outcome.output)
    return len(outcome.failure.error or "") if type(outcome) is Failed else 0
