"""Declares queues, workers and schedules, for `trioboss worker` and for `open_boss(app=…)`."""

import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import attrs

from trioboss.actors.handlers import check_handler
from trioboss.api.boss import Boss
from trioboss.api.deploying import deploy
from trioboss.api.handlers import Lifespan, Middleware, WorkOptions, check_all_middleware, check_middleware
from trioboss.api.running_job import AsyncioJob, D, RunningJob, ThreadJob
from trioboss.api.tasks import Task
from trioboss.api.working import MiddlewareT
from trioboss.errors import UsageError
from trioboss.model.check import check_name, shown
from trioboss.model.decoding import Decoder, make_decoder
from trioboss.model.deployment import Declaration, DeclaredQueue, DeclaredSchedule
from trioboss.model.job import SendOptions
from trioboss.model.option_names import check_known, checks_init_keywords, checks_keywords
from trioboss.model.payload import JsonInput
from trioboss.model.queue import QueueOptions, QueueSettings, make_settings
from trioboss.model.schedule import ScheduleOptions

__all__ = ["App", "ScheduleDeclaration", "WorkerDeclaration", "WorkerOptions"]

_QUEUE_OPTIONS = frozenset(field.name for field in attrs.fields(QueueSettings))
_KINDS = ("batch_size", "thread", "asyncio")
_WORK_OPTIONS = frozenset((*WorkOptions.__annotations__, *_KINDS))


class WorkerOptions(WorkOptions, QueueOptions, total=False):
    """The options of `app.worker`: those of `work` and those of `create_queue`."""


@attrs.frozen
class WorkerDeclaration:
    """A handler, the queue it works on, and the options of both."""

    queue: str
    handler: Callable[..., Any]
    queue_options: Mapping[str, Any]
    work_options: Mapping[str, Any]
    task: Task[Any]
    """The decorated function."""


@attrs.frozen
class ScheduleDeclaration:
    """A schedule for a declared worker's queue."""

    queue: str
    cron: str
    options: Mapping[str, Any]


def _check_label(label: object) -> str | None:
    if label is not None and (not isinstance(label, str) or not label):
        raise UsageError(f"label: {shown(label)} is not a label: use a text that is not empty")
    return label


@checks_keywords
@checks_init_keywords
@attrs.define
class App:
    """Queues, workers and schedules, declared beside their handlers. Nothing happens until the app is started.

    ``lifespan``: an async context manager function, which gets the boss. It is entered before the first job, and left
    after the last; what it yields is `job.context`. ``middleware``: async functions ``(job, call_next)`` around every
    handler of the app, the first one outermost.

    ``label``: the name under which the database has what belongs to the app, by default ``module:name``. An app
    creates, changes and prunes what has its label, and nothing else. All versions of an app need the same label, and
    each app of a database a label of its own: ``trioboss migrate --prune`` refuses an app without one, because modules
    of two programs may have the same name.
    """

    lifespan: Lifespan | None = None
    middleware: list[Middleware] = attrs.field(factory=list, converter=check_all_middleware)
    label: str | None = attrs.field(default=None, kw_only=True, converter=_check_label)
    _module: str = attrs.field(factory=lambda: _find_module(), init=False)
    queues: dict[str, Mapping[str, Any]] = attrs.field(factory=dict, init=False)
    """The queues that `queue` declares, with their options."""
    workers: list[WorkerDeclaration] = attrs.field(factory=list, init=False)
    schedules: list[ScheduleDeclaration] = attrs.field(factory=list, init=False)
    _bosses: list[Boss] = attrs.field(factory=list, init=False)
    _on_start: list[Callable[[Boss], None]] = attrs.field(factory=list, init=False)

    def on_start(self, callback: Callable[[Boss], None]) -> None:
        """Call a plain function with each boss that this app is started on, before its workers start."""
        self._on_start.append(callback)

    def use(self, middleware: MiddlewareT) -> MiddlewareT:
        """Add a middleware, inside of those that were added before; also as a decorator."""
        self.middleware.append(check_middleware(middleware))
        return middleware

    def queue(self, name: str, **options: Unpack[QueueOptions]) -> None:
        """Declare a queue that no worker of this app is for: one that others work on, or a dead letter queue.

        Takes the options of `create_queue`. The queue is created, or its options are changed, as those of `worker`.
        """
        check_known("queue", options, _QUEUE_OPTIONS)
        make_settings(options)
        self.queues[check_name("queue", name)] = {**self.queues.get(name, {}), **options}

    @overload
    def worker(
        self, queue: str, *, data: type[D] | Decoder[D], **options: Unpack[WorkerOptions]
    ) -> Callable[[Callable[[RunningJob[D]], Awaitable[object]]], Task[D]]: ...

    @overload
    def worker(
        self,
        queue: str,
        *,
        data: type[D] | Decoder[D],
        batch_size: int,
        **options: Unpack[WorkerOptions],
    ) -> Callable[[Callable[[list[RunningJob[D]]], Awaitable[object]]], Task[D]]: ...

    @overload
    def worker(
        self,
        queue: str,
        *,
        data: type[D] | Decoder[D],
        thread: Literal[True],
        **options: Unpack[WorkerOptions],
    ) -> Callable[[Callable[[ThreadJob[D]], object]], Task[D]]: ...

    @overload
    def worker(
        self,
        queue: str,
        *,
        data: type[D] | Decoder[D],
        asyncio: Literal[True],
        **options: Unpack[WorkerOptions],
    ) -> Callable[[Callable[[AsyncioJob[D]], Awaitable[object]]], Task[D]]: ...

    @overload
    def worker(
        self,
        queue: str,
        *,
        data: type[D] | Decoder[D],
        batch_size: int,
        thread: Literal[True],
        **options: Unpack[WorkerOptions],
    ) -> Callable[[Callable[[list[ThreadJob[D]]], object]], Task[D]]: ...

    @overload
    def worker(
        self,
        queue: str,
        *,
        data: type[D] | Decoder[D],
        batch_size: int,
        asyncio: Literal[True],
        **options: Unpack[WorkerOptions],
    ) -> Callable[[Callable[[list[AsyncioJob[D]]], Awaitable[object]]], Task[D]]: ...

    @overload
    def worker(
        self,
        queue: str,
        *,
        data: None = None,
        batch_size: int | None = None,
        thread: bool = False,
        asyncio: bool = False,
        **options: Unpack[WorkerOptions],
    ) -> Callable[[Callable[[Any], object]], Task[Any]]: ...

    def worker(self, queue: str, *, data: object = None, **options: Any) -> Callable[[Any], Task[Any]]:
        """Declare that a function handles the jobs of a queue.

        Takes the options of `work` and of `create_queue`; the queue is created, or its options are changed. A
        ``dead_letter`` that is declared nowhere is created with default options. The decorated function has `send`,
        which takes data of the type that ``data`` declares, and `queue`.
        """
        check_known("worker", options, _QUEUE_OPTIONS | _WORK_OPTIONS, ("data",))
        check_name("queue", queue.replace("*", "_"))
        queue_options = {name: value for name, value in options.items() if name in _QUEUE_OPTIONS}
        work_options = {name: value for name, value in options.items() if name in _WORK_OPTIONS}
        QueueSettings(**queue_options)
        decoder = None if data is None else make_decoder(data)
        if data is not None:
            work_options["data"] = data

        def declare(handler: Callable[[Any], Any]) -> Task[Any]:
            check_handler(handler, thread=options.get("thread", False), asyncio=options.get("asyncio", False))
            task: Task[Any] = Task(handler, queue, decoder, self._bosses)
            self.workers.append(WorkerDeclaration(queue, handler, queue_options, work_options, task))
            return task

        return declare

    @overload
    def schedule(
        self,
        cron: str,
        *,
        data: JsonInput = None,
        tz: str = "UTC",
        key: str = "",
        missed: Literal["skip", "latest", "all"] = "skip",
        **options: Unpack[SendOptions],
    ) -> Callable[[Task[D]], Task[D]]: ...

    @overload
    def schedule(
        self,
        cron: str,
        *,
        data: D,
        tz: str = "UTC",
        key: str = "",
        missed: Literal["skip", "latest", "all"] = "skip",
        **options: Unpack[SendOptions],
    ) -> Callable[[Task[D]], Task[D]]: ...

    def schedule(self, cron: str, *, data: object = None, **options: Any) -> Callable[[Task[Any]], Task[Any]]:
        """Declare that a job is sent to the queue of a worker at every tick. The decorator belongs above `worker`.

        Takes the options of `boss.schedule`: data, tz, key, missed, and those of `send`. If the worker declares a type
        for its data, ``data`` is a value of that type, or its JSON.
        """
        check_known("schedule", options, ScheduleOptions.__annotations__)

        def declare(task: Task[Any]) -> Task[Any]:
            found = [worker for worker in self.workers if task in (worker.task, worker.handler)]
            if not found:
                raise UsageError(
                    f"schedule: {shown(task)} is not declared as a worker: put @app.schedule above @app.worker"
                )
            given = {**options, "data": found[-1].task.encode_scheduled(data)}
            self.schedules.append(ScheduleDeclaration(found[-1].queue, cron, given))
            return task

        return declare

    async def start(
        self,
        boss: Boss,
        *,
        queues: list[str] | None = None,
        concurrency: int | None = None,
        declare: bool = True,
    ) -> None:
        """Create the declared queues and schedules, and start the workers, or those of some queues.

        Nothing is created or changed for an app that ``trioboss migrate`` has deployed, in any version, nor with
        ``declare=False``: differences are logged.
        """
        starting = [worker for worker in self.workers if queues is None or worker.queue in queues]
        needed = {worker.queue for worker in starting}
        missing = await deploy(boss, self.declaration(), self.path, needed=needed, change=declare)
        more: dict[str, Any] = {} if concurrency is None else {"concurrency": concurrency}
        context = None if self.lifespan is None else await boss.open_lifespan(self.lifespan)
        for callback in self._on_start:
            callback(boss)
        self._bosses[:] = [each for each in self._bosses if not each.has_ended] + [boss]
        for worker in starting:
            if worker.queue not in missing:
                await self._start_worker(boss, worker, context, more)

    async def _start_worker(
        self, boss: Boss, worker: WorkerDeclaration, context: Any, more: Mapping[str, Any]
    ) -> None:
        options: dict[str, Any] = {**worker.work_options, **more}
        own: Sequence[Middleware] = options.get("middleware", ())
        options["middleware"] = [*self.middleware, *own]
        if "lifespan" not in options:
            # The lifespan of the app is open already: its workers share the context.
            options["lifespan"] = lambda: nullcontext(context)
        await boss.work(worker.queue, worker.handler, **options)

    @property
    def path(self) -> str:
        """How the command line finds the app: ``module:name``; only the module, if no variable of it is the app."""
        module = sys.modules.get(self._module)
        names = [name for name, value in vars(module).items() if value is self] if module else []
        shown = self._module
        if module is not None and shown == "__main__" and getattr(module, "__file__", None):
            shown = Path(str(module.__file__)).stem
        return ":".join([shown, *names[:1]])

    def declaration(self) -> Declaration:
        """All queues and schedules that the app needs."""
        options = {name: dict(given) for name, given in self.queues.items()}
        for worker in self.workers:
            if "*" not in worker.queue:
                options.setdefault(worker.queue, {}).update(worker.queue_options)
        # A dead letter queue that is only named is created with default options; one that exists stays as it is.
        for given in (*list(options.values()), *(schedule.options for schedule in self.schedules)):
            if (dead_letter := given.get("dead_letter")) is not None:
                options.setdefault(check_name("dead_letter", dead_letter), {})
        queues = tuple(DeclaredQueue(name, given) for name, given in options.items())
        schedules = tuple(_declared_schedule(schedule) for schedule in self.schedules)
        return Declaration(self.label or self.path, queues, schedules, has_own_label=self.label is not None)


def _declared_schedule(schedule: ScheduleDeclaration) -> DeclaredSchedule:
    own = {
        name: schedule.options[name] for name in ("data", "tz", "key", "missed") if name in schedule.options
    }
    options = {name: value for name, value in schedule.options.items() if name not in own}
    return DeclaredSchedule(schedule.queue, schedule.cron, options=options, **own)


def _find_module() -> str:
    """The name of the module that makes the app: the first frame outside of this module, the check of its keywords,
    and attrs.
    """
    frame = sys._getframe(1)
    own = (__name__, checks_init_keywords.__module__, None)
    while frame.f_back is not None and frame.f_globals.get("__name__") in own:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "__main__"))
