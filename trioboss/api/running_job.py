"""The job that a handler gets: with the boss that runs it, and the context of its lifespan."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar, cast

import attrs

from trioboss.actors.handlers import JobClasses
from trioboss.actors.leased_job import LeasedJob
from trioboss.actors.wrapped_jobs import AsyncioJob as WrappedAsyncioJob
from trioboss.actors.wrapped_jobs import ThreadJob as WrappedThreadJob
from trioboss.errors import LeaseLost, UsageError
from trioboss.model.handed_job import D_co
from trioboss.model.option_names import checks_keywords
from trioboss.model.payload import JsonInput
from trioboss.postgres import Connection
from trioboss.postgres.caller import CallerConnection

if TYPE_CHECKING:
    # For the annotation only: a boss runs jobs, and a job names its boss.
    from trioboss.api.boss import Boss

__all__ = ["JOB_CLASSES", "AsyncioJob", "D", "RunningJob", "Surroundings", "ThreadJob"]

D = TypeVar("D")


@attrs.define(eq=False)
class Surroundings:
    """The values that all jobs of a worker share, and that the actors do not need."""

    boss: "Boss"
    context: Any = None
    """The value that the lifespan has yielded."""


@checks_keywords
@attrs.define(eq=False, repr=False)
class RunningJob(LeasedJob[D_co]):
    """The job that a handler gets: its attributes (`job.data`, `job.attempt`, …), its boss, and what to do with it.

    ``RunningJob[Email]`` is a job whose worker declares ``data=Email``.
    """

    _transaction: Connection[Any] = attrs.field(init=False)
    """The connection of the open block of `transaction`; not set outside of one, so that a job costs nothing more."""

    @property
    def boss(self) -> "Boss":
        """The boss that runs this job: send follow-ups with it, read other jobs, and so on."""
        return cast("Surroundings", self._settings.surroundings).boss

    @property
    def context(self) -> Any:
        """The value that the lifespan of the app, or of the worker, has yielded; None without one."""
        return cast("Surroundings", self._settings.surroundings).context

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection[Any]]:
        """A transaction whose commit also completes the job: your rows and the completion are one commit.

        The block gets a connection for your own statements, and for ``conn=`` of the methods of `job.boss`. At its end
        the job is completed on the same connection, then everything is committed. If the lease is lost, or the job was
        settled on another connection meanwhile, LeaseLost is raised and nothing is committed. If the block raises,
        everything is rolled back, and the job is not completed.

        For an output, call ``await job.complete(output)`` within the block. The handler may go on after the block; what
        it returns or raises then does not count, and is logged (`LateError`).
        """
        if hasattr(self, "_transaction"):
            raise UsageError(
                f"transaction: job {self.id} has an open transaction already: use the connection of its block"
            )
        async with self.boss.transaction() as conn:
            before = self._running.manual
            self._transaction = conn
            try:
                yield conn
            finally:
                del self._transaction
            # Another one now: the block has settled the job itself, with an output for instance.
            if self._running.manual is before:
                await self.complete(conn=conn)
            elif self._running.is_settled_manually:
                raise LeaseLost(
                    self.queue, [self.id]
                )  # on another connection: it is not part of this transaction
            else:
                # A settlement in this transaction, which a savepoint around it may have taken back: then this one
                # completes the job. Otherwise the lease is gone already.
                with suppress(LeaseLost):
                    await self.boss.complete(self.queue, self, conn=conn)
        settlement = self._running.manual
        assert settlement is not None
        self.settled_manually(settlement.state, settlement.error, committed=True)

    async def complete(self, output: JsonInput = None, *, conn: CallerConnection | None = None) -> None:
        """Settle the job now; what the handler returns or raises afterwards does not count, and is logged.

        With ``conn``, or within `transaction`, the completion is part of that transaction. If it is rolled back, the
        job is not completed, and the handler's end counts.
        """
        if conn is None:
            conn = getattr(self, "_transaction", None)
        if conn is None:
            await LeasedJob.complete(self, output)
        else:
            await self._notice_loss(self.boss.complete(self.queue, self, output, conn=conn))


@checks_keywords
@attrs.frozen(eq=False, repr=False)
class ThreadJob(WrappedThreadJob[D_co]):
    """The job that a handler in a thread gets: its methods block."""

    @property
    def boss(self) -> "Boss":
        """The boss that runs this job. Its methods are trio's: ``trio.from_thread.run(job.boss.send, "queue")``."""
        return cast("RunningJob[D_co]", self._job).boss

    @property
    def context(self) -> Any:
        """The value that the lifespan of the app, or of the worker, has yielded; None without one."""
        return cast("RunningJob[D_co]", self._job).context


@checks_keywords
@attrs.frozen(eq=False, repr=False)
class AsyncioJob(WrappedAsyncioJob[D_co]):
    """The job that an asyncio handler gets: its methods are awaited in the handler's loop."""

    @property
    def boss(self) -> "Boss":
        """The boss that runs this job. Its methods are trio's: call them with ``trio_asyncio.trio_as_aio``."""
        return cast("RunningJob[D_co]", self._job).boss

    @property
    def context(self) -> Any:
        """The value that the lifespan of the app, or of the worker, has yielded; None without one."""
        return cast("RunningJob[D_co]", self._job).context


JOB_CLASSES = JobClasses(RunningJob, ThreadJob, AsyncioJob)
