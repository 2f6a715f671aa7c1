"""Declares workers and schedules, for `trioboss worker` and for `open_boss(app=…)`."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from trioboss.api.boss import Boss
from trioboss.api.deploying import deploy
from trioboss.errors import UsageError
from trioboss.model.deployment import Declaration, DeclaredQueue, DeclaredSchedule
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
    """Workers and schedules, declared beside their handlers. Nothing happens until the app is started.

    ``label``: the name under which the database remembers what belongs to the app, by default `module:name`. An app
    creates, changes and prunes what has its label, and nothing else.
    """

    label: str | None = attrs.field(default=None, kw_only=True)
    _module: str = attrs.field(factory=lambda: _find_module(), init=False)
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
        await deploy(boss, self.declaration(), self.path)
        for worker in self.workers:
            if queues is None or worker.queue in queues:
                more = {} if concurrency is None else {"concurrency": concurrency}
                await boss.work(worker.queue, worker.handler, **{**worker.work_options, **more})

    @property
    def path(self) -> str:
        """How the command line finds the app: `module:name`; only the module, if no variable of it is the app."""
        module = sys.modules.get(self._module)
        names = [name for name, value in vars(module).items() if value is self] if module else []
        shown = self._module
        if module is not None and shown == "__main__" and getattr(module, "__file__", None):
            shown = Path(str(module.__file__)).stem
        return ":".join([shown, *names[:1]])

    def declaration(self) -> Declaration:
        """All queues and schedules that the app needs."""
        options: dict[str, dict[str, Any]] = {}
        for worker in self.workers:
            if "*" not in worker.queue:
                options.setdefault(worker.queue, {}).update(worker.queue_options)
        queues = tuple(DeclaredQueue(name, given) for name, given in options.items())
        schedules = tuple(_declared_schedule(schedule) for schedule in self.schedules)
        return Declaration(self.label or self.path, queues, schedules)


def _declared_schedule(schedule: ScheduleDeclaration) -> DeclaredSchedule:
    own = {
        name: schedule.options[name] for name in ("data", "tz", "key", "missed") if name in schedule.options
    }
    options = {name: value for name, value in schedule.options.items() if name not in own}
    return DeclaredSchedule(schedule.queue, schedule.cron, options=options, **own)


def _find_module() -> str:
    """The name of the module that makes the app: the first frame outside of this module and of attrs."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in (__name__, None):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "__main__"))
