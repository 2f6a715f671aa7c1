"""Runs jobs: a fixed number of long-lived tasks, and the buffer of leased jobs in front of them."""

from collections import deque
from collections.abc import Iterable
from uuid import UUID

import attrs
import trio
from trio.lowlevel import ParkingLot, checkpoint, enable_ki_protection

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.heartbeat import Wards
from trioboss.actors.ports import LeasePort
from trioboss.actors.runner import Handler, Outcome, Released, judge_cancelled, run_batch, run_job
from trioboss.actors.running import CancelReason, Running, RunningJob

__all__ = ["SlotSettings", "Slots"]

_FAIR_SHARE = 0.001  # seconds a slot may go on with jobs that never wait, before the others get a turn


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
    _wards: Wards

    running: dict[UUID, Running] = attrs.field(factory=dict, init=False)
    """Every lease of this worker whose handler is not out of it yet, buffered ones included."""
    _buffer: deque[Running] = attrs.field(factory=deque, init=False)
    _idle: ParkingLot = attrs.field(factory=ParkingLot, init=False)
    _promised: int = attrs.field(default=0, init=False)
    _lingering: int = attrs.field(default=0, init=False)
    """Slots whose handler was given up and has not ended: a thread cannot be stopped."""
    _starving: dict[Doorbell, None] = attrs.field(factory=dict, init=False)
    empty: Doorbell = attrs.field(factory=Doorbell, init=False)
    """Rung when the last lease has ended."""

    def room(self) -> int:
        """How many jobs to ask for. With prefetch, none until half of it is used up."""
        if len(self._buffer) > self.settings.prefetch // 2:
            return 0
        return self.settings.capacity - len(self.running) - self._promised - self._lingering

    def wait_for_room(self, bell: Doorbell) -> None:
        """Ring this bell, in its turn, when there is room."""
        self._starving[bell] = None

    def promise(self, count: int) -> None:
        """So many jobs are asked for; a negative count takes it back."""
        self._promised += count

    def offer(self, jobs: Iterable[Running]) -> None:
        """Run these as soon as there are slots."""
        for running in jobs:
            self.running[running.job.id] = running
            self._buffer.append(running)
            self._idle.unpark()

    def give_back(self) -> None:
        """The jobs that no slot has taken yet will not run here."""
        waiting = list(self._buffer)
        self._buffer.clear()
        for running in waiting:
            running.cancel(CancelReason.STOPPING)
            self._end(running)
            running.tray.put(running, Released())

    @enable_ki_protection
    async def run(self) -> None:
        """One slot. The terminal's KeyboardInterrupt goes to the main task; one raised here is the handler's."""
        since = trio.current_time()
        while True:
            while not self._buffer:
                await self._idle.park()
                since = trio.current_time()
            if self.settings.batch_size is None:
                await self._run_one(self._buffer.popleft())
            else:
                await self._run_many(self._take_batch(self.settings.batch_size))
            self._ring_next()
            if trio.current_time() - since > _FAIR_SHARE:
                await checkpoint()
                since = trio.current_time()

    def _ring_next(self) -> None:
        for bell in self._starving:
            bell.ring()
            del self._starving[bell]
            return

    async def _run_one(self, running: Running) -> None:
        outcome: Outcome = None
        self._begin(running)
        try:
            job = RunningJob(running.job, running, self._port)
            outcome = await run_job(running, job, self._handler, self.settings.max_bytes)
        finally:
            self._end(running)
            running.tray.put(running, outcome or judge_cancelled(running))
        if running.lingering is not None:
            self._lingering += 1
            await running.lingering.wait()
            self._lingering -= 1

    async def _run_many(self, batch: list[Running]) -> None:
        outcomes: dict[UUID, Outcome] = {}
        for running in batch:
            running.join(batch)
            self._begin(running)
        try:
            jobs = [RunningJob(running.job, running, self._port) for running in batch]
            outcomes = await run_batch(batch, jobs, self._handler, self.settings.max_bytes)
        finally:
            for running in batch:
                self._end(running)
                running.tray.put(running, outcomes.get(running.job.id) or judge_cancelled(running))

    def _take_batch(self, size: int) -> list[Running]:
        """Jobs of one queue, for one call."""
        batch = [self._buffer.popleft()]
        while self._buffer and len(batch) < size and self._buffer[0].job.queue == batch[0].job.queue:
            batch.append(self._buffer.popleft())
        return batch

    def _begin(self, running: Running) -> None:
        running.started = trio.current_time()
        self._wards.add(running)

    def _end(self, running: Running) -> None:
        running.finish()
        self.running.pop(running.job.id, None)
        if not self.running:
            self.empty.ring()
