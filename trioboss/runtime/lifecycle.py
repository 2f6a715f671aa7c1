"""The actors of one boss: how they are connected with each other, started and stopped."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from datetime import datetime
from uuid import uuid4

import attrs
import trio

from trioboss.actors.actor import Supervisor, SupervisorStatistics
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.followers import Followers
from trioboss.actors.lag_monitor import LagMonitor, Lags
from trioboss.actors.listener import Listener, ListenerStatistics
from trioboss.actors.maintenance import Maintenance, MaintenanceStatistics
from trioboss.actors.monitor import Monitor
from trioboss.actors.reporter import Reporter
from trioboss.actors.router import NotificationRouter
from trioboss.actors.scheduler import Scheduler, SchedulerStatistics
from trioboss.actors.worker import Worker, WorkerSettings, WorkerStatistics
from trioboss.errors import DatabaseUnavailable, UnknownQueue, UsageError
from trioboss.events import ErrorEvent, JobsRecovered, Stopped, Wip
from trioboss.machines.maintenance import BusyNotifier, MaintenanceMachine
from trioboss.model.check import check_duration, checked
from trioboss.model.texts import count, show_seconds
from trioboss.postgres import Pool, PoolStatistics
from trioboss.runtime.adapter import BossIdentity, ListenAdapter, StoreAdapter

__all__ = ["BossStatistics", "Runtime", "RuntimeSettings", "run_actors"]

_WIP_INTERVAL = 2.0  # seconds between events of work in progress
_LAST_CANCEL_GRACE = 0.3  # seconds that the server has to confirm a cancellation when the boss has stopped
_RETRY_DELAY = 1.0  # seconds until the queues are read again after a failure


@attrs.frozen(kw_only=True)
class RuntimeSettings:
    """How the actors of a boss behave."""

    supervise: bool
    """Whether this boss may do maintenance for all."""
    schedule: bool
    """Whether this boss fires the ticks of schedules."""
    worker_name: str
    grace: float = checked(check_duration, optional=False)
    """Seconds that running jobs have when the boss stops."""
    presence_grace: float = checked(check_duration, optional=False, low=2.0)
    """Seconds after which other bosses take the jobs of a boss that is gone."""
    monitor_interval: float | None = checked(check_duration, low=1.0)
    """Seconds between events that count jobs by state."""
    maintenance_interval: float = checked(check_duration, default=60.0, optional=False, low=1.0)
    """Seconds between rounds over all leases while no jobs are active."""
    prune_interval: float = checked(check_duration, default=3600.0, optional=False, low=1.0)
    """Seconds between deletions of what has outlived its time."""
    warning_interval: float = checked(check_duration, default=5.0, optional=False, low=0.1)
    """Seconds between checks for queues that are too long."""


@attrs.frozen
class BossStatistics:
    """The state of all actors of a boss."""

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
    identity: BossIdentity
    adapter: StoreAdapter
    _listen_adapter: ListenAdapter
    _pools: tuple[Pool, ...]
    _busy: BusyNotifier
    _services: trio.Nursery
    _lifespans: trio.Nursery
    _work: trio.Nursery
    reporter: Reporter
    router: NotificationRouter = attrs.field(init=False)
    listener: Listener = attrs.field(init=False)
    maintenance: Maintenance | None = attrs.field(default=None, init=False)
    scheduler: Scheduler | None = attrs.field(default=None, init=False)
    _supervisor: Supervisor = attrs.field(init=False)
    _followers: Followers = attrs.field(init=False)
    _lags: Lags = attrs.field(factory=Lags, init=False)
    _stopping: bool = attrs.field(default=False, init=False)
    unsettled: int = attrs.field(default=0, init=False)
    _workers_ended: trio.Event = attrs.field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        self._followers = Followers(self.adapter, self.reporter)
        self.router = NotificationRouter(self._followers)
        clock = DatabaseClock(self.router.schedules_changed)
        self.listener = Listener(
            self._listen_adapter,
            self.router,
            clock,
            self.reporter,
            settings.presence_grace,
            settings.supervise,
            self.identity.is_pooled,
        )
        if settings.supervise:
            self.maintenance = Maintenance(
                self.adapter,
                self.listener,
                self.router.boss_is_busy,
                self.router.warning_sizes_changed,
                self.reporter,
                self._busy,
                settings.presence_grace,
                settings.warning_interval,
                MaintenanceMachine(settings.maintenance_interval, settings.prune_interval),
            )
        if settings.schedule:
            self.scheduler = Scheduler(self.adapter, clock, self.router.schedules_changed, self.reporter)
        self._supervisor = Supervisor(self._services, self.reporter)

    def start(self) -> None:
        """Start the services. They come up in the background."""
        self._supervisor.start("listener", self.listener.run)
        self._supervisor.start("queue list", self._follow_queues)
        self._supervisor.start("wip", self._report_wip)
        self._supervisor.start("followers", self._followers.run)
        self._supervisor.start("loop lag", LagMonitor(self.adapter, self.reporter, self._lags).run)
        if (interval := self.settings.monitor_interval) is not None:
            self._supervisor.start("monitor", Monitor(self.adapter, self.reporter, interval).run)
        if self.maintenance is not None:
            self._supervisor.start("maintenance", self.maintenance.run)
        if self.scheduler is not None:
            self._supervisor.start("scheduler", self.scheduler.run)

    async def work(self, settings: WorkerSettings) -> Worker:
        """Start a worker, and return once it is notified of new jobs."""
        worker = Worker(
            uuid4(), settings, self.adapter, self.reporter, self._busy, self._followers, self._lags
        )
        # Before the worker claims: without a listener it would wait for notifications that cannot arrive.
        await self.listener.wait_listening()
        await self._work.start(self._run_worker, worker)
        return worker

    async def open_lifespan(self, manager: AbstractAsyncContextManager[object]) -> None:
        """Enter a manager, in a task of its own; it is left when all workers have ended."""
        await self._lifespans.start(self._keep_open, manager)

    async def _keep_open(
        self, manager: AbstractAsyncContextManager[object], *, task_status: trio.TaskStatus[None]
    ) -> None:
        async with manager:
            task_status.started()
            await self._workers_ended.wait()

    def workers_ended(self) -> None:
        """No job runs any more, and none will: lifespans can be left."""
        self._workers_ended.set()

    async def _run_worker(self, worker: Worker, *, task_status: trio.TaskStatus[None]) -> None:
        if self._stopping:
            raise UsageError("this boss is stopping: it takes no more workers")
        # The worker is registered with the router before the queues are read: a queue that is created meanwhile is not
        # missed.
        self.router.workers[worker.id] = worker
        try:
            queues = await self._read_queues()
            if not worker.settings.is_pattern and worker.settings.queue not in queues:
                raise UnknownQueue(worker.settings.queue)
            worker.set_queues(queues)
            await worker.run(task_status=task_status)
        finally:
            del self.router.workers[worker.id]
            self.unsettled += worker.unsettled
            worker.stopped.set()  # also if it never ran: somebody may wait for it

    async def _read_queues(self) -> dict[str, datetime]:
        """When each queue was created, by name."""
        return {queue.name: queue.created_on for queue in await self.adapter.get_queues()}

    async def stop(self, grace: float) -> None:
        """Stop all workers, and start no more: running jobs have ``grace`` seconds, those in buffers are released."""
        self._stopping = True
        workers = list(self.router.workers.values())
        for worker in workers:
            worker.stop(grace)
        if grace > 0:
            self._log_running([worker.statistics() for worker in workers], grace)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hurry_after, grace)
            for worker in workers:
                await worker.stopped.wait()
            nursery.cancel_scope.cancel()

    def _log_running(self, workers: Sequence[WorkerStatistics], grace: float) -> None:
        """Tell operators what the stop waits for, and for how long it may."""
        running = sum(worker.running for worker in workers)
        if not running:
            return
        longest = max(filter(None, (each.longest for each in workers)), key=lambda job: job[2], default=None)
        which = "" if longest is None else f", longest {show_seconds(longest[2])}: {longest[0]} {longest[1]}"
        self.reporter.logger.info(
            "stopping: %s left for %s%s",
            show_seconds(grace),
            count(running, "running job"),
            which,
            extra={"worker": self.settings.worker_name},
        )

    async def _hurry_after(self, grace: float) -> None:
        """Once the grace is over, a server that does not answer must not keep the program: connections are closed soon
        after a cancellation, and not only when the server has confirmed it.
        """
        await trio.sleep(grace)
        self.limit_cancel_grace()

    def limit_cancel_grace(self) -> None:
        """Close connections soon after a cancellation."""
        self._listen_adapter.limit_cancel_grace(_LAST_CANCEL_GRACE)
        for pool in self._pools:
            pool.limit_cancel_grace(_LAST_CANCEL_GRACE)

    async def maintain(self, queue: str | None) -> None:
        """Rescue leases and prune now, whoever leads."""
        grace = self.settings.presence_grace
        certain = self.listener.listening_for >= grace
        rescue = await self.adapter.rescue_leases(grace, 0.0, warnings=False, certain=certain, queue=queue)
        for name, outcome, ids in rescue.ended:
            self.reporter.report(JobsRecovered(name, ids, outcome))
        await self.adapter.prune(queue)

    def statistics(self) -> BossStatistics:
        """The state of all actors now."""
        return BossStatistics(
            self.listener.statistics(),
            tuple(worker.statistics() for worker in self.router.workers.values()),
            None if self.maintenance is None else self.maintenance.statistics(),
            None if self.scheduler is None else self.scheduler.statistics(),
            self._supervisor.statistics(),
            tuple(pool.statistics() for pool in self._pools),
        )

    async def _follow_queues(self) -> None:
        """Tell the workers when queues are created or deleted."""
        while True:
            await self.router.queues_changed.wait()
            # Nobody would use the answer: a worker that starts reads the queues itself.
            if not self.router.workers:
                continue
            try:
                queues = await self._read_queues()
            except DatabaseUnavailable as error:
                self.reporter.report(ErrorEvent("queue list", str(error)))
                self.router.queues_changed.ring()
                await trio.sleep(_RETRY_DELAY)
                continue
            for worker in self.router.workers.values():
                worker.set_queues(queues)

    async def _report_wip(self) -> None:
        """Report work in progress when it has changed, and while jobs run, if somebody reads such events."""
        last: list[object] = []
        while True:
            # Without a reader there is no timer: an idle boss does not wake up for nobody.
            await self.reporter.wait_demanded()
            wip = tuple(worker.wip() for worker in self.router.workers.values())
            # Without the times, which are converted from another clock each time.
            seen: list[object] = [(each.id, each.state, each.completed, each.failed) for each in wip]
            if seen != last or any(each.count for each in wip):
                self.reporter.report(Wip(wip))
            last = seen
            await trio.sleep(_WIP_INTERVAL)


@asynccontextmanager
async def run_actors(
    settings: RuntimeSettings,
    identity: BossIdentity,
    adapter: StoreAdapter,
    listen_adapter: ListenAdapter,
    pools: tuple[Pool, ...],
    busy: BusyNotifier,
) -> AsyncIterator[Runtime]:
    """Run the actors for the length of a block. The nesting is the order in which they stop: workers first, then the
    lifespans that their jobs use, then the services.
    """
    reporter = Reporter(settings.worker_name)
    failure: Exception | None = None  # of the block; kept out of the nurseries, which would wrap it in groups
    with _unwrapped():
        async with trio.open_nursery() as services:
            async with trio.open_nursery() as lifespans:
                async with trio.open_nursery() as work:
                    nurseries = (services, lifespans, work)
                    runtime = Runtime(
                        settings, identity, adapter, listen_adapter, pools, busy, *nurseries, reporter
                    )
                    runtime.start()
                    try:
                        yield runtime
                    except Exception as error:
                        failure = error
                    await runtime.stop(settings.grace if failure is None else 0.0)
                runtime.workers_ended()
            # Workers and lifespans have ended: nothing that is left needs an answer of the server.
            runtime.limit_cancel_grace()
            services.cancel_scope.cancel()
    reporter.report(Stopped(runtime.unsettled))
    reporter.close()
    if failure is not None:
        raise failure


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise the error of a supervisor that gave up without the groups around it: nothing else can fail in here."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__
