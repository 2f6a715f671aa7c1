"""One `work` call: its slots, a dispatcher for each queue, and the order in which they stop."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import attrs
import trio

from trioboss.actors.bulk_poller import BULK_THRESHOLD, BulkPoller
from trioboss.actors.checker import Checker
from trioboss.actors.dispatcher import BusyNotifier, Dispatcher, DispatcherStatistics
from trioboss.actors.handlers import ThreadHandler, asyncio_handler, open_asyncio
from trioboss.actors.heartbeat import LeaseWatchers, Renewer
from trioboss.actors.ports import WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.runner import Handler
from trioboss.actors.slots import Slots, SlotSettings
from trioboss.actors.supervisor import Supervisor
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, QueueWarning, WorkerWip
from trioboss.machines.attempt import CancelReason
from trioboss.model.check import check_duration
from trioboss.model.settle_and_claim import ClaimRequest

__all__ = ["Worker", "WorkerSettings", "WorkerStatistics"]

_LAST_FLUSH = 4.0  # seconds that dispatchers have to settle once all jobs have been told to end
_STUCK_AFTER = 1.0  # seconds in which a cancelled handler has to end
_LEAST_FLUSH = 0.5  # seconds for what is left after that


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """What `work` was asked for."""

    queue: str
    """A name, or a pattern with *."""
    handler: Callable[[Any], Any]
    slots: SlotSettings
    request: ClaimRequest
    thread: bool = False
    asyncio: bool = False
    name: str

    @property
    def is_pattern(self) -> bool:
        """Whether it is for all queues that match, also for those that come."""
        return "*" in self.queue

    def matches(self, queue: str) -> bool:
        """Whether jobs of this queue are for this worker. A pattern does not match queues of completions."""
        if not self.is_pattern:
            return queue == self.queue
        if queue.startswith("__") and not self.queue.startswith("__"):
            return False
        pattern = ".*".join(map(re.escape, self.queue.split("*")))
        return re.fullmatch(pattern, queue) is not None


@attrs.frozen
class WorkerStatistics:
    """What a worker is doing, and what its dispatchers have done."""

    id: UUID
    queue: str
    running: int
    stopping: bool
    dispatchers: tuple[DispatcherStatistics, ...]
    restarts: dict[str, int]
    """How often each of its actors crashed and was started again."""


@attrs.define(eq=False)
class Worker:
    """Runs the handler on the jobs of its queues. Made by `boss.work`."""

    id: UUID
    settings: WorkerSettings
    _port: WorkPort
    _reporter: Reporter
    _busy: BusyNotifier

    slots: Slots = attrs.field(init=False)
    checker: Checker = attrs.field(init=False)
    dispatchers: dict[str, Dispatcher] = attrs.field(factory=dict, init=False)
    _made: Mapping[str, datetime] = attrs.field(factory=dict, init=False)
    _renewer: Renewer = attrs.field(init=False)
    _bulk_poller: BulkPoller = attrs.field(init=False)
    _lease_watchers: LeaseWatchers = attrs.field(factory=LeaseWatchers, init=False)
    _intake: Supervisor | None = attrs.field(default=None, init=False)
    _keepers: Supervisor | None = attrs.field(default=None, init=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False)
    _grace: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """Ends with the grace of running jobs."""
    _last: float = attrs.field(default=math.inf, init=False)
    """When everything has to be over."""
    _intake_over: trio.Event = attrs.field(factory=trio.Event, init=False)
    """No dispatcher runs any more."""
    stopped: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __repr__(self) -> str:
        return f"<Worker {self.settings.queue!r} {self.id}>"

    def __attrs_post_init__(self) -> None:
        self.slots = Slots(
            self.settings.slots, self._make_handler(), self._port, self._lease_watchers, self._reporter
        )
        self.checker = Checker(self._port, self._reporter)
        self._renewer = Renewer(self._port, self._reporter)
        self._bulk_poller = BulkPoller(self.id, self._port, self._reporter)

    def _make_handler(self) -> Handler:
        if self.settings.thread:
            return ThreadHandler(self.settings.handler)
        if self.settings.asyncio:
            return asyncio_handler(self.settings.handler)
        return self.settings.handler

    def set_queues(self, made: Mapping[str, datetime]) -> None:
        """Dispatch for those of these queues that match, and no others. Each comes with the time when it was made:
        one that was deleted and made again knows nothing of our marks.
        """
        matching = {name: since for name, since in made.items() if self.settings.matches(name)}
        for name in self.dispatchers.keys() - matching.keys():
            self._drop(name)
        for name, dispatcher in self.dispatchers.items():
            if self._made[name] != matching[name]:
                dispatcher.queue_recreated()
        new = [self._add(name) for name in matching.keys() - self.dispatchers.keys()]
        self._made = matching
        if len(new) >= BULK_THRESHOLD:
            self._bulk_poller.bulk_poll(new)
        for dispatcher in new:
            self._start(dispatcher)

    def _drop(self, name: str) -> None:
        self.dispatchers.pop(name).stop()
        if not self.settings.is_pattern:
            text = "the queue is gone: its worker waits until it is made again"
            self._reporter.report(QueueWarning(name, "queue_gone", text))

    def reconnected(self) -> None:
        """The connection was lost and is back: marks may be gone, words may have been missed, leases be short."""
        resting = [dispatcher for dispatcher in self.dispatchers.values() if dispatcher.is_idle]
        if len(resting) >= BULK_THRESHOLD:
            self._bulk_poller.bulk_poll(resting)
        else:
            resting = []
        for dispatcher in set(self.dispatchers.values()).difference(resting):
            dispatcher.reconnected()
        self.checker.check(self.slots.running, CancelReason.LEASE_LOST)
        for running in self.slots.running:
            if running.job.heartbeat and running.job.auto_heartbeat and running.needs_lease:
                self._renewer.renew(running)

    def _add(self, name: str) -> Dispatcher:
        request = attrs.evolve(self.settings.request, worker=self.id)
        dispatcher = Dispatcher(
            name, request, self.slots, self.checker, self._port, self._reporter, self._busy
        )
        self.dispatchers[name] = dispatcher
        return dispatcher

    def _start(self, dispatcher: Dispatcher) -> None:
        if self._intake is not None and not self._stop.is_set():
            self._intake.start(f"dispatcher {dispatcher.queue}", dispatcher.run)

    def stop(self, grace: float) -> None:
        """Take no more jobs; running ones have ``grace`` seconds. `stopped` says when it is over.

        Whoever asks again can shorten the grace, and not lengthen it.
        """
        ends = trio.current_time() + check_duration("grace", grace)
        self._grace.deadline = min(self._grace.deadline, ends)
        self._stop.set()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until stopped. Also if it is cancelled, what it has leased is given back."""
        try:
            await self._port.register(self.id, self.settings.name, self.settings.queue)
            async with open_asyncio(self.settings.asyncio), trio.open_nursery() as nursery:
                self._start_keepers(nursery)
                try:
                    await self._take_in(task_status)
                finally:
                    self._intake_over.set()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._leave()
            self.stopped.set()

    async def _take_in(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as intake:
            self._intake = Supervisor(intake, self._reporter)
            for dispatcher in self.dispatchers.values():
                self._start(dispatcher)
            task_status.started()
            await self._stop.wait()
            await self._wind_down(intake)

    def _start_keepers(self, nursery: trio.Nursery) -> None:
        self._keepers = Supervisor(nursery, self._reporter)
        self._keepers.start("heartbeat", self._renewer.run)
        self._keepers.start("bulk_poll", self._bulk_poller.run)
        self._keepers.start("lease check", self.checker.run)
        nursery.start_soon(self._lease_watchers.run, nursery, self._renewer, self._reporter)
        nursery.start_soon(self.slots.unpack)
        nursery.start_soon(self._await_end)
        for place in range(self.settings.slots.concurrency):
            nursery.start_soon(self.slots.run, name=f"slot {self.settings.queue} {place}")

    async def _await_end(self) -> None:
        """Exchanges are shielded: when there is no time to stop in order, they have to be told."""
        try:
            await trio.sleep_forever()
        finally:
            self._set_deadline()
            with trio.CancelScope(shield=True):
                await self._give_up_stuck()

    async def _give_up_stuck(self) -> None:
        """A handler that ignores its cancellation keeps neither its own job nor those of its neighbours."""
        await self._intake_over.wait()
        with trio.move_on_after(_STUCK_AFTER) as timeout:
            await self._wait_until_empty()
        if timeout.cancelled_caught:
            for running in list(self.slots.running):
                running.cancel(CancelReason.STOPPING)
                running.give_up()
            await self._settle_rest(self._last_deadline())

    def _set_deadline(self) -> None:
        if self._last == math.inf:
            self._last = trio.current_time() + _LAST_FLUSH
            for dispatcher in self.dispatchers.values():
                dispatcher.set_deadline(self._last)

    async def _wind_down(self, intake: trio.Nursery) -> None:
        for dispatcher in self.dispatchers.values():
            dispatcher.stop()
        self.slots.give_back()
        with self._grace:
            await self._wait_until_empty()
        for running in list(self.slots.running):
            running.cancel(CancelReason.STOPPING)
        self._set_deadline()
        intake.cancel_scope.deadline = self._last

    async def _wait_until_empty(self) -> None:
        while self.slots.running:
            await self.slots.empty.wait()

    async def _leave(self) -> None:
        """Give back what is left, as far as the database takes it."""
        deadline = self._last_deadline()
        await self._settle_rest(deadline)
        with trio.move_on_at(deadline):
            try:
                await self._port.unregister(self.id)
            except DatabaseUnavailable as error:
                # Others will notice that it is gone.
                self._reporter.report(ErrorEvent(f"worker {self.settings.queue}", str(error)))

    def _last_deadline(self) -> float:
        return max(self._last, trio.current_time() + _LEAST_FLUSH)

    async def _settle_rest(self, deadline: float) -> None:
        self.slots.give_back()
        with trio.move_on_at(deadline):
            async with trio.open_nursery() as nursery:
                for dispatcher in self.dispatchers.values():
                    dispatcher.set_deadline(deadline)
                    if dispatcher.has_rest:
                        nursery.start_soon(dispatcher.settle_rest)

    def wip(self) -> WorkerWip:
        """What it is doing, in the words of the wip event."""
        numbers = [dispatcher.completer for dispatcher in self.dispatchers.values()]
        return WorkerWip(
            self.id,
            self.settings.queue,
            "stopping" if self._stop.is_set() else "active" if self.slots.running else "idle",
            len(self.slots.running),
            sum(completer.completed for completer in numbers),
            sum(completer.failed for completer in numbers),
        )

    def statistics(self) -> WorkerStatistics:
        """What it is doing now."""
        return WorkerStatistics(
            self.id,
            self.settings.queue,
            len(self.slots.running),
            self._stop.is_set(),
            tuple(dispatcher.statistics() for dispatcher in self.dispatchers.values()),
            {
                name: count
                for supervisor in (self._keepers, self._intake)
                if supervisor is not None
                for name, count in supervisor.statistics().restarts.items()
                if count
            },
        )
