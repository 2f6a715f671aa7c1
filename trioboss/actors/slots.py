"""Runs jobs: a fixed number of long-lived tasks, and the buffer of leased jobs in front of them."""

import math
from collections import deque
from uuid import UUID

import attrs
import trio
from trio.lowlevel import ParkingLot, checkpoint, enable_ki_protection

from trioboss.actors.completer import waited
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.heartbeat import LeaseWatchers
from trioboss.actors.ports import LeasePort
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import (
    Completed,
    Handler,
    Outcome,
    Released,
    is_cancelled,
    judge_cancelled,
    judge_leaked,
    run_batch,
    run_job,
)
from trioboss.actors.running import CancelReason, ClaimedBatch, Running, RunningJob
from trioboss.events import JobStarted

__all__ = ["SlotSettings", "Slots"]

_TIME_SLICE = 0.001  # seconds a slot may go on with jobs that never wait, before the others get a turn


@attrs.frozen(kw_only=True)
class SlotSettings:
    """How a worker runs its jobs."""

    concurrency: int = 1
    prefetch: int = 0
    """Jobs to lease ahead of free slots."""
    batch_size: int | None = None
    """Give the handler a list of up to so many jobs."""
    max_bytes: int

    @property
    def capacity(self) -> int:
        """Jobs that can be leased at once."""
        return self.concurrency * (self.batch_size or 1) + self.prefetch


@attrs.define(eq=False)
class Slots:
    """The running side of one worker."""

    settings: SlotSettings
    _handler: Handler
    _port: LeasePort
    _lease_watchers: LeaseWatchers
    _reporter: Reporter

    _running: set[Running] = attrs.field(factory=set, init=False)
    _batches: deque[ClaimedBatch] = attrs.field(factory=deque, init=False)
    _arrived: Doorbell = attrs.field(factory=Doorbell, init=False)
    _buffer: deque[Running] = attrs.field(factory=deque, init=False)
    _idle: ParkingLot = attrs.field(factory=ParkingLot, init=False)
    _promised: int = attrs.field(default=0, init=False)
    _lingering: int = attrs.field(default=0, init=False)
    """Slots whose handler was given up and has not ended: a thread cannot be stopped."""
    _waiting_for_room: dict[Doorbell, None] = attrs.field(factory=dict, init=False)
    empty: Doorbell = attrs.field(factory=Doorbell, init=False)
    """Rung when the last lease has ended."""

    @property
    def running(self) -> set[Running]:
        """Every lease of this worker whose handler is not out of it yet, buffered ones included. One job may be in
        here twice: an attempt that was given up but does not end, and the next one.
        """
        self._unpack_batches()
        return self._running

    def room(self) -> int:
        """How many jobs to ask for. With prefetch, none until half of it is used up."""
        taken = len(self._running) + self._promised
        if self._batches:
            taken += sum(map(len, self._batches))
        lingering = self._lingering * (self.settings.batch_size or 1)
        room = self.settings.capacity - taken - lingering
        return room if room >= self.settings.prefetch // 2 else 0

    def wait_for_room(self, bell: Doorbell) -> None:
        """Ring this bell, in its turn, when there is room."""
        self._waiting_for_room[bell] = None

    def pass_on(self, bell: Doorbell) -> None:
        """Whoever has this bell needs no room now: it is the next one's turn."""
        self._waiting_for_room.pop(bell, None)
        self._ring_next()

    def promise(self, count: int) -> None:
        """So many jobs are asked for; a negative count takes it back."""
        self._promised += count

    def offer(self, batch: ClaimedBatch, *, more: bool) -> None:
        """Run these as soon as there are slots. ``more``: whoever brings them asks for others at once, if there is
        room. A worker that leases ahead looks into the batch only then, while the database works.
        """
        self._batches.append(batch)
        if more and self.settings.prefetch and self.room() > 0:
            self._arrived.ring()
        else:
            self._unpack_batches()

    async def unpack(self) -> None:
        """Open the parcels that were left closed."""
        while True:
            await self._arrived.wait()
            await checkpoint()  # the first turn is for those who ask for more
            self._unpack_batches()

    def _unpack_batches(self) -> None:
        while self._batches:
            jobs = self._batches.popleft().open()
            self._running.update(jobs)
            self._buffer.extend(jobs)
            self._lease_watchers.add(jobs)
            self._idle.unpark(count=len(jobs))

    def give_back(self) -> None:
        """The jobs that no slot has taken yet will not run here."""
        self._unpack_batches()
        waiting = list(self._buffer)
        self._buffer.clear()
        for running in waiting:
            running.cancel(CancelReason.STOPPING)
            self._end(running, Released(), trio.current_time())

    @enable_ki_protection
    async def run(self) -> None:
        """One slot. The terminal's KeyboardInterrupt goes to the main task; one raised here is the handler's."""
        while True:
            batch: list[Running] = []
            try:
                # One scope serves until it is cancelled: making one for each job would cost more than the job.
                with trio.CancelScope() as scope:
                    await self._run_jobs(scope, batch)
            except BaseException as error:
                if not is_cancelled(error) or trio.current_effective_deadline() == -math.inf:
                    self._stop(batch)
                    raise
                outcome = judge_leaked(error)
                self._finish(batch, {running.job.id: outcome for running in batch})
            else:
                lingering = [running.lingering for running in batch if running.lingering is not None]
                self._stop(batch)
                await self._wait_for(lingering)

    async def _run_jobs(self, scope: trio.CancelScope, batch: list[Running]) -> None:
        """Run jobs until the scope is cancelled. ``batch`` holds what runs, for whoever catches that."""
        now = trio.current_time()
        slice_ends = now + _TIME_SLICE
        while True:
            while not self._take_batch(batch):
                await self._idle.park()
                now = trio.current_time()
                slice_ends = now + _TIME_SLICE
            first = batch[0]
            for running in batch:
                running.begin(scope, batch, now)
            self._report_started(batch)
            self._ring_next()
            now = await self._call_handler(batch)
            # A call is cancelled only when all of its jobs are, the first of them as well.
            if first.reason is not None and scope.cancel_called:
                return
            if now > slice_ends or self._is_low():
                await checkpoint()
                now = trio.current_time()
                slice_ends = now + _TIME_SLICE

    def _report_started(self, batch: list[Running]) -> None:
        if self._reporter.wants(JobStarted):
            for running in batch:
                job = running.job
                self._reporter.report(JobStarted(job.queue, job.id, job.attempt, waited(running)))

    def _is_low(self) -> bool:
        """Time to let a dispatcher ask for more, while there is still something to run in the meantime."""
        return self._promised == 0 and len(self._buffer) > 0 and self.room() > 0

    async def _call_handler(self, batch: list[Running]) -> float:
        """Return when it ended."""
        if self.settings.batch_size is not None:
            jobs = [RunningJob(running.job, running, self._port) for running in batch]
            return self._finish(batch, await run_batch(jobs, self._handler, self.settings.max_bytes))
        running = batch[0]
        job = RunningJob(running.job, running, self._port)
        outcome = await run_job(job, self._handler, self.settings.max_bytes)
        batch.clear()
        now = trio.current_time()
        self._end(running, outcome, now)
        return now

    def _ring_next(self) -> None:
        """There may be room: it is the turn of who has waited longest for it."""
        if self._waiting_for_room and self.room() > 0:
            bell = next(iter(self._waiting_for_room))
            del self._waiting_for_room[bell]
            bell.ring()

    def _finish(self, batch: list[Running], outcomes: dict[UUID, Outcome]) -> float:
        now = trio.current_time()
        for running in batch:
            self._end(running, outcomes.get(running.job.id), now)
        batch.clear()
        return now

    def _stop(self, batch: list[Running]) -> None:
        """What still runs was cancelled, for its own reason or because the slot is."""
        for running in batch:
            running.cancel(CancelReason.STOPPING)
        self._finish(batch, {})

    async def _wait_for(self, lingering: list[trio.Event]) -> None:
        if not lingering:
            return
        self._lingering += 1
        try:
            for event in lingering:
                await event.wait()
        finally:
            self._lingering -= 1
            self._ring_next()

    def _take_batch(self, batch: list[Running]) -> bool:
        """Jobs of one queue, for one call. What was cancelled while it waited is not run at all."""
        size = self.settings.batch_size or 1
        while self._buffer and len(batch) < size:
            if batch and self._buffer[0].job.queue != batch[0].job.queue:
                break
            running = self._buffer.popleft()
            if running.reason is None:
                batch.append(running)
            else:
                self._finish([running], {})
        return bool(batch)

    def _end(self, running: Running, outcome: Outcome, now: float) -> None:
        """A handler is out of a job. Who was cancelled and came to a good end all the same, has completed it."""
        if running.reason is not None and not isinstance(outcome, Completed):
            outcome = judge_cancelled(running)
        running.finish()
        self._running.remove(running)
        running.completer.put(running, outcome, now)
        self._ring_next()
        if not self._running:
            self.empty.ring()
