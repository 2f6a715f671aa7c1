"""One `work` call: its slots, a dispatcher for each queue, and the order in which they stop."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import attrs
import trio

from trioboss.actors.actor import Supervisor
from trioboss.actors.attempts import LeaseWatchers, Renewer
from trioboss.actors.bulk_poller import BULK_THRESHOLD, BulkPoller
from trioboss.actors.dispatcher import Dispatcher
from trioboss.actors.followers import Followers
from trioboss.actors.handlers import HandlerStack, make_stack, open_asyncio
from trioboss.actors.lag_monitor import Lags
from trioboss.actors.lease_checker import LeaseChecker
from trioboss.actors.leased_job import CallSettings, LeasedJob
from trioboss.actors.ports import Registration, WorkPort
from trioboss.actors.reporter import Reporter
from trioboss.actors.slots import Slots
from trioboss.actors.worker_settings import WorkerSettings as WorkerSettings
from trioboss.actors.worker_statistics import WorkerStatistics as WorkerStatistics
from trioboss.actors.worker_statistics import count_restarts, describe_wip
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, QueueWarning, WorkerWip
from trioboss.machines.attempt import CancelReason
from trioboss.machines.lease import STUCK_AFTER
from trioboss.machines.maintenance import BusyNotifier
from trioboss.model.check import check_duration

__all__ = ["Worker", "WorkerSettings", "WorkerStatistics"]

# Seconds that dispatchers have to settle outcomes, after all handlers were cancelled. Longer than STUCK_AFTER, so that
# attempts whose handlers are given up can be settled, too.
_LAST_SETTLING = 1.6
_SHORTEST_SETTLING = 0.3  # seconds for what is left after that


@attrs.define(eq=False)
class Worker:
    """Runs the handler on the jobs of its queues. Made by `boss.work`."""

    id: UUID
    settings: WorkerSettings
    _port: WorkPort
    _reporter: Reporter
    _busy: BusyNotifier
    _followers: Followers | None = None
    _lags: Lags = attrs.field(factory=Lags)

    slots: Slots = attrs.field(init=False)
    lease_checker: LeaseChecker = attrs.field(init=False)
    dispatchers: dict[str, Dispatcher] = attrs.field(factory=dict, init=False)
    is_registered: bool = attrs.field(default=False, init=False)
    """Whether other bosses have to see it in the database."""
    stopped: trio.Event = attrs.field(factory=trio.Event, init=False)
    """Set when the worker has ended."""
    _created_at: float = attrs.field(factory=trio.current_time, init=False)
    _created_on: Mapping[str, datetime] = attrs.field(factory=dict, init=False)
    """When the queue of each dispatcher was created."""
    _stack: HandlerStack = attrs.field(init=False)
    _renewer: Renewer = attrs.field(init=False)
    _bulk_poller: BulkPoller = attrs.field(init=False)
    _lease_watchers: LeaseWatchers = attrs.field(init=False)
    _dispatching: Supervisor | None = attrs.field(default=None, init=False)
    _services: Supervisor | None = attrs.field(default=None, init=False)
    _stop: trio.Event = attrs.field(factory=trio.Event, init=False)
    _grace: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """Ends with the grace of running jobs."""
    _deadline: float = attrs.field(default=math.inf, init=False)
    """When everything has to be settled."""
    _dispatch_scope: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    """Of the dispatchers."""
    unsettled: int = attrs.field(default=0, init=False)
    """How many outcomes it could not settle before it ended. Maintenance releases these jobs."""
    _dispatchers_ended: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __repr__(self) -> str:
        return f"<Worker {self.settings.queue!r} {self.id}>"

    def __attrs_post_init__(self) -> None:
        self._stack = self._make_stack()
        self._lease_watchers = LeaseWatchers(self._lags)
        self.slots = Slots(self.settings.slots, self._stack, self._lease_watchers, self._reporter)
        self.lease_checker = LeaseChecker(self._port, self._reporter)
        self._renewer = Renewer(self._port, self._reporter)
        self._bulk_poller = BulkPoller(self.id, self._port, self._reporter)

    def _make_stack(self) -> HandlerStack:
        settings = self.settings
        call_settings = CallSettings(
            port=self._port,
            reporter=self._reporter,
            token=trio.lowlevel.current_trio_token(),
            max_bytes=settings.slots.max_bytes,
            surroundings=settings.surroundings,
            decode=settings.decode,
            is_trio=not settings.thread and not settings.asyncio,
            redact=settings.redact,
        )
        return make_stack(
            settings.handler,
            call_settings,
            settings.job_classes,
            settings.middleware,
            thread=settings.thread,
            asyncio=settings.asyncio,
            batches=settings.slots.batch_size is not None,
        )

    @property
    def registration(self) -> Registration:
        """The worker, as other bosses see it."""
        return Registration(self.id, self.settings.name, self.settings.queue, self.settings.slots.most)

    # -- messages

    def set_queues(self, created_on: Mapping[str, datetime]) -> None:
        """Dispatch for those of these queues that match, and no others.

        Each comes with the time of its creation: a queue that was deleted and created again has lost our idle marker.
        """
        matching = {name: since for name, since in created_on.items() if self.settings.matches(name)}
        gone = self.dispatchers.keys() - matching.keys()
        for name in gone:
            self._remove(name)
        for name, dispatcher in self.dispatchers.items():
            # A queue of the same name with another time of creation: its idle marker went with the old one.
            if self._created_on[name] != matching[name]:
                gone.add(name)
                dispatcher.queue_recreated()
        # The jobs were deleted along with their queues, and their handlers have to be cancelled.
        lost = [running for running in self.slots.running if running.job.queue in gone] if gone else []
        self.lease_checker.check(lost, CancelReason.CANCELLED)
        new = [self._add(name) for name in matching.keys() - self.dispatchers.keys()]
        self._created_on = matching
        # Before they start: a dispatcher that starts first claims by itself.
        if len(new) >= BULK_THRESHOLD:
            self._bulk_poller.bulk_poll(new)
        for dispatcher in new:
            self._start(dispatcher)

    def _add(self, name: str) -> Dispatcher:
        request = attrs.evolve(self.settings.request, worker=self.id)
        dispatcher = Dispatcher(
            name,
            request,
            self.slots,
            self.lease_checker,
            self._port,
            self._reporter,
            self._busy,
            self._followers,
        )
        self.dispatchers[name] = dispatcher
        return dispatcher

    def _remove(self, name: str) -> None:
        self.dispatchers.pop(name).stop()
        # Queues of a pattern come and go; a worker that names its queue has nothing else to do.
        if not self.settings.is_pattern:
            text = "the queue was deleted: its worker waits until it is created again"
            self._reporter.report(QueueWarning(name, "queue_gone", text))

    def _start(self, dispatcher: Dispatcher) -> None:
        if self._dispatching is not None and not self._stop.is_set():
            self._dispatching.start(f"dispatcher {dispatcher.queue}", dispatcher.run)

    def reconnected(self) -> None:
        """The listener was disconnected: idle markers may be gone, notifications missed, leases close to expiry."""
        idle = [dispatcher for dispatcher in self.dispatchers.values() if dispatcher.is_idle]
        if len(idle) >= BULK_THRESHOLD:
            self._bulk_poller.bulk_poll(idle)
        else:
            idle = []
        for dispatcher in set(self.dispatchers.values()).difference(idle):
            dispatcher.reconnected()
        self.lease_checker.check(self.slots.running, CancelReason.LEASE_LOST)
        # At once, and not with the next regular heartbeat: the outage may have cost renewals.
        for running in self.slots.running:
            if running.job.heartbeat and running.job.auto_heartbeat and running.needs_lease:
                self._renewer.renew(running)

    def cancelled_elsewhere(self, id: UUID) -> None:
        """A notification names a job that was cancelled: check it. A job not found here may be in the claim under
        way.
        """
        attempts = [running for running in self.slots.running if running.job.id == id]
        self.lease_checker.check(attempts, CancelReason.CANCELLED)
        if not attempts:
            for dispatcher in self.dispatchers.values():
                dispatcher.cancelled_elsewhere()

    def find_own(self) -> list[LeasedJob[Any]]:
        """The jobs whose handler is calling this."""
        stack = self._stack
        return [stack.job_class(each.job, each, stack.settings) for each in self.slots.find_own()]

    def check_leases(self) -> None:
        """All jobs may have been deleted: check the leases of those that run here."""
        self.lease_checker.check(self.slots.running, CancelReason.CANCELLED)

    def presence_lost(self) -> None:
        """Other bosses may take the jobs of this one: cancel them all, and claim no more."""
        for running in list(self.slots.running):
            running.cancel(CancelReason.LEASE_LOST)
        for dispatcher in self.dispatchers.values():
            dispatcher.presence_lost()

    def stop(self, grace: float) -> None:
        """Claim no more jobs; running ones have ``grace`` seconds. `stopped` is set when it has ended.

        A second call can shorten the grace, but not lengthen it.
        """
        ends = trio.current_time() + check_duration("grace", grace)
        self._grace.deadline = min(self._grace.deadline, ends)
        if self._deadline < math.inf:
            self._set_deadline(self._grace.deadline + _LAST_SETTLING)
        self._stop.set()

    # -- its life

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until stopped. All its leases are released at the end, also if it is cancelled."""
        try:
            async with self.settings.lifespan():
                await self._run(task_status)
        finally:
            self.stopped.set()

    async def _run(self, task_status: trio.TaskStatus[None]) -> None:
        try:
            # Before the first claim: rescue_leases.sql counts a lease whose worker has no row as lost.
            self.is_registered = True
            await self._port.register(self.registration)
            async with open_asyncio(self.settings.asyncio), trio.open_nursery() as nursery:
                self._start_services(nursery)
                try:
                    await self._dispatch(task_status)
                finally:
                    self._dispatchers_ended.set()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await self._leave()

    def _start_services(self, nursery: trio.Nursery) -> None:
        self._services = Supervisor(nursery, self._reporter)
        self._services.start("heartbeat", self._renewer.run)
        self._services.start("bulk_poll", self._bulk_poller.run)
        self._services.start("lease check", self.lease_checker.run)
        nursery.start_soon(self._lease_watchers.run, nursery, self._renewer, self._reporter)
        nursery.start_soon(self.slots.unpack)
        nursery.start_soon(self._settle_when_cancelled)
        for number in range(self.settings.slots.concurrency):
            nursery.start_soon(self.slots.run, name=f"slot {self.settings.queue} {number}")

    async def _dispatch(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            self._dispatch_scope = nursery.cancel_scope
            self._dispatching = Supervisor(nursery, self._reporter)
            for dispatcher in self.dispatchers.values():
                self._start(dispatcher)
            task_status.started()
            await self._stop.wait()
            await self._drain()

    async def _drain(self) -> None:
        """The graceful stop: no claims, the buffer is released, running jobs get their grace and are then cancelled.

        Outcomes have that time, too: the database may not answer, or an open transaction may have locked the job.
        """
        # The buffer is released before running jobs get their grace: other workers can start those jobs meanwhile.
        for dispatcher in self.dispatchers.values():
            dispatcher.stop()
        self.slots.give_back()
        with self._grace:
            await self._wait_until_empty()
        for running in list(self.slots.running):
            running.cancel(CancelReason.STOPPING)
        self._set_deadline(self._grace.deadline + _LAST_SETTLING)

    async def _wait_until_empty(self) -> None:
        while self.slots.running:
            await self.slots.empty.wait()

    def _set_deadline(self, deadline: float) -> None:
        """Only an earlier one than before has an effect."""
        if deadline < self._deadline:
            self._deadline = self._dispatch_scope.deadline = deadline
            for dispatcher in self.dispatchers.values():
                dispatcher.set_deadline(deadline)

    async def _settle_when_cancelled(self) -> None:
        """Give statements a deadline when the nursery of the worker is cancelled: they are shielded from it."""
        try:
            await trio.sleep_forever()
        finally:
            self._set_deadline(trio.current_time() + _LAST_SETTLING)
            with trio.CancelScope(shield=True):
                await self._give_up_stuck()

    async def _give_up_stuck(self) -> None:
        """Settle without the handlers that ignore their cancellation. The nursery waits for them, the jobs do not."""
        await self._dispatchers_ended.wait()
        with trio.move_on_after(STUCK_AFTER) as timeout:
            await self._wait_until_empty()
        if timeout.cancelled_caught:
            for running in list(self.slots.running):
                running.cancel(CancelReason.STOPPING)
                running.give_up()
            await self._settle_rest(self._last_deadline())

    async def _leave(self) -> None:
        """Release what is left, and remove the registration, as far as the database answers."""
        self.is_registered = False
        deadline = self._last_deadline()
        # Settled first: without the row of the worker its leases would be lost, which spends retries.
        await self._settle_rest(deadline)
        self.unsettled = sum(1 for each in self.dispatchers.values() for _ in each.completer)
        with trio.move_on_at(deadline):
            try:
                await self._port.unregister(self.id)
            except DatabaseUnavailable as error:
                # The leader will find that its session is gone.
                self._reporter.report(ErrorEvent(f"worker {self.settings.queue}", str(error)))

    def _last_deadline(self) -> float:
        return max(self._deadline, trio.current_time() + _SHORTEST_SETTLING)

    async def _settle_rest(self, deadline: float) -> None:
        self.slots.give_back()
        with trio.move_on_at(deadline):
            async with trio.open_nursery() as nursery:
                for dispatcher in self.dispatchers.values():
                    dispatcher.set_deadline(deadline)
                    if dispatcher.has_rest:
                        nursery.start_soon(dispatcher.settle_rest)

    # -- questions

    def wip(self) -> WorkerWip:
        """Its work in progress."""
        completers = [dispatcher.completer for dispatcher in self.dispatchers.values()]
        claims = [each.claimed_at for each in self.dispatchers.values() if each.claimed_at]
        stopping = self._stop.is_set()
        return describe_wip(
            self.id, self.settings, stopping, self._created_at, completers, self.slots.running, claims
        )

    def statistics(self) -> WorkerStatistics:
        """Its state now."""
        return WorkerStatistics(
            self.id,
            self.settings.queue,
            len(self.slots.running),
            self._stop.is_set(),
            tuple(dispatcher.statistics() for dispatcher in self.dispatchers.values()),
            count_restarts([each for each in (self._services, self._dispatching) if each is not None]),
            self.slots.find_longest(),
        )
