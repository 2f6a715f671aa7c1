"""Boss at work: the actors of one boss, and how they are started and stopped."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import attrs
import trio

from trioboss.actors.clock import DatabaseClock
from trioboss.actors.dispatcher import BusyNotifier
from trioboss.actors.listener import Listener, ListenerStatistics
from trioboss.actors.maintenance import Maintenance, MaintenanceStatistics
from trioboss.actors.monitor import Monitor
from trioboss.actors.reporter import Reporter
from trioboss.actors.router import NotificationRouter
from trioboss.actors.scheduler import Scheduler, SchedulerStatistics
from trioboss.actors.supervisor import Supervisor, SupervisorStatistics
from trioboss.actors.worker import Worker, WorkerSettings, WorkerStatistics
from trioboss.errors import DatabaseUnavailable, UnknownQueue, UsageError
from trioboss.events import ErrorEvent, Stopped, Wip
from trioboss.postgres import Pool, PoolStatistics
from trioboss.runtime.adapter import StoreAdapter

__all__ = ["BossStatistics", "Runtime", "RuntimeSettings", "open_runtime"]

_WIP_INTERVAL = 2.0
_RETRY_DELAY = 1.0  # seconds until the database is asked again


@attrs.frozen(kw_only=True)
class RuntimeSettings:
    """How the actors of a boss behave."""

    supervise: bool
    schedule: bool
    worker_name: str
    grace: float
    presence_grace: float
    monitor_interval: float | None


@attrs.frozen
class BossStatistics:
    """What all actors of a boss are doing."""

    listener: ListenerStatistics
    workers: tuple[WorkerStatistics, ...]
    maintenance: MaintenanceStatistics | None
    scheduler: SchedulerStatistics | None
    supervisor: SupervisorStatistics
    pools: tuple[PoolStatistics, ...]


@attrs.define(eq=False, repr=False)
class Runtime:
    """Starts and stops the actors. One for each boss."""

    settings: RuntimeSettings
    adapter: StoreAdapter
    _pools: tuple[Pool, ...]
    _services: trio.Nursery
    _work: trio.Nursery
    reporter: Reporter
    router: NotificationRouter = attrs.field(factory=NotificationRouter, init=False)
    listener: Listener = attrs.field(init=False)
    maintenance: Maintenance | None = attrs.field(default=None, init=False)
    scheduler: Scheduler | None = attrs.field(default=None, init=False)
    _supervisor: Supervisor = attrs.field(init=False)
    _busy: BusyNotifier = attrs.field(factory=BusyNotifier, init=False)
    _stopping: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        clock = DatabaseClock(self.router.schedules_changed)
        self.listener = Listener(
            self.adapter,
            self.router,
            clock,
            self.reporter,
            settings.presence_grace,
            settings.supervise,
            self.adapter.pooled,
        )
        if settings.supervise:
            self.maintenance = Maintenance(
                self.adapter,
                self.listener,
                self.router.somebody_is_busy,
                self.reporter,
                self._busy,
                settings.presence_grace,
            )
        if settings.schedule:
            self.scheduler = Scheduler(self.adapter, clock, self.router.schedules_changed, self.reporter)
        self._supervisor = Supervisor(self._services, self.reporter)

    def start(self) -> None:
        """Start the services. They come up in the background."""
        self._supervisor.start("listener", self.listener.run)
        self._supervisor.start("queue watcher", self._follow_queues)
        self._supervisor.start("wip", self._report_wip)
        if (interval := self.settings.monitor_interval) is not None:
            self._supervisor.start("monitor", Monitor(self.adapter, self.reporter, interval).run)
        if self.maintenance is not None:
            self._supervisor.start("maintenance", self.maintenance.run)
        if self.scheduler is not None:
            self._supervisor.start("scheduler", self.scheduler.run)

    async def work(self, settings: WorkerSettings) -> Worker:
        """Start a worker, and return once it would hear of new jobs."""
        worker = Worker(uuid4(), settings, self.adapter, self.reporter, self._busy)
        await self.listener.wait_listening()
        await self._work.start(self._run_worker, worker)
        return worker

    async def _run_worker(self, worker: Worker, *, task_status: trio.TaskStatus[None]) -> None:
        if self._stopping:
            raise UsageError("this boss is stopping: it takes no more workers")
        # On the router first, so that it hears of queues that come while those that are there are read.
        self.router.workers[worker.id] = worker
        try:
            created_on = {queue.name: queue.created_on for queue in await self.adapter.get_queues()}
            if not worker.settings.is_pattern and worker.settings.queue not in created_on:
                raise UnknownQueue(worker.settings.queue)
            worker.set_queues(created_on)
            await worker.run(task_status=task_status)
        finally:
            del self.router.workers[worker.id]
            worker.stopped.set()  # also if it never ran: somebody may wait for it

    async def stop(self, grace: float) -> None:
        """Stop all workers, start no others: no new claims, running jobs have ``grace`` seconds, the rest goes back."""
        self._stopping = True
        workers = list(self.router.workers.values())
        for worker in workers:
            worker.stop(grace)
        for worker in workers:
            await worker.stopped.wait()

    def statistics(self) -> BossStatistics:
        """What all actors are doing now."""
        return BossStatistics(
            self.listener.statistics(),
            tuple(worker.statistics() for worker in self.router.workers.values()),
            None if self.maintenance is None else self.maintenance.statistics(),
            None if self.scheduler is None else self.scheduler.statistics(),
            self._supervisor.statistics(),
            tuple(pool.statistics() for pool in self._pools),
        )

    async def _follow_queues(self) -> None:
        """Workers pick up queues as they come and go."""
        while True:
            await self.router.queues_changed.wait()
            if not self.router.workers:
                continue
            try:
                created_on = {queue.name: queue.created_on for queue in await self.adapter.get_queues()}
            except DatabaseUnavailable as error:
                self.reporter.report(ErrorEvent("queue watcher", str(error)))
                self.router.queues_changed.ring()
                await trio.sleep(_RETRY_DELAY)
                continue
            for worker in self.router.workers.values():
                worker.set_queues(created_on)

    async def _report_wip(self) -> None:
        """Work in progress, as long as it changes and somebody listens."""
        last: tuple[Any, ...] = ()
        while True:
            await self.reporter.wait_wanted()
            wip = tuple(worker.wip() for worker in self.router.workers.values())
            if wip != last:
                self.reporter.report(Wip(wip))
            last = wip
            await trio.sleep(_WIP_INTERVAL)


@asynccontextmanager
async def open_runtime(
    settings: RuntimeSettings, adapter: StoreAdapter, pools: tuple[Pool, ...]
) -> AsyncIterator[Runtime]:
    """Run the actors for the length of a block. Nested so that leaving it is the order in which they stop."""
    reporter = Reporter()
    failure: Exception | None = None
    with _unwrapped():
        async with trio.open_nursery() as services:
            async with trio.open_nursery() as work:
                runtime = Runtime(settings, adapter, pools, services, work, reporter)
                runtime.start()
                try:
                    yield runtime
                except Exception as error:
                    failure = error
                await runtime.stop(settings.grace if failure is None else 0.0)
            services.cancel_scope.cancel()
    reporter.report(Stopped())
    reporter.close()
    if failure is not None:
        raise failure


@contextmanager
def _unwrapped() -> Iterator[None]:
    """A supervisor that gives up is the only thing that can go wrong in here: raise that, not groups around it."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__
