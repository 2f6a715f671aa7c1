"""One queue: asks for jobs when there may be some, and takes what has ended to the database."""

import math
import random
from collections import Counter

import attrs
import trio
from trio.lowlevel import checkpoint

from trioboss.actors.checker import Checker
from trioboss.actors.completer import Completer
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import is_cancelled
from trioboss.actors.running import ClaimedBatch, Running
from trioboss.actors.slots import Slots
from trioboss.errors import DatabaseUnavailable, UnknownQueue
from trioboss.events import ErrorEvent
from trioboss.machines.attempt import CancelReason
from trioboss.machines.dispatch import Ask, DispatchMachine, Rest
from trioboss.model.policy import KEYED
from trioboss.model.settle_and_claim import Claim, ClaimRequest

__all__ = ["BusyNotifier", "Dispatcher", "DispatcherStatistics"]

_TIMEOUT, _LEAST_TIMEOUT = 20.0, 15.0  # seconds an exchange may take: at most this, and at least that
_BUSY = "*busy"  # the word by which maintenance learns that there are jobs to watch over
_BUSY_INTERVAL = 10.0


@attrs.define(eq=False)
class BusyNotifier:
    """When this boss last told the others that it has jobs."""

    notified_at: float = -math.inf

    def due_notification(self, now: float) -> str | None:
        """What to say along with a claim, if it is time."""
        if now - self.notified_at < _BUSY_INTERVAL:
            return None
        self.notified_at = now
        return _BUSY


@attrs.frozen
class DispatcherStatistics:
    """What a dispatcher has done, and how it was woken."""

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
    """Carries out what its machine decides. Ends when it is told to stop and nothing is left to settle."""

    queue: str
    _request: ClaimRequest
    _slots: Slots
    _checker: Checker
    _port: WorkPort
    _reporter: Reporter
    _busy: BusyNotifier

    bell: Doorbell = attrs.field(factory=Doorbell, init=False)
    completer: Completer = attrs.field(init=False)
    machine: DispatchMachine = attrs.field(factory=DispatchMachine, init=False)
    _stopping: bool = attrs.field(default=False, init=False)
    _leases_unknown: bool = attrs.field(default=False, init=False)
    """A claim's answer got lost: there may be leases of ours that we never saw."""
    _keyed: bool = attrs.field(default=False, init=False)
    """Jobs of the queue wait for each other."""
    _may_be_cancelled: bool = attrs.field(default=False, init=False)
    """What the claim under way brings may have been cancelled by now."""
    _timeout: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """Ends when the exchange under way has taken too long, and shuts out whoever else would cancel it."""
    _promised: int = attrs.field(default=0, init=False)
    _deadline: float = attrs.field(default=math.inf, init=False)
    _claims: int = attrs.field(default=0, init=False)
    _claimed: int = attrs.field(default=0, init=False)
    _woken: Counter[str] = attrs.field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        self.completer = Completer(self.bell, self._reporter)

    def ring(self, delay: float | None = None, by: str = "notify") -> None:
        """There is a job in so many seconds, with 0 a ready one; or anything may be new."""
        self._woken[by] += 1
        self.machine.ring(trio.current_time(), delay)
        self.bell.ring()

    def reconnected(self) -> None:
        """The connection was lost and is back: marks may be gone, words may have been missed."""
        self.machine.unfence()
        self.bell.ring()

    def queue_recreated(self) -> None:
        """The queue was deleted and made again: the mark is gone, and what could not work may work now."""
        self.machine.answered(trio.current_time())
        self.machine.forget_marker()
        self.bell.ring()

    @property
    def is_idle(self) -> bool:
        """Whether it knows of all its leases, so that it need not ask before somebody rings."""
        return not (self._leases_unknown or self.completer or self._runs_any())

    def await_bulk_poll(self) -> None:
        """Somebody looks for us, together with others."""
        self.machine.await_bulk_poll()

    def bulk_polled(self, next_due: float | None) -> None:
        """They have: in so many seconds there is a job."""
        self.machine.bulk_polled(trio.current_time(), next_due)
        self.bell.ring()

    def fence(self) -> None:
        """Nobody sees that we are alive: what we lease would be taken away. Leases that were given up here may
        still be in the database: find them before the next claim.
        """
        self._leases_unknown = self._leases_unknown or self.machine.is_claiming or self._runs_any()
        self.machine.fence()

    def cancelled_elsewhere(self) -> None:
        """A job was cancelled that we do not have; perhaps the claim under way brings it."""
        self._may_be_cancelled = self.machine.is_claiming

    def stop(self) -> None:
        """Ask for no more jobs; settle what is left, and end."""
        self._stopping = True
        self.bell.ring()

    def set_deadline(self, deadline: float) -> None:
        """No exchange, nor the one under way, may take longer than until then."""
        self._deadline = deadline
        self._timeout.deadline = min(self._timeout.deadline, deadline)

    def statistics(self) -> DispatcherStatistics:
        """What it has done so far."""
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

    async def run(self) -> None:
        """Until stopped: exchange what there is to exchange, else rest."""
        while True:
            # One scope serves many exchanges: to make one is a tenth of the way from a word to its job.
            with trio.CancelScope() as self._timeout:
                await self._iterate()
                return
            # It was over with an exchange, which is reported; or ran out at rest, which is nobody's concern.

    async def _iterate(self) -> None:
        while True:
            now = trio.current_time()
            if now >= self._timeout.deadline:
                await checkpoint()  # it ran out while somebody rang: begin with a new one
            if self.completer.take_lost():
                # What was given up here may still be ours in the database: see to it, and ask for it.
                self._leases_unknown = True
                self.machine.ring(now)
            if self.completer and (self._keyed or self.completer.has_failures):
                self.machine.ring(now)  # what is settled now may let a job run
            plan = self._plan(now)
            if isinstance(plan, Ask):
                await self._execute(plan, now)
            elif self.completer and now >= self.machine.settles_at(plan, self.completer.waits_since):
                await self._execute(None, now)
            elif self._stopping and not self.completer and not self._awaits_any():
                return
            else:
                await self._rest(plan)

    async def _rest(self, plan: Rest) -> None:
        until = plan.until
        if self.completer:
            until = min(until, self.machine.settles_at(plan, self.completer.waits_since))
        if not await self.bell.wait_until(until) and until == plan.until:
            self._woken["timer"] += 1

    def _plan(self, now: float) -> Ask | Rest:
        plan = Rest(math.inf) if self._stopping else self.machine.plan(now, self._slots.room())
        if isinstance(plan, Rest):
            self._slots.wait_for_room(self.bell) if plan.for_room else self._slots.needs_no_room(self.bell)
        return plan

    def _running(self) -> list[Running]:
        return [running for running in self._slots.running if running.job.queue == self.queue]

    def _runs_any(self) -> bool:
        return any(running.job.queue == self.queue for running in self._slots.running)

    def _awaits_any(self) -> bool:
        """Whether an outcome may still come. A queue that is made again has another dispatcher beside this one."""
        return any(running.completer is self.completer for running in self._slots.running)

    async def _execute(self, ask: Ask | None, now: float) -> None:
        """Settle what has ended, and claim what is asked for. What goes wrong is tried again later."""
        if ask is not None:
            self._promise(ask.limit)
        try:
            if ask is not None and self._leases_unknown:
                await self._recover_unseen()
                now = trio.current_time()
            await self._settle_and_claim(ask, now)
        except BaseException as error:
            # Who is cancelled here had no answer in time: all other reasons to cancel are shut out.
            self._failed(ask, "no answer in time" if is_cancelled(error) else _describe(error))
            if not isinstance(error, DatabaseUnavailable | UnknownQueue):
                raise
        finally:
            self._timeout.shield = False
            self._promise(0)

    def _shield(self, now: float) -> None:
        """From now on only the end of our patience interrupts us: a claim that is cancelled half-way may have leased
        jobs that nobody then knows of.
        """
        ends = self._timeout.deadline
        if not now + _LEAST_TIMEOUT <= ends <= now + _TIMEOUT:
            self._timeout.deadline = min(now + _TIMEOUT, self._deadline)
        self._timeout.shield = True

    def _promise(self, room: int) -> None:
        """Room in the slots for what the claim under way may bring."""
        self._slots.reserve(room - self._promised)
        self._promised = room

    async def _settle_and_claim(self, ask: Ask | None, sent_at: float) -> None:
        self._shield(sent_at)
        entries, settlements = self.completer.take()
        try:
            exchanged = await self._port.settle_and_claim(
                self.queue,
                settlements,
                None if ask is None else self._want(ask),
                promote_due=ask is not None and ask.promote_due,
                idle=None if ask is None else ask.idle,
                notify=None if ask is None else self._busy.due_notification(sent_at),
            )
        except UnknownQueue:
            self.completer.answered(entries, {})  # the queue is gone, and its jobs with it
            raise
        except BaseException:
            self.completer.unanswered(entries)
            raise
        now = trio.current_time()
        self.machine.answered(now)
        if entries:
            self.completer.answered(entries, exchanged.settled)
        if ask is not None:
            self._received(exchanged.claim, sent_at, now)

    def _want(self, ask: Ask) -> ClaimRequest:
        # The very same as long as nothing changes: the store keeps what it made of it.
        if (self._request.limit, self._request.find_next_due) != (ask.limit, ask.find_next_due):
            self._request = attrs.evolve(self._request, limit=ask.limit, find_next_due=ask.find_next_due)
        return self._request

    def _received(self, claim: Claim | None, sent_at: float, now: float) -> None:
        jobs = [] if claim is None else claim.jobs
        self._claims += 1
        self._claimed += len(jobs)
        self._keyed = claim is not None and claim.policy in KEYED
        self.machine.claimed(len(jobs), None if claim is None else claim.next_due, now)
        self._promise(0)
        if jobs:
            self._slots.offer(ClaimedBatch(jobs, self.completer, sent_at), more=self.machine.may_have_jobs)
        if self._may_be_cancelled:
            self._may_be_cancelled = False
            self._checker.check(self._running(), CancelReason.CANCELLED)
        if self._stopping:
            self._slots.give_back()

    def _failed(self, ask: Ask | None, error: str) -> None:
        self._reporter.report(ErrorEvent(f"dispatcher {self.queue}", error))
        self.machine.failed(trio.current_time(), random.random())
        if ask is not None:
            self._leases_unknown = True

    async def _recover_unseen(self) -> None:
        # What waits to be settled goes first: a job that has failed may have been leased to us again, unseen,
        # and must not be taken for the one we know.
        if self.completer:
            await self._settle_and_claim(None, trio.current_time())
        worker = self._request.worker
        assert worker is not None
        known = [running.job.id for running in (*self._running(), *self.completer)]
        self._shield(trio.current_time())
        await self._port.recover_unseen(self.queue, worker, known)
        self._leases_unknown = False

    @property
    def has_rest(self) -> bool:
        """Whether something is left to settle, or to look for."""
        return bool(self.completer) or self._leases_unknown

    async def settle_rest(self) -> None:
        """For the very end, when it no longer runs: what was still put into its completer, tried once."""
        error = "no answer in time"
        with trio.CancelScope() as self._timeout:
            try:
                if self.completer:
                    await self._settle_and_claim(None, trio.current_time())
                if self._leases_unknown:
                    await self._recover_unseen()
                return
            except Exception as problem:
                error = _describe(problem)
        # The jobs are not lost: their leases end, and others take them.
        self._reporter.report(ErrorEvent(f"dispatcher {self.queue}", error))


def _describe(error: BaseException) -> str:
    return str(error) or type(error).__name__
