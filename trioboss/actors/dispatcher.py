"""The dispatcher of one queue: claims jobs when there may be some, and settles their outcomes.

machines/dispatch.py decides when. The statements are in store/settle_and_claim.py: claim.sql, or admit_and_claim.sql
for keyed queues, and complete.sql, retry_failed.sql, fail.sql and release.sql. slots.py runs the jobs.
"""

import math
import random
from collections import Counter

import attrs
import trio
from trio.lowlevel import checkpoint

from trioboss.actors.actor import Doorbell
from trioboss.actors.attempts import ClaimedBatch, Running
from trioboss.actors.completer import Completer
from trioboss.actors.followers import Followers
from trioboss.actors.lease_checker import LeaseChecker
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import is_cancelled
from trioboss.actors.slots import Slots
from trioboss.errors import DatabaseUnavailable, UnknownQueue
from trioboss.events import ErrorEvent, QueueWarning
from trioboss.machines.attempt import CancelReason
from trioboss.machines.dispatch import DispatchMachine
from trioboss.machines.dispatch_commands import DatabaseCommand, Pending, Recover, Settle, Stop, Wait
from trioboss.machines.maintenance import BusyNotifier
from trioboss.model.policy import KEYED
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed

__all__ = ["Dispatcher", "DispatcherStatistics"]

# Seconds that the database has to answer, at most and at least.
_LONGEST_TIMEOUT, _SHORTEST_TIMEOUT = 20.0, 15.0


@attrs.frozen
class DispatcherStatistics:
    """The work that a dispatcher has done, and how it was woken."""

    queue: str
    claims: int
    claimed: int
    completed: int
    failed: int
    lost: int
    woken_by_notify: int
    woken_by_timer: int
    woken_by_poll: int


@attrs.define(eq=False)
class Dispatcher:
    """Carries out what its machine decides. Ends when it was stopped and nothing is left to settle."""

    queue: str
    _request: ClaimRequest
    _slots: Slots
    _lease_checker: LeaseChecker
    _port: WorkPort
    _reporter: Reporter
    _busy: BusyNotifier
    _followers: Followers | None = None

    bell: Doorbell = attrs.field(factory=Doorbell, init=False)
    completer: Completer = attrs.field(init=False)
    machine: DispatchMachine = attrs.field(init=False)
    _timeout: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """Its deadline is the time until which the database has to answer. During a statement it also shields from every
    other cancellation.
    """
    _deadline: float = attrs.field(default=math.inf, init=False)
    """No statement may take longer than until then."""
    _reserved: int = attrs.field(default=0, init=False)
    """The room in the slots that is reserved for the claim under way."""
    claimed_at: float | None = attrs.field(default=None, init=False)
    """When it last had an answer to a claim."""
    _claims: int = attrs.field(default=0, init=False)
    _claimed: int = attrs.field(default=0, init=False)
    _woken: Counter[str] = attrs.field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        self.completer = Completer(self.bell, self._reporter)
        self.machine = DispatchMachine(self._request)

    # -- messages

    def ring(self, delay: float | None = None, by: str = "notify") -> None:
        """A job is due in ``delay`` seconds; 0: ready now; None: unknown change, ask for the next due time, too."""
        self._woken[by] += 1
        self.machine.ring(trio.current_time(), delay)
        self.bell.ring()

    def reconnected(self) -> None:
        """The listener was disconnected: the idle marker may be gone, notifications may have been missed."""
        self.machine.presence_regained()
        self.bell.ring()

    def queue_recreated(self) -> None:
        """The queue was deleted and created again."""
        self.machine.queue_recreated(trio.current_time())
        self.bell.ring()

    def await_bulk_poll(self) -> None:
        """The bulk poller will poll for this dispatcher, together with others."""
        self.machine.await_bulk_poll()

    def bulk_polled(self, next_due: float | None) -> None:
        """The bulk poller has polled: in ``next_due`` seconds there is a job."""
        self.machine.bulk_polled(trio.current_time(), next_due)
        self.bell.ring()

    def presence_lost(self) -> None:
        """Other bosses no longer see this boss, and may take its jobs: claim nothing until they see it again."""
        self.machine.presence_lost(has_leases=self._has_running())

    def cancelled_elsewhere(self) -> None:
        """A job was cancelled that this worker does not have."""
        self.machine.cancelled_elsewhere()

    def stop(self) -> None:
        """Claim no more jobs; settle what is left, and end."""
        self.machine.stop()
        self.bell.ring()

    def set_deadline(self, deadline: float) -> None:
        """No statement may take longer than until then, including the one under way."""
        self._deadline = deadline
        self._timeout.deadline = min(self._timeout.deadline, deadline)

    # -- questions

    @property
    def is_idle(self) -> bool:
        """Whether it has no lease, also none without a record, so that it need not claim before its doorbell rings."""
        pending = self._pending()
        waits = pending.since is not None or pending.postponed_until < math.inf
        return not (self.machine.leases_unknown or waits or self._has_running())

    @property
    def has_rest(self) -> bool:
        """Whether something is left to settle, or to recover."""
        return any(self.completer) or self.machine.leases_unknown

    def statistics(self) -> DispatcherStatistics:
        """Its work so far."""
        return DispatcherStatistics(
            self.queue,
            self._claims,
            self._claimed,
            self.completer.completed,
            self.completer.failed,
            self.completer.lost,
            self._woken["notify"],
            self._woken["timer"],
            self._woken["poll"],
        )

    def _pending(self) -> Pending:
        # Only a dispatcher that stops has to search all attempts for its own.
        return self.completer.pending(unfinished=self.machine.stopping and self._has_unfinished())

    def _has_unfinished(self) -> bool:
        """Whether an outcome may still come. A queue that was recreated has another dispatcher beside this one."""
        return any(running.completer is self.completer for running in self._slots.running)

    def _has_running(self) -> bool:
        return any(running.job.queue == self.queue for running in self._slots.running)

    def _running(self) -> list[Running]:
        return [running for running in self._slots.running if running.job.queue == self.queue]

    # -- the loop

    async def run(self) -> None:
        """Do what the machine decides, until that is to stop."""
        try:
            while True:
                # One scope serves many statements: to make one takes a tenth of the time from a notification to its
                # job.
                with trio.CancelScope() as self._timeout:
                    await self._work()
                    return
                # The deadline of the scope has passed: during a statement, whose failure `_try` has reported, or while
                # there was nothing to do. A scope that was cancelled cannot be used again, so the loop opens a new one.
        finally:
            self._slots.needs_no_room(self.bell)  # others would leave it room for ever

    async def _work(self) -> None:
        while True:
            now = trio.current_time()
            if now >= self._timeout.deadline:
                # The deadline has passed while it waited. This raises Cancelled: `run` opens a new scope.
                await checkpoint()
            match self.machine.plan(now, self._slots.room_for(self.bell), self._pending()):
                case ClaimRequest() | Recover() | Settle() as command:
                    await self._try(command, now)
                case Wait() as wait:
                    if wait.for_room:
                        self._slots.wait_for_room(self.bell)
                    else:
                        self._slots.needs_no_room(self.bell)
                    if not await self.bell.wait_until(wait.until) and not wait.to_settle:
                        self._woken["timer"] += 1
                case Stop():
                    return

    async def _try(self, command: DatabaseCommand, now: float) -> None:
        """Carry a command out. A failure is reported, and the machine decides when to try again."""
        try:
            await self._execute(command, now)
        except BaseException as error:
            # Only the timeout can cancel a statement.
            described = "no answer in time" if is_cancelled(error) else _describe(error)
            self._reporter.report(ErrorEvent(f"dispatcher {self.queue}", described))
            self.machine.failed(command, trio.current_time(), random.random())
            if not isinstance(error, DatabaseUnavailable | UnknownQueue):
                raise
        finally:
            self._timeout.shield = False
            self._reserve(0)

    async def settle_rest(self) -> None:
        """At the very end, when the dispatcher does not run any more: settle and recover what is left, once."""
        error = "no answer in time"
        self.completer.retry_postponed()
        with trio.CancelScope() as self._timeout:
            try:
                while not isinstance(command := self.machine.plan_rest(self._pending()), Stop):
                    await self._execute(command, trio.current_time())
                if not any(self.completer):
                    return
                error = "stopped beside an open transaction that has changed its jobs: they run again"
            except Exception as problem:
                error = _describe(problem)
        # No job is lost: the leases end, and other workers take the jobs.
        self._reporter.report(ErrorEvent(f"dispatcher {self.queue}", error))

    async def _execute(self, command: DatabaseCommand, now: float) -> None:
        self._shield(now)
        match command:
            case Recover():
                await self._recover()
            case ClaimRequest():
                self._reserve(command.limit)
                self._slots.needs_no_room(self.bell)
                await self._settle_and_claim(command, now)
            case Settle():
                await self._settle_and_claim(None, now, postponed=command.postponed)

    def _shield(self, now: float) -> None:
        """From now on only the timeout cancels: a claim that is cancelled half-way may have leased jobs of which there
        is no record here.
        """
        # The deadline moves only now and then: each time it does, trio's heap of deadlines grows.
        if not now + _SHORTEST_TIMEOUT <= self._timeout.deadline <= now + _LONGEST_TIMEOUT:
            self._timeout.deadline = min(now + _LONGEST_TIMEOUT, self._deadline)
        self._timeout.shield = True

    def _reserve(self, room: int) -> None:
        self._slots.reserve(room - self._reserved)
        self._reserved = room

    # -- statements

    async def _settle_and_claim(
        self, claim: ClaimRequest | None, sent_at: float, *, postponed: bool = False
    ) -> None:
        entries, settlements = self.completer.take_postponed() if postponed else self.completer.take()
        # This is compared before the call: the notification is due once in many statements.
        is_busy_due = claim is not None and sent_at >= self._busy.due_at
        try:
            answer = await self._port.settle_and_claim(
                self.queue,
                settlements,
                claim,
                notify=self._busy.due_notification(sent_at) if is_busy_due else None,
            )
        except UnknownQueue:
            self.completer.answered(entries, {})  # the queue is gone, and its jobs with it
            raise
        except BaseException:
            self.completer.unanswered(entries)
            raise
        # These wait for the end of another transaction; the others of the statement are settled.
        if answer.postponed:
            waiting = [running for running in entries if running.job.id in answer.postponed]
            entries = [running for running in entries if running.job.id not in answer.postponed]
            self.completer.postpone(waiting, trio.current_time(), again=postponed)
        if entries:
            self.completer.answered(entries, answer.settled, answer.rejected)
        for id, reason in answer.rejected.items():
            self._reporter.report(QueueWarning(self.queue, "quarantined", f"job {id}: {reason}"))
        if claim is None:
            self.machine.answered(trio.current_time())
        else:
            self._receive(answer, sent_at)

    def _receive(self, answer: SettledAndClaimed, sent_at: float) -> None:
        """Hand the claimed jobs to the slots."""
        found = answer.claim
        if found is None:
            self.machine.claim_unknown(trio.current_time())
            return
        jobs = found.jobs
        self._claims += 1
        self._claimed += len(jobs)
        self.claimed_at = trio.current_time()
        may_be_cancelled = self.machine.claimed(
            len(jobs), found.next_due, self.claimed_at, keyed=found.policy in KEYED, took=found.took
        )
        if self.machine.goes_onward:
            self.machine.claimed_until(found.position)
        self._reserve(0)
        if self._followers is not None and self._followers.ids:
            self._followers.claimed(jobs)
        if jobs:
            self._slots.offer(ClaimedBatch(jobs, self.completer, sent_at), more=self.machine.may_have_jobs)
        # Its notification came before the job was here, so nothing was cancelled: the lease shows it.
        if may_be_cancelled:
            self._lease_checker.check(self._running(), CancelReason.CANCELLED)
        # The claim was under way when the worker was told to stop: its jobs are released before they start.
        if self.machine.stopping:
            self._slots.give_back()

    async def _recover(self) -> None:
        worker = self._request.worker
        assert worker is not None
        # Those in the completer have ended here, but their leases are in the database until they are settled: releasing
        # one would run a job again whose outcome is known.
        known = [running.job.id for running in (*self._running(), *self.completer)]
        await self._port.recover_unseen(self.queue, worker, known)
        self.machine.recovered()


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
