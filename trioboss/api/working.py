"""Boss, the part about working: workers, completions, waiting for jobs, events."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import attrs
import trio

from trioboss.actors.doorbell import Doorbell
from trioboss.actors.handlers import check_handler
from trioboss.actors.slots import SlotSettings
from trioboss.actors.worker import Worker, WorkerSettings
from trioboss.api.base import ApiBase
from trioboss.errors import DatabaseUnavailable, JobNotFound
from trioboss.events import Event
from trioboss.model.check import check_count, check_duration, check_name, check_priority, check_uuid
from trioboss.model.job import Duration, Job
from trioboss.model.settle_and_claim import ClaimRequest
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import Batch, Operation
from trioboss.runtime.runtime import BossStatistics, Runtime

__all__ = ["WorkingMixin"]

_SAFETY_POLL_INTERVAL = 20.0  # seconds after which `wait_for` reads the job, in case a notification was lost
_POLLING_MODE_INTERVAL = 1.0  # the same, where notifications do not arrive


@attrs.define(eq=False)
class WorkingMixin(ApiBase):
    """Everything that runs in the background."""

    _runtime: Runtime
    _body: trio.CancelScope = attrs.field(factory=trio.CancelScope, init=False)

    async def work(
        self,
        queue: str,
        handler: Callable[[Any], Any],
        *,
        concurrency: int = 1,
        batch_size: int | None = None,
        prefetch: int | None = None,
        min_priority: int | None = None,
        max_priority: int | None = None,
        priority: bool = True,
        thread: bool = False,
        asyncio: bool = False,
    ) -> Worker:
        """Run ``handler`` on the jobs of a queue, or of all queues that match a pattern with ``*``.

        ``handler(job)`` is an async function; its return value is the job's output, an exception the job's failure.
        ``concurrency`` jobs run at once. With ``batch_size`` the handler gets lists of up to so many jobs; with
        ``prefetch`` so many are leased ahead. ``thread=True`` runs a plain function in a thread, ``asyncio=True``
        an asyncio function through trio-asyncio. Returns once the worker is notified of new jobs.
        """
        check_name("queue", queue.replace("*", "_"))
        check_handler(handler, thread=thread, asyncio=asyncio)
        slots = SlotSettings(
            concurrency=check_count("concurrency", concurrency, low=1),
            prefetch=0 if prefetch is None else check_count("prefetch", prefetch),
            batch_size=None if batch_size is None else check_count("batch_size", batch_size, low=1),
            max_bytes=self._store.context.max_bytes,
        )
        settings = WorkerSettings(
            queue=queue,
            handler=handler,
            slots=slots,
            request=ClaimRequest(
                by_priority=priority,
                min_priority=None if min_priority is None else check_priority("min_priority", min_priority),
                max_priority=None if max_priority is None else check_priority("max_priority", max_priority),
            ),
            thread=thread,
            asyncio=asyncio,
            name=self._runtime.settings.worker_name,
        )
        return await self._runtime.work(settings)

    async def off_work(self, queue_or_worker: str | Worker | UUID, *, grace: Duration | None = None) -> None:
        """Stop a worker, or all workers of a queue, gracefully, and wait until it has stopped.

        Running jobs have ``grace`` seconds, by default that of the boss; a second call can shorten it. A handler that
        stops its own worker would wait for itself, until the grace is over and its job is released: call
        ``worker.stop(grace)`` there, which does not wait.
        """
        seconds = self._runtime.settings.grace if grace is None else check_duration("grace", grace)
        stopping = self._workers(queue_or_worker)
        for worker in stopping:
            worker.stop(seconds)
        for worker in stopping:
            await worker.stopped.wait()

    def notify_worker(self, worker: Worker | UUID) -> None:
        """Let a worker claim jobs now."""
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
        self, queue: str, handler: Callable[[Any], Any], *, history: bool = False, **options: Any
    ) -> Worker:
        """Run ``handler`` on a completion job for each job of the queue that ends, completed or failed.

        The data of a completion job has the job's data (``request``) and its output (``response``). With ``history``
        also for jobs that ended before the first call and are still archived. Other options as in `work`.
        """
        completions = await self._execute(self._store.queues.copy_completions(queue, history=history))
        return await self.work(completions, handler, **options)

    async def off_complete(self, queue: str) -> None:
        """Stop the workers of `on_complete`. Completion jobs are still sent."""
        await self.off_work(f"__state__completed__{check_name('queue', queue)}")

    async def wait_for(self, queue: str, id: UUID | str, *, timeout: Duration | None = None) -> Job:
        """Wait until a job has ended, and return it. Raises TimeoutError after ``timeout`` seconds.

        A queue with ``keep_completed=False`` keeps no completed job that could be returned: JobNotFound is raised.
        """
        job_id = check_uuid("id", id)
        check_name("queue", queue)
        seconds = math.inf if timeout in (None, math.inf) else check_duration("timeout", timeout)
        with trio.move_on_after(seconds):
            await self._runtime.listener.wait_listening()
            async with self._completion_waiter(job_id) as ended:
                return await self._wait_ended(queue, job_id, ended)
        raise TimeoutError(f"job {job_id} in queue {queue!r} has not ended within {seconds:g} s")

    @asynccontextmanager
    async def _completion_waiter(self, id: UUID) -> AsyncIterator[Doorbell]:
        """A doorbell that rings when the job has ended. A row tells whoever settles the job to notify."""
        waiter = uuid4()
        ended = self._runtime.router.add_waiter(id)
        try:
            await execute(self._change_waiter("add_waiter", id, waiter), self._pool)
            yield ended
        finally:
            self._runtime.router.remove_waiter(id, ended)
            # A row that cannot be removed now is pruned after a day.
            with trio.move_on_after(1, shield=True), suppress(DatabaseUnavailable):
                await execute(self._change_waiter("remove_waiter", id, waiter), self._pool)

    def _change_waiter(self, statement: str, id: UUID, waiter: UUID) -> Operation[None]:
        yield Batch((self._store.context.bind(statement, id=id, waiter=waiter),))

    async def _wait_ended(self, queue: str, id: UUID, ended: Doorbell) -> Job:
        while True:
            job = await self._execute(self._store.reading.get_job(queue, id))
            if job is None:
                raise JobNotFound(queue, [id], "such")
            if job.state.is_ended:
                return job
            polling = self._runtime.listener.is_polling
            interval = _POLLING_MODE_INTERVAL if polling else _SAFETY_POLL_INTERVAL
            await ended.wait_until(trio.current_time() + interval)

    @asynccontextmanager
    async def events(self, *kinds: type[Event]) -> AsyncIterator[AsyncIterator[Event]]:
        """The events of this boss from now on, or those of the given kinds, to be read with ``async for``."""
        async with self._runtime.reporter.subscribe(*kinds) as events:
            yield events

    async def wait_listening(self) -> None:
        """Wait until this boss is notified of new jobs, or is in polling mode."""
        await self._runtime.listener.wait_listening()

    def statistics(self) -> BossStatistics:
        """What all actors of this boss are doing."""
        return self._runtime.statistics()

    def stop(self) -> None:
        """End the block of `open_boss` gracefully, as if its body had ended here."""
        self._body.cancel()
