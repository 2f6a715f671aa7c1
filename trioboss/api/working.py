"""Boss, the part about working: workers, middleware, completions."""

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast, overload
from uuid import UUID

import attrs
import trio

from trioboss.actors.handlers import check_handler
from trioboss.actors.middleware import AnyMiddleware
from trioboss.actors.slots import SlotSettings
from trioboss.actors.worker import Worker, WorkerSettings
from trioboss.api.base import ApiBase
from trioboss.api.handlers import (
    Lifespan,
    Middleware,
    WorkOptions,
    check_all_middleware,
    check_middleware,
    enter_lifespan,
    make_decode,
)
from trioboss.api.running_job import JOB_CLASSES, AsyncioJob, D, RunningJob, Surroundings, ThreadJob
from trioboss.model.check import check_count, check_duration, check_name, check_priority
from trioboss.model.decoding import Decoder
from trioboss.model.job import NO_GROUPS, Duration
from trioboss.model.option_names import check_known, keyword_names
from trioboss.model.settle_and_claim import ClaimRequest
from trioboss.runtime.lifecycle import BossStatistics, Runtime

if TYPE_CHECKING:
    # For the annotation only: this is a part of Boss.
    from trioboss.api.boss import Boss

__all__ = ["WorkingMixin"]

# Names that pg-boss has, or had, for these options, and ours.
_NOT_POLLING = "not needed: a notification wakes the worker"
_OTHER_NAMES = {
    "teamSize": "concurrency, or batch_size for a list of jobs",
    "teamConcurrency": "concurrency",
    "localConcurrency": "concurrency",
    "teamRefill": "not needed: a slot that is free takes the next job",
    "newJobCheckInterval": _NOT_POLLING,
    "newJobCheckIntervalSeconds": _NOT_POLLING,
    "pollingIntervalSeconds": _NOT_POLLING,
    "notifyPollingIntervalSeconds": _NOT_POLLING,
    "burstWhenReadyExceeds": _NOT_POLLING,
    "burstWhenBatchFull": _NOT_POLLING,
    "heartbeatRefreshSeconds": "not needed: a quarter of the option heartbeat of the queue or job",
    "perJobResults": "not needed: a batch handler may return a list of BatchResult",
    "transactional": "job.transaction, in the handler",
    "transactionTimeoutSeconds": "expire_in, of the queue or job: the end of the attempt and its transaction",
    **dict.fromkeys(("groupConcurrency", "localGroupConcurrency", "ignoreGroups"), NO_GROUPS),
    "orderByCreatedOn": "priority=False, for the order of sending",
    "includeMetadata": "not needed: a job has all of its fields",
}

MiddlewareT = TypeVar("MiddlewareT", bound=Middleware)


@attrs.define(eq=False)
class WorkingMixin(ApiBase):
    """Everything that runs in the background."""

    _runtime: Runtime
    _body: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)
    _middleware: list[AnyMiddleware] = attrs.field(factory=list, init=False)

    def use(self, middleware: MiddlewareT) -> MiddlewareT:
        """Put a middleware around the handlers of all workers that are started from now on; also as a decorator.

        ``async def middleware(job, call_next)`` is called for each job, in the order of declaration, the first one
        outermost: ``output = await call_next(job)``. It sees the handler's exception and may raise another one.
        """
        self._check_open()
        self._middleware.append(check_middleware(middleware))
        return middleware

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[RunningJob[D]], Awaitable[object]],
        *,
        data: type[D] | Decoder[D],
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[list[RunningJob[D]]], Awaitable[object]],
        *,
        data: type[D] | Decoder[D],
        batch_size: int,
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[ThreadJob[D]], object],
        *,
        data: type[D] | Decoder[D],
        thread: Literal[True],
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[AsyncioJob[D]], Awaitable[object]],
        *,
        data: type[D] | Decoder[D],
        asyncio: Literal[True],
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[list[ThreadJob[D]]], object],
        *,
        data: type[D] | Decoder[D],
        batch_size: int,
        thread: Literal[True],
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[list[AsyncioJob[D]]], Awaitable[object]],
        *,
        data: type[D] | Decoder[D],
        batch_size: int,
        asyncio: Literal[True],
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    @overload
    async def work(
        self,
        queue: str,
        handler: Callable[[Any], object],
        *,
        data: None = None,
        batch_size: int | None = None,
        thread: bool = False,
        asyncio: bool = False,
        **options: Unpack[WorkOptions],
    ) -> Worker: ...

    async def work(
        self,
        queue: str,
        handler: Callable[[Any], object],
        *,
        data: object = None,
        batch_size: int | None = None,
        thread: bool = False,
        asyncio: bool = False,
        **options: Unpack[WorkOptions],
    ) -> Worker:
        """Run ``handler`` on the jobs of a queue, or of all queues that match a pattern with ``*``.

        ``handler(job)`` is an async function; its return value is the job's output, an exception the job's failure.
        With ``batch_size`` (None; 1 to 1,000,000,000) it gets lists of up to so many jobs, and returns nothing,
        ``{id: output}`` (jobs that the dict leaves out complete, with the output None) or a list of `BatchResult` (jobs
        that the list leaves out fail). It may raise `BatchFailed`, which names the jobs that failed; the others
        complete. ``thread=True`` (False) runs a plain function in a thread, ``asyncio=True`` (False) an asyncio
        function through trio-asyncio. Returns once the worker is notified of new jobs. A queue that does not exist
        raises UnknownQueue; those of a pattern may come later. The other options are described at `WorkOptions`.

        ``data``: the type of `job.data`: an attrs class, dataclass, TypedDict or pydantic model, a type like
        ``list[int]``, or a `Decoder` of your own. A job whose data does not fit fails without retries (DataMismatch).
        ``lifespan``: an async context manager that is open while the worker runs; its value is `job.context`.
        ``middleware``: async functions ``(job, call_next)`` around every call, inside of those of `use`.
        ``concurrency`` (1) calls run at once; ``prefetch`` jobs are leased ahead; ``min_priority``, ``max_priority``:
        only such jobs; ``priority=False``: in the order of sending alone.
        """
        surroundings = Surroundings(self._as_boss())
        settings = self._make_settings(
            queue, handler, surroundings, data, batch_size, thread, asyncio, options
        )
        with self._while_open():
            return await self._runtime.work(settings)
        raise AssertionError

    def _make_settings(
        self,
        queue: str,
        handler: Callable[[Any], object],
        surroundings: Surroundings,
        data: object,
        batch_size: int | None,
        thread: bool,
        asyncio: bool,
        options: WorkOptions,
    ) -> WorkerSettings:
        check_name("queue", queue.replace("*", "_"))
        check_handler(handler, thread=thread, asyncio=asyncio)
        self._check_options("work", options)
        prefetch = options.get("prefetch")
        lifespan = options.get("lifespan")
        own = check_all_middleware(options.get("middleware", ()))
        return WorkerSettings(
            queue=queue,
            handler=handler,
            slots=SlotSettings(
                concurrency=check_count("concurrency", options.get("concurrency", 1), low=1),
                prefetch=0 if prefetch is None else check_count("prefetch", prefetch),
                batch_size=None if batch_size is None else check_count("batch_size", batch_size, low=1),
                max_bytes=self._store.context.max_bytes,
            ),
            request=_make_request(options),
            thread=thread,
            asyncio=asyncio,
            name=self._runtime.settings.worker_name,
            middleware=[*self._middleware, *own],
            lifespan=nullcontext if lifespan is None else partial(enter_lifespan, lifespan, surroundings),
            decode=make_decode(data),
            redact=self._store.context.redact,
            job_classes=JOB_CLASSES,
            surroundings=surroundings,
        )

    def _check_options(self, call: str, options: WorkOptions) -> None:
        own = keyword_names(getattr(self, call))
        check_known(call, options, WorkOptions.__annotations__, own, _OTHER_NAMES)

    def _as_boss(self) -> "Boss":
        # This mixin is only ever a part of Boss.
        return cast("Boss", self)

    async def open_lifespan(self, lifespan: Lifespan) -> Any:
        """Enter a lifespan that is left when all workers of this boss have stopped; return what it yields.

        For code that starts several workers with one context: an App does. For one worker, pass ``lifespan`` to `work`.
        """
        with self._while_open():
            surroundings = Surroundings(self._as_boss())
            await self._runtime.open_lifespan(enter_lifespan(lifespan, surroundings))
            return surroundings.context

    async def off_work(self, queue_or_worker: str | Worker | UUID, *, grace: Duration | None = None) -> None:
        """Stop a worker, or all workers of a queue, gracefully, and wait until it has stopped.

        Running jobs have ``grace`` seconds, by default that of the boss; a second call can shorten it. A handler that
        stops its own worker would wait for itself, until the grace is over and its job is released: call
        ``worker.stop(grace)`` there, which does not wait. A worker that has stopped already, and a queue without
        workers, need no stop; a queue that does not exist raises UnknownQueue.
        """
        seconds = self._runtime.settings.grace if grace is None else check_duration("grace", grace)
        with self._while_open():
            stopping = self._workers(queue_or_worker)
            if not stopping and isinstance(queue_or_worker, str):
                await self._check_exists(queue_or_worker)
            await _stop_all(stopping, seconds)

    async def _check_exists(self, queue: str) -> None:
        """Raise UnknownQueue for a queue that does not exist. A pattern may match no queue yet."""
        check_name("queue", queue.replace("*", "_"))
        if "*" not in queue:
            await self._execute(self._store.context.reload(queue))

    def notify_worker(self, worker: Worker | UUID) -> None:
        """Let a worker claim jobs now."""
        self._check_open()
        for each in self._workers(worker):
            for dispatcher in each.dispatchers.values():
                dispatcher.ring()

    def _workers(self, which: str | Worker | UUID) -> list[Worker]:
        workers = self._runtime.router.workers
        if isinstance(which, str):
            return [worker for worker in workers.values() if worker.settings.queue == which]
        id = which.id if isinstance(which, Worker) else which
        return [workers[id]] if id in workers else []

    async def on_complete(
        self,
        queue: str,
        handler: Callable[[Any], object],
        *,
        history: bool = False,
        batch_size: int | None = None,
        thread: bool = False,
        asyncio: bool = False,
        **options: Unpack[WorkOptions],
    ) -> Worker:
        """Run ``handler`` on a completion job for each job of the queue that ends, completed or failed.

        The data of a completion job has the job's data (``request``) and its output (``response``). With ``history``
        also for jobs that ended before the first call and are still archived. Other options as in `work`.
        """
        self._check_options("on_complete", options)
        completions = await self._execute(self._store.queues.copy_completions(queue, history=history))
        return await self.work(
            completions, handler, batch_size=batch_size, thread=thread, asyncio=asyncio, **options
        )

    async def off_complete(self, queue: str) -> None:
        """Stop the workers of `on_complete`. Completion jobs are still sent. UnknownQueue if there is no such queue."""
        with self._while_open():
            stopping = self._workers(f"__state__completed__{check_name('queue', queue)}")
            if not stopping:
                await self._check_exists(queue)
            await _stop_all(stopping, self._runtime.settings.grace)

    async def wait_listening(self) -> None:
        """Wait until this boss is notified of new jobs, or is in polling mode."""
        with self._while_open():
            await self._runtime.listener.wait_listening()

    def statistics(self) -> BossStatistics:
        """The state of all actors of this boss."""
        self._check_open()
        return self._runtime.statistics()

    def stop(self) -> None:
        """End the block of `open_boss` gracefully, as if its body had ended here."""
        self._check_open()
        self._body.cancel()


def _make_request(options: WorkOptions) -> ClaimRequest:
    """The jobs that the claims of a worker may take."""
    lowest, highest = options.get("min_priority"), options.get("max_priority")
    return ClaimRequest(
        by_priority=options.get("priority", True),
        min_priority=None if lowest is None else check_priority("min_priority", lowest),
        max_priority=None if highest is None else check_priority("max_priority", highest),
    )


async def _stop_all(workers: list[Worker], grace: float) -> None:
    """Stop workers at the same time, and wait for all of them."""
    for worker in workers:
        worker.stop(grace)
    for worker in workers:
        await worker.stopped.wait()
