"""One queue: asks for jobs when there may be some, and takes what has ended to the database."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import attrs
import trio

from trioboss.actors.acknowledger import Acknowledger, waited
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.running import Running
from trioboss.actors.slots import Slots
from trioboss.errors import DatabaseUnavailable, UnknownQueue
from trioboss.events import ErrorEvent, JobStarted
from trioboss.machines.dispatch import Ask, DispatchMachine, Rest
from trioboss.model.exchange import Exchanged, Settlements, Wanted
from trioboss.model.job import Job, Lease

__all__ = ["Dispatcher", "DispatcherStatistics", "Presence"]

_PATIENCE = 20.0  # seconds an exchange may take
_LAST_PATIENCE = 4.0  # the same, once the worker stops
_BUSY = "*busy"  # the word by which upkeep learns that there are jobs to watch over
_BUSY_INTERVAL = 10.0


@attrs.define(eq=False)
class Presence:
    """When this boss last told the others that it has jobs."""

    said_busy_at: float = -math.inf

    def say(self, now: float) -> str | None:
        """What to say along with a claim, if it is time."""
        if now - self.said_busy_at < _BUSY_INTERVAL:
            return None
        self.said_busy_at = now
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
    woken_by_look: int


@attrs.define(eq=False)
class Dispatcher:
    """Carries out what its machine decides. Ends when it is told to stop and nothing is left to settle."""

    queue: str
    _wanted: Wanted
    _slots: Slots
    _port: WorkPort
    _reporter: Reporter
    _presence: Presence

    bell: Doorbell = attrs.field(factory=Doorbell, init=False)
    tray: Acknowledger = attrs.field(init=False)
    machine: DispatchMachine = attrs.field(factory=DispatchMachine, init=False)
    _stopping: bool = attrs.field(default=False, init=False)
    _unsure: bool = attrs.field(default=False, init=False)
    """A claim's answer got lost: there may be leases of ours that we never saw."""
    _claims: int = attrs.field(default=0, init=False)
    _claimed: int = attrs.field(default=0, init=False)
    _woken: Counter[str] = attrs.field(factory=Counter, init=False)

    def __attrs_post_init__(self) -> None:
        self.tray = Acknowledger(self.bell, self._reporter)

    def ring(self, delay: float = 0.0, by: str = "notify") -> None:
        """There is a job, now or in so many seconds."""
        self._woken[by] += 1
        self.machine.ring(trio.current_time(), delay)
        self.bell.ring()

    def listen_again(self) -> None:
        """The connection was lost and is back: marks may be gone, words may have been missed."""
        self.machine.forget_mark()
        self.bell.ring()

    def fence(self) -> None:
        """Leases of ours were given up here and may still be in the database: find them before the next claim."""
        self._unsure = True

    def stop(self) -> None:
        """Ask for no more jobs; settle what is left, and end."""
        self._stopping = True
        self.bell.ring()

    def statistics(self) -> DispatcherStatistics:
        """What it has done so far."""
        return DispatcherStatistics(
            self.queue,
            self._claims,
            self._claimed,
            self.tray.completed,
            self.tray.failed,
            self.tray.lost,
            self._woken["notify"],
            self._woken["timer"],
            self._woken["look"],
        )

    async def run(self) -> None:
        """Until stopped: exchange what there is to exchange, else rest."""
        while True:
            now = trio.current_time()
            plan = self._plan(now)
            if isinstance(plan, Ask) or self.tray:
                await self._exchange(plan if isinstance(plan, Ask) else None)
            elif self._stopping and not self._runs_any():
                return
            else:
                await self.bell.wait_until(plan.until)
                if trio.current_time() >= plan.until:
                    self._woken["timer"] += 1

    def _plan(self, now: float) -> Ask | Rest:
        if self._stopping:
            return Rest(math.inf)
        plan = self.machine.plan(now, self._slots.room())
        if isinstance(plan, Rest) and plan.until == math.inf and self.machine.hungry:
            self._slots.wait_for_room(self.bell)
        return plan

    def _runs_any(self) -> bool:
        return any(running.job.queue == self.queue for running in self._slots.running.values())

    async def _exchange(self, ask: Ask | None) -> None:
        entries, settlements = self.tray.take()
        now = trio.current_time()
        if ask is not None:
            self._slots.promise(ask.limit)
        try:
            if self._unsure and ask is not None:
                await self._recover_unseen([running.job.id for running in entries])
            exchanged = await self._trade(ask, settlements, now)
        except (DatabaseUnavailable, UnknownQueue, trio.TooSlowError) as error:
            self._failed(ask, error)
            self.tray.put_back(entries)
            await self._pause_before_retry(ask)
            return
        finally:
            if ask is not None:
                self._slots.promise(-ask.limit)
        self.tray.settled(entries, exchanged.settled)
        if ask is not None:
            self._received(exchanged, now)

    async def _trade(self, ask: Ask | None, settlements: Settlements, now: float) -> Exchanged:
        # Shielded: a claim that is cancelled half-way may have leased jobs that nobody then knows of.
        patience = _LAST_PATIENCE if self._stopping else _PATIENCE
        with trio.CancelScope(shield=True), trio.fail_after(patience):
            exchanged = await self._port.exchange(
                self.queue,
                settlements,
                None if ask is None else attrs.evolve(self._wanted, limit=ask.limit),
                ripen=ask is not None and ask.ripen,
                asleep=None if ask is None else ask.asleep,
                say=None if ask is None else self._presence.say(now),
            )
        return exchanged

    def _received(self, exchanged: Exchanged, sent_at: float) -> None:
        claim = exchanged.claim
        jobs = [] if claim is None else claim.jobs
        self._claims += 1
        self._claimed += len(jobs)
        next_due = None if claim is None else claim.next_due
        self.machine.claimed(len(jobs), next_due, trio.current_time())
        self._slots.offer([self._begin(job, sent_at) for job in jobs])

    def _begin(self, job: Job, sent_at: float) -> Running:
        assert job.started_on is not None
        running = Running(job, Lease(job.id, job.attempt, job.started_on), self.tray, sent_at)
        if self._reporter.wants(JobStarted):
            self._reporter.report(JobStarted(job.queue, job.id, job.attempt, waited(running)))
        return running

    def _failed(self, ask: Ask | None, error: Exception) -> None:
        self._reporter.report(ErrorEvent(f"dispatcher {self.queue}", str(error) or "no answer in time"))
        if ask is not None:
            self.machine.failed(trio.current_time(), random.random())
            self._unsure = True

    async def _pause_before_retry(self, ask: Ask | None) -> None:
        """With outcomes waiting and nothing to ask, the machine's own delay does not apply."""
        if ask is None:
            await trio.sleep(random.uniform(0.1, 0.5))

    async def _recover_unseen(self, unsettled: Sequence[UUID] = ()) -> None:
        mine = [r.job.id for r in self._slots.running.values() if r.job.queue == self.queue]
        worker = self._wanted.worker
        assert worker is not None
        with trio.CancelScope(shield=True), trio.fail_after(_LAST_PATIENCE):
            await self._port.recover_unseen(self.queue, worker, [*mine, *unsettled])
        self._unsure = False

    async def settle_rest(self) -> None:
        """For the very end, when it no longer runs: what was still put into its tray, tried once."""
        try:
            if self.tray:
                entries, settlements = self.tray.take()
                exchanged = await self._trade(None, settlements, trio.current_time())
                self.tray.settled(entries, exchanged.settled)
            if self._unsure:
                await self._recover_unseen()
        except (DatabaseUnavailable, UnknownQueue, trio.TooSlowError) as error:
            # The jobs are not lost: their leases end, and others take them.
            self._failed(None, error)
