"""Boss, the part about waiting: for the end of a job, for its updates, and for events."""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, suppress
from typing import Any, TypeVar, cast, overload
from uuid import UUID, uuid4

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.api.base import ApiBase
from trioboss.errors import DatabaseUnavailable, JobNotFound, UsageError
from trioboss.events import Event
from trioboss.model.answers import JobUpdate
from trioboss.model.check import check_duration, check_name, check_uuid, shown
from trioboss.model.job import Duration, Job
from trioboss.postgres.executor import execute
from trioboss.postgres.operation import Batch, Operation
from trioboss.runtime.lifecycle import Runtime

__all__ = ["WaitingMixin"]

E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Event)
G = TypeVar("G", bound=Event)
H = TypeVar("H", bound=Event)

_SAFETY_POLL_INTERVAL = 20.0  # seconds after which a job is read again, in case a notification was lost
_POLLING_MODE_INTERVAL = 1.0  # the same, where notifications do not arrive


@attrs.define(eq=False, slots=False)  # only one of the bases of Boss can have slots with fields
class WaitingMixin(ApiBase):
    """Everything that waits."""

    _runtime: Runtime

    async def wait_for(self, queue: str, id: UUID | str | None, *, timeout: Duration | None = None) -> Job:
        """Wait until a job has ended, and return it. Raises TimeoutError after ``timeout`` seconds.

        A job that failed or was cancelled has ended, too: it is returned, and its error is not raised. Check that
        ``job.state`` is "completed" before you use its ``output``: that of a failed job is its error, with the stack.

        ``id`` is what `send` returned. None, a job that the queue's policy or a throttle refused, is a UsageError. A
        queue with ``keep_completed=False`` keeps no completed job that could be returned: JobNotFound is raised.
        """
        job_id = _check_sent(id)
        check_name("queue", queue)
        seconds = math.inf if timeout in (None, math.inf) else check_duration("timeout", timeout)
        with trio.move_on_after(seconds), self._while_open():
            # First the notifications, then the waiter, then the job: an end between two of them is not missed.
            await self._runtime.listener.wait_listening()
            async with self._completion_waiter(job_id) as changed:
                while True:
                    job = await self._read(queue, job_id)
                    if job.state.is_ended:
                        return job
                    await self._wait_changed(changed)
        raise TimeoutError(f"job {job_id} in queue {queue!r} has not ended within {seconds:g} s")

    @asynccontextmanager
    async def follow(self, queue: str, id: UUID | str | None) -> AsyncIterator[AsyncIterator[JobUpdate]]:
        """The updates of one job, for the length of a block: its state now, then each change of its state and progress.

        ``async with boss.follow(queue, id) as updates: async for update in updates: …``. The loop ends after the update
        with which the job has ended. Updates come by notification, not by polling; of several changes in a row only the
        last may be seen. A job that does not exist raises JobNotFound.
        """
        job_id = _check_sent(id)
        check_name("queue", queue)
        with self._while_open():
            await self._runtime.listener.wait_listening()
        async with self._completion_waiter(job_id) as changed:
            with self._while_open():
                await self._read(queue, job_id)
            async with self._following(job_id):
                # Read again: the job may have been claimed before all bosses knew of the follower.
                first = await self._read(queue, job_id)
                async with aclosing(self._updates(queue, first, changed)) as updates:
                    yield updates

    @asynccontextmanager
    async def _following(self, id: UUID) -> AsyncIterator[None]:
        """Let all bosses notify when one of their workers claims the job: a claim itself notifies nobody."""
        with self._while_open():
            await self._runtime.adapter.notify(f"*follow {id}")
        try:
            yield
        finally:
            with trio.move_on_after(1, shield=True), suppress(DatabaseUnavailable, UsageError):
                await self._runtime.adapter.notify(f"*unfollow {id}")

    async def _updates(self, queue: str, job: Job, changed: Doorbell) -> AsyncGenerator[JobUpdate, None]:
        last: JobUpdate | None = None
        while True:
            update = JobUpdate(job.id, queue, job.state, job.attempt, job.progress, job.output)
            if update != last:
                last = update
                yield update
            if job.state.is_ended:
                return
            with self._while_open():
                await self._wait_changed(changed)
                job = await self._read(queue, job.id)

    @asynccontextmanager
    async def _completion_waiter(self, id: UUID) -> AsyncIterator[Doorbell]:
        """A doorbell that rings when the job has changed. A row asks the session that settles the job to notify."""
        waiter = uuid4()
        changed = self._runtime.router.add_waiter(id)
        try:
            await execute(self._change_waiter("add_waiter", id, waiter), self._pool)
            yield changed
        finally:
            self._runtime.router.remove_waiter(id, changed)
            # A row that cannot be removed now is pruned after a day.
            with trio.move_on_after(1, shield=True), suppress(DatabaseUnavailable, UsageError):
                await execute(self._change_waiter("remove_waiter", id, waiter), self._pool)

    def _change_waiter(self, statement: str, id: UUID, waiter: UUID) -> Operation[None]:
        yield Batch((self._store.context.bind(statement, id=id, waiter=waiter),))

    async def _read(self, queue: str, id: UUID) -> Job:
        job = await self._execute(self._store.reading.get_job(queue, id))
        if job is None:
            raise JobNotFound(queue, [id], "such")
        return job

    async def _wait_changed(self, changed: Doorbell) -> None:
        polling = self._runtime.listener.is_polling
        interval = _POLLING_MODE_INTERVAL if polling else _SAFETY_POLL_INTERVAL
        await changed.wait_until(trio.current_time() + interval)

    @overload
    def events(self) -> AbstractAsyncContextManager[AsyncIterator[Event]]: ...
    # A type checker joins the kinds of `*kinds` to Event, which has no attributes. Up to four kinds keep theirs.
    @overload
    def events(
        self, first: type[E], second: type[F], /
    ) -> AbstractAsyncContextManager[AsyncIterator[E | F]]: ...
    @overload
    def events(
        self, first: type[E], second: type[F], third: type[G], /
    ) -> AbstractAsyncContextManager[AsyncIterator[E | F | G]]: ...
    @overload
    def events(
        self, first: type[E], second: type[F], third: type[G], fourth: type[H], /
    ) -> AbstractAsyncContextManager[AsyncIterator[E | F | G | H]]: ...
    @overload
    def events(self, *kinds: type[E]) -> AbstractAsyncContextManager[AsyncIterator[E]]: ...
    def events(self, *kinds: type[Event]) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """The events of this boss from now on, or those of the given kinds, to be read with ``async for``.

        Some are made only for readers that name their kind: JobCreated.
        """
        self._check_open()
        return self._runtime.reporter.subscribe(*_check_kinds(kinds))

    @overload
    def listen(self, callback: Callable[[Event], object], *kinds: type[Event]) -> None: ...
    @overload
    def listen(self, callback: Callable[[E], object], kind: type[E], /) -> None: ...
    @overload
    def listen(self, callback: Callable[[E | F], object], first: type[E], second: type[F], /) -> None: ...
    @overload
    def listen(
        self, callback: Callable[[E | F | G], object], first: type[E], second: type[F], third: type[G], /
    ) -> None: ...
    # The same for pyright, which does not infer the parts of a union; mypy needs those above.
    @overload
    def listen(self, callback: Callable[[E], object], kind: type[E], /, *kinds: type[E]) -> None: ...
    def listen(self, callback: Callable[[Any], object], *kinds: type[Event]) -> None:
        """Call a plain function with every event of these kinds: at once, in the task that reports it.

        For instrumentation. It must be quick and must not raise; to read events at leisure use `events`.
        """
        self._check_open()
        if not kinds:
            raise UsageError("kinds: name the kinds of events, as in boss.listen(callback, JobFailed)")
        self._runtime.reporter.listen(callback, *_check_kinds(kinds))


def _check_kinds(kinds: tuple[object, ...]) -> tuple[type[Event], ...]:
    """Raise UsageError for a kind of which there is no event: its reader would wait for ever."""
    for kind in kinds:
        if not isinstance(kind, type) or not issubclass(kind, Event):
            raise UsageError(f"kinds: {shown(kind)} is not a class of events, as trioboss.JobFailed is")
        if kind is Event:
            raise UsageError(
                "kinds: Event is the base of all: name the kinds; for all call events() without one"
            )
    return cast("tuple[type[Event], ...]", kinds)


def _check_sent(id: UUID | str | None) -> UUID:
    if id is None:
        raise UsageError("id: None: the job was not sent, the queue's policy or a throttle refused it")
    return check_uuid("id", id)
