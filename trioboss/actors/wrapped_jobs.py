"""The job as handlers of other kinds get it: in threads its methods block, in asyncio they can be awaited there."""

from collections.abc import Awaitable, Callable
from typing import Generic, NoReturn, cast

import attrs
import trio

from trioboss.actors.leased_job import DeadLetterJob, LeasedJob, RetryJob
from trioboss.errors import UsageError
from trioboss.machines.attempt import CancelReason
from trioboss.model.handed_job import D_co, HandedJob
from trioboss.model.job import Duration, Job
from trioboss.model.payload import JsonInput
from trioboss.model.states import JobState

__all__ = ["AsyncioJob", "ThreadJob"]


@attrs.frozen(eq=False)
class _WrappedJob(HandedJob, Generic[D_co]):
    """A job for handlers of another kind: what needs no waiting."""

    _job: LeasedJob[D_co]

    def __repr__(self) -> str:
        return repr(self._job)

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        return self._job.job

    @property
    def data(self) -> D_co:
        """The data that was sent, in the type that the worker declares with ``data=``, or as JSON."""
        return self._job.data

    @property
    def cancelled(self) -> CancelReason | None:
        """Why trioboss has cancelled the handler, or None. It is also None where something else has cancelled it: a
        scope of the program around the boss, for instance the lifespan of a web server.
        """
        return self._job.cancelled

    def settled_manually(self, state: JobState, error: str, *, committed: bool) -> None:
        """A call of the handler has settled the attempt."""
        self._job.settled_manually(state, error, committed=committed)

    def transaction(self) -> NoReturn:
        """Only handlers of trio have it: UsageError, with what to do instead."""
        raise UsageError(
            "transaction: a job has one only in a handler of trio; in a thread, complete the job in a transaction of a "
            "SyncBoss: with sync_boss.transaction() as conn: …; sync_boss.complete(job.queue, job, conn=conn)"
        )

    def retry(self, delay: Duration | None = None, reason: str | None = None) -> RetryJob:
        """To be raised: fail this attempt, and try again after ``delay`` instead of the job's own retry delay."""
        return self._job.retry(delay, reason)

    def dead_letter(self, reason: str | None = None) -> DeadLetterJob:
        """To be raised: fail the job for good, without the retries it has left."""
        return self._job.dead_letter(reason)


@attrs.frozen(eq=False, repr=False)
class ThreadJob(_WrappedJob[D_co]):
    """The job that a handler in a thread gets: its methods block."""

    def extend(self, seconds: Duration) -> None:
        """Let the lease expire later."""
        # The lease belongs to the thread of trio: the call runs there, and this thread waits.
        trio.from_thread.run(self._job.extend, seconds)

    def touch(self) -> None:
        """Send a heartbeat now."""
        trio.from_thread.run(self._job.touch)

    def progress(self, value: JsonInput) -> None:
        """Record how far the job has come. Best effort."""
        trio.from_thread.run(self._job.progress, value)

    def complete(self, output: JsonInput = None) -> None:
        """Settle the job now."""
        trio.from_thread.run(self._job.complete, output)


@attrs.frozen(eq=False, repr=False)
class AsyncioJob(_WrappedJob[D_co]):
    """The job that an asyncio handler gets: its methods are awaited in the handler's loop."""

    async def extend(self, seconds: Duration) -> None:
        """Let the lease expire later. Counted against max_lease_extensions. Also a heartbeat."""
        await _in_trio(self._job.extend)(seconds)

    async def touch(self) -> None:
        """Send a heartbeat now."""
        await _in_trio(self._job.touch)()

    async def progress(self, value: JsonInput) -> None:
        """Record how far the job has come. Best effort."""
        await _in_trio(self._job.progress)(value)

    async def complete(self, output: JsonInput = None) -> None:
        """Settle the job now; what the handler returns afterwards does not count."""
        await _in_trio(self._job.complete)(output)


def _in_trio(function: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    # Imported here and not above: importing it changes asyncio for the whole process.
    import trio_asyncio

    return cast("Callable[..., Awaitable[None]]", trio_asyncio.trio_as_aio(function))
