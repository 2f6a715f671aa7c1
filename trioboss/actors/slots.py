"""Runs jobs: a fixed number of long-lived tasks, and the buffer of leased jobs in front of them."""

import math
from collections import deque
from uuid import UUID

import attrs
import trio
from trio.lowlevel import ParkingLot, Task, checkpoint, current_task, enable_ki_protection

from trioboss.actors.actor import Doorbell
from trioboss.actors.attempts import ClaimedBatch, LeaseWatchers, Running
from trioboss.actors.handlers import HandlerStack
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import Call, fail_leaked, is_cancelled, run_batch, run_job
from trioboss.events import JobStarted
from trioboss.machines.attempt import AttemptState, CancelReason, Outcome
from trioboss.machines.room import RoomWaiters
from trioboss.model.job import Job
from trioboss.model.job_context import current_jobs, current_surroundings, current_worker

__all__ = ["SlotSettings", "Slots"]

# Seconds that a slot may go on with jobs that never wait, before other tasks run. A checkpoint for each job would cost
# as much as a small job.
_TIME_SLICE = 0.001


@attrs.frozen(kw_only=True)
class SlotSettings:
    """How a worker runs its jobs."""

    concurrency: int = 1
    prefetch: int = 0
    """Jobs to lease ahead of free slots."""
    batch_size: int | None = None
    """Give the handler a list of up to so many jobs."""
    max_bytes: int
    """The largest output, as JSON text."""

    @property
    def most(self) -> int:
        """Jobs that can run at once."""
        return self.concurrency * (self.batch_size or 1)

    @property
    def capacity(self) -> int:
        """Jobs that can be leased at once."""
        return self.most + self.prefetch


@attrs.define(eq=False)
class Slots:
    """The running side of one worker."""

    settings: SlotSettings
    _stack: HandlerStack
    _lease_watchers: LeaseWatchers
    _reporter: Reporter

    empty: Doorbell = attrs.field(factory=Doorbell, init=False)
    """Rung when the last attempt has ended."""
    _running: set[Running] = attrs.field(factory=set, init=False)
    _batches: deque[ClaimedBatch] = attrs.field(factory=deque, init=False)
    """Claimed batches that are not unpacked yet."""
    _arrived: Doorbell = attrs.field(factory=Doorbell, init=False)
    _buffer: deque[Running] = attrs.field(factory=deque, init=False)
    _idle: ParkingLot = attrs.field(factory=ParkingLot, init=False)
    """Slots without a job."""
    _reserved: int = attrs.field(default=0, init=False)
    """Room for the jobs of claims that are under way."""
    _blocked: int = attrs.field(default=0, init=False)
    """Slots that wait for a thread which a cancelled handler has left running."""
    _room_waiters: RoomWaiters[Doorbell] = attrs.field(factory=RoomWaiters, init=False)
    """The dispatchers that wait for room, by their bells."""
    _scopes: dict[Task, trio.CancelScope] = attrs.field(factory=dict, init=False)
    """The scope of each slot, by its task."""
    _handler: Call = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._handler = self._stack.call

    @property
    def running(self) -> set[Running]:
        """Every attempt whose handler has not ended, including those in the buffer. A job can be in here twice: with an
        attempt that was given up and does not end, and with the next one.
        """
        self._unpack_batches()
        return self._running

    def find_own(self) -> list[Running]:
        """The attempts whose handler is running in the current task, or has started it."""
        found = []
        task: Task | None = current_task()
        while task is not None:
            if (scope := self._scopes.get(task)) is not None:
                found += [running for running in self._running if running.scope is scope]
            task = None if task.parent_nursery is None else task.parent_nursery.parent_task
        return found

    def find_longest(self) -> tuple[str, UUID, float] | None:
        """The job that has been running for longest: its queue, its id, and for how many seconds."""
        started = [running for running in self.running if running.scope is not None]
        if not started:
            return None
        first = min(started, key=lambda running: running.started_at)
        return first.job.queue, first.job.id, trio.current_time() - first.started_at

    # -- room

    def room(self) -> int:
        """How many jobs to claim. With prefetch it is 0 until half of the prefetched jobs have started: so there are
        fewer claims, each for more jobs. Claims of 250, as soon as there was room for them, were a tenth slower.
        """
        taken = len(self._running) + self._reserved
        if self._batches:
            taken += sum(map(len, self._batches))
        blocked = self._blocked * (self.settings.batch_size or 1)
        room = self.settings.capacity - taken - blocked
        return room if room >= self.settings.prefetch // 2 else 0

    def room_for(self, bell: Doorbell) -> int:
        """How many jobs the dispatcher with this bell may claim, beside others that have waited longer."""
        room = self.room()
        return self._room_waiters.room_for(bell, room) if self._room_waiters else room

    def reserve(self, count: int) -> None:
        """A claim for so many jobs is sent; a negative count takes the reservation back."""
        self._reserved += count

    def wait_for_room(self, bell: Doorbell) -> None:
        """Ring this bell when there is room for its dispatcher."""
        self._ring(self._room_waiters.wait(bell, self.room()))

    def needs_no_room(self, bell: Doorbell) -> None:
        """The dispatcher with this bell does not wait for room any more."""
        if self._room_waiters:
            self._ring(self._room_waiters.leave(bell, self.room()))

    def _ring_next(self) -> None:
        if self._room_waiters:
            self._ring(self._room_waiters.next(self.room()))

    @staticmethod
    def _ring(bell: Doorbell | None) -> None:
        if bell is not None:
            bell.ring()

    # -- jobs in

    def offer(self, batch: ClaimedBatch, *, more: bool) -> None:
        """Run these jobs as soon as slots are free.

        ``more``: the dispatcher claims again at once, if there is room. A worker with prefetch then decodes this batch
        while the database works on the next one.
        """
        self._batches.append(batch)
        if more and self.settings.prefetch and self.room() > 0:
            self._arrived.ring()
        else:
            self._unpack_batches()

    async def unpack(self) -> None:
        """Unpack the batches that `offer` has left."""
        while True:
            await self._arrived.wait()
            await checkpoint()  # the dispatcher sends its next claim first
            self._unpack_batches()

    def _unpack_batches(self) -> None:
        while self._batches:
            attempts = self._batches.popleft().unpack()
            self._running.update(attempts)
            self._buffer.extend(attempts)
            self._lease_watchers.add(attempts)
            self._idle.unpark(count=len(attempts))

    def give_back(self) -> None:
        """Release the jobs that no slot has taken yet."""
        self._unpack_batches()
        waiting = list(self._buffer)
        self._buffer.clear()
        # Released, not failed: a job that never started has spent no retry.
        for running in waiting:
            running.cancel(CancelReason.STOPPING)
            self._end(running, None, trio.current_time())

    # -- a slot

    @enable_ki_protection
    async def run(self) -> None:
        """One slot. The main task gets the KeyboardInterrupt of the terminal; one raised here is the handler's."""
        # For log records of the handler, and for `Task.send`. The list stays the same, and changes with each call:
        # nothing is set for each.
        current_worker.set(self._reporter.worker)
        current_surroundings.set(self._stack.settings.surroundings)
        while True:
            batch: list[Running] = []
            current_jobs.set(batch)
            try:
                # One scope serves until it is cancelled: one for each job would cost more than a small job.
                with trio.CancelScope() as scope:
                    self._scopes[current_task()] = scope
                    await self._run_jobs(scope, batch)
            except BaseException as error:
                if not is_cancelled(error) or trio.current_effective_deadline() == -math.inf:
                    self._stop(batch)  # the slot itself is cancelled
                    raise
                outcome = fail_leaked(error)
                self._finish(batch, {running.job.id: outcome for running in batch})
            else:
                jobs = [running.job for running in batch]
                self._stop(batch)
                await self._wait_for_thread(jobs)

    async def _run_jobs(self, scope: trio.CancelScope, batch: list[Running]) -> None:
        """Run jobs until the scope is cancelled. ``batch`` holds the attempts that run, for the caller."""
        now = trio.current_time()
        slice_ends = now + _TIME_SLICE
        while True:
            while not self._take_batch(batch):
                await self._idle.park()
                now = trio.current_time()
                slice_ends = now + _TIME_SLICE
            first = batch[0]
            for running in batch:
                running.start(scope, batch, now)
            self._report_started(batch)
            now = await self._call_handler(batch)
            # A call is cancelled only when all of its jobs are, the first of them included. The handler may have ended
            # without a checkpoint after that: then the scope is used up, and nothing was raised.
            if first.reason is not None and scope.cancel_called:
                return
            if now > slice_ends or self._is_low():
                await checkpoint()
                now = trio.current_time()
                slice_ends = now + _TIME_SLICE

    def _take_batch(self, batch: list[Running]) -> bool:
        """Take jobs of one queue for one call. Attempts that were cancelled in the buffer are not run."""
        size = self.settings.batch_size or 1
        while self._buffer and len(batch) < size:
            # One call has jobs of one queue: the worker of a pattern has several, and a handler may tell them apart.
            if batch and self._buffer[0].job.queue != batch[0].job.queue:
                break
            running = self._buffer.popleft()
            if running.state is AttemptState.BUFFERED:
                batch.append(running)
            else:
                self._end(running, None, trio.current_time())
        return bool(batch)

    def _report_started(self, batch: list[Running]) -> None:
        if self._reporter.has_reader(JobStarted):
            for running in batch:
                job = running.job
                self._reporter.report(JobStarted(job.queue, job.id, job.attempt, running.waited))

    def _is_low(self) -> bool:
        """Whether a dispatcher should claim more now, while there are still jobs to run in the meantime."""
        return self._reserved == 0 and len(self._buffer) > 0 and self.room() > 0

    async def _call_handler(self, batch: list[Running]) -> float:
        """Call the handler and end the attempts; return when that was."""
        job_class, settings = self._stack.job_class, self._stack.settings
        if self.settings.batch_size is not None:
            jobs = [job_class(running.job, running, settings) for running in batch]
            return self._finish(batch, await run_batch(jobs, self._handler, settings))
        running = batch[0]
        outcome = await run_job(job_class(running.job, running, settings), self._handler, settings)
        batch.clear()
        now = trio.current_time()
        self._end(running, outcome, now)
        return now

    def _finish(self, batch: list[Running], outcomes: dict[UUID, Outcome]) -> float:
        now = trio.current_time()
        for running in batch:
            self._end(running, outcomes.get(running.job.id), now)
        batch.clear()
        return now

    def _stop(self, batch: list[Running]) -> None:
        """End attempts that were cancelled, each for its own reason or because the slot is."""
        for running in batch:
            running.cancel(CancelReason.STOPPING)
        self._finish(batch, {})

    def _end(self, running: Running, outcome: Outcome | None, now: float) -> None:
        self._running.remove(running)
        running.end(outcome, now)
        self._ring_next()
        if not self._running:
            self.empty.ring()

    async def _wait_for_thread(self, jobs: list[Job]) -> None:
        """A thread cannot be cancelled: as long as one runs on, its slot takes no other job."""
        threads = self._stack.threads
        if threads is None:
            return
        self._blocked += 1
        try:
            await threads.wait_left_behind(jobs)
        finally:
            self._blocked -= 1
            self._ring_next()
