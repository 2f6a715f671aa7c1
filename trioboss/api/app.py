"""Declares workers and schedules, for `trioboss worker` and for `open_boss(app=…)`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from trioboss.api.boss import Boss
from trioboss.errors import QueueExists, UsageError
from trioboss.model.queue import QueueSettings

__all__ = ["App", "ScheduleDeclaration", "WorkerDeclaration"]

F = TypeVar("F", bound=Callable[..., Any])

_QUEUE_OPTIONS = frozenset(field.name for field in attrs.fields(QueueSettings))
_WORK_OPTIONS = frozenset(
    {"concurrency", "batch_size", "prefetch", "min_priority", "max_priority", "priority", "thread", "asyncio"}
)


@attrs.frozen
class WorkerDeclaration:
    """A handler, the queue it works on, and the options of both."""

    queue: str
    handler: Callable[..., Any]
    queue_options: Mapping[str, Any]
    work_options: Mapping[str, Any]


@attrs.frozen
class ScheduleDeclaration:
    """A schedule for a declared worker's queue."""

    queue: str
    cron: str
    options: Mapping[str, Any]


@attrs.define
class App:
    """Workers and schedules, declared beside their handlers. Nothing happens until the app is started."""

    workers: list[WorkerDeclaration] = attrs.field(factory=list, init=False)
    schedules: list[ScheduleDeclaration] = attrs.field(factory=list, init=False)

    def worker(self, queue: str, **options: Any) -> Callable[[F], F]:
        """Declare that a function handles the jobs of a queue.

        Takes the options of `work` and of `create_queue`; the queue is created, or its options are changed.
        """
        if unknown := options.keys() - _QUEUE_OPTIONS - _WORK_OPTIONS:
            raise TypeError(f"worker() got an unexpected option {min(unknown)!r}")
        queue_options = {name: value for name, value in options.items() if name in _QUEUE_OPTIONS}
        work_options = {name: value for name, value in options.items() if name in _WORK_OPTIONS}
        QueueSettings(**queue_options)

        def declare(handler: F) -> F:
            self.workers.append(WorkerDeclaration(queue, handler, queue_options, work_options))
            return handler

        return declare

    def schedule(self, cron: str, **options: Any) -> Callable[[F], F]:
        """Declare that a job is sent to the queue of a worker at every tick. The decorator belongs above `worker`.

        Takes the options of `boss.schedule`: data, tz, key, missed, and those of `send`.
        """

        def declare(handler: F) -> F:
            queues = [worker.queue for worker in self.workers if worker.handler is handler]
            if not queues:
                raise UsageError(
                    f"schedule: {handler!r} is not declared as a worker: put @app.schedule above @app.worker"
                )
            self.schedules.append(ScheduleDeclaration(queues[-1], cron, options))
            return handler

        return declare

    async def start(
        self, boss: Boss, *, queues: list[str] | None = None, concurrency: int | None = None
    ) -> None:
        """Create the declared queues and schedules, and start the workers, or those of some queues."""
        for worker in self.workers:
            if "*" not in worker.queue:
                await self._ensure_queue(boss, worker)
        for schedule in self.schedules:
            await boss.schedule(schedule.queue, schedule.cron, **schedule.options)
        for worker in self.workers:
            if queues is None or worker.queue in queues:
                more = {} if concurrency is None else {"concurrency": concurrency}
                await boss.work(worker.queue, worker.handler, **{**worker.work_options, **more})

    async def _ensure_queue(self, boss: Boss, worker: WorkerDeclaration) -> None:
        """Create the queue, or change its declared options. Options that are not declared stay as they are."""
        existing = await boss.get_queue(worker.queue)
        if existing is None:
            await boss.create_queue(worker.queue, **worker.queue_options)
            return
        asked = QueueSettings(**worker.queue_options)
        changed = {
            name: value
            for name, value in worker.queue_options.items()
            if getattr(asked, name) != getattr(existing, name)
        }
        if fixed := changed.keys() & {"policy", "partition"}:
            raise QueueExists(
                worker.queue, {name: (getattr(existing, name), changed[name]) for name in sorted(fixed)}
            )
        if changed:
            await boss.update_queue(worker.queue, **changed)
