"""Boss, the part about jobs: fetching, settling, finding."""

from typing import Literal, Unpack
from uuid import UUID

import attrs
import trio

from trioboss.api.base import ApiBase
from trioboss.events import JobCancelled
from trioboss.model.answers import Redriven, Settled
from trioboss.model.explanation import Explanation
from trioboss.model.handed_job import HandedJob
from trioboss.model.job import FetchOptions, FindOptions, Job, UpdateOptions
from trioboss.model.option_names import check_known
from trioboss.model.payload import JsonInput
from trioboss.postgres.caller import CallerConnection
from trioboss.runtime.lifecycle import Runtime
from trioboss.store import Targets

__all__ = ["JobsMixin"]


@attrs.define(eq=False, slots=False)  # only one of the bases of Boss can have slots with fields
class JobsMixin(ApiBase):
    """Everything that is done to jobs after they were sent."""

    _runtime: Runtime

    async def fetch(
        self,
        queue: str,
        *,
        batch_size: int = 1,
        priority: bool = True,
        ignore_start_after: bool = False,
        min_priority: int | None = None,
        max_priority: int | None = None,
        conn: CallerConnection | None = None,
    ) -> list[Job]:
        """Claim up to ``batch_size`` jobs, highest priority first; settle them with `complete` or `fail` before they
        expire (``expire_in``). Returns an empty list if there is nothing to claim: it does not wait.

        ``queue`` may be a pattern with ``*``, as in `work`: the jobs are those of the matching queues, queue by queue,
        first of the queue whose next job comes first.
        ``priority=False`` claims them in the order of sending alone. ``ignore_start_after=True`` claims deferred jobs,
        too. ``min_priority`` and ``max_priority``: only jobs of such a priority.
        """
        return await self._execute_with(
            lambda own: self._store.manual.fetch(
                queue,
                own=own,
                now=trio.current_time(),
                batch_size=batch_size,
                priority=priority,
                ignore_start_after=ignore_start_after,
                min_priority=min_priority,
                max_priority=max_priority,
            ),
            conn,
        )

    async def fetch_completed(
        self,
        queue: str,
        *,
        batch_size: int = 1,
        conn: CallerConnection | None = None,
        **options: Unpack[FetchOptions],
    ) -> list[Job]:
        """Claim completion jobs of a queue: one for each job that ended, with its data and its output.

        They are sent from the first call of this method, or of `on_complete`, on; also for jobs that ended before and
        are still archived.
        """
        check_known("fetch_completed", options, FetchOptions.__annotations__, ("batch_size", "conn"))
        completions = await self._execute(self._store.queues.copy_completions(queue, history=True), conn)
        return await self.fetch(completions, batch_size=batch_size, conn=conn, **options)

    async def complete(
        self,
        queue: str,
        job_or_id: Targets,
        output: JsonInput = None,
        *,
        include_queued: bool = False,
        conn: CallerConnection | None = None,
    ) -> Settled:
        """Complete active jobs: one or several, by `Job` or by id. A `Job` settles only its own attempt: a stale one
        raises LeaseLost. An id settles whichever attempt is active, and raises JobNotFound if none is.

        Of several jobs, all that are still active are completed. If some `Job` is stale, LeaseLost names those that
        were not; ids that match nothing are no error as long as one does, compare ``requested`` with ``affected``.
        ``include_queued``: also jobs that still wait, given by id: nobody runs them any more.

        A handler that runs such a job elsewhere is cancelled. A handler may pass the job it was given: it goes on, and
        its return value or exception is ignored, unless it did so in a transaction (``conn``) that was rolled back.
        """
        complete = self._store.manual.complete
        handled = self._find_handled()
        return await self._execute_with(
            lambda own: complete(
                queue, job_or_id, output, own=own, handled=handled, include_queued=include_queued
            ),
            conn,
        )

    async def fail(
        self, queue: str, job_or_id: Targets, error: object = None, *, conn: CallerConnection | None = None
    ) -> Settled:
        """Fail active jobs: they are retried, or fail for good. ``error``: an exception, text or JSON.

        Handlers that run them elsewhere are cancelled, as with `complete`.
        """
        fail = self._store.manual.fail
        handled = self._find_handled()
        return await self._execute_with(
            lambda own: fail(queue, job_or_id, error, own=own, handled=handled), conn
        )

    def _find_handled(self) -> list[HandedJob]:
        """The jobs whose handler makes this call: they go on after it, all others are cancelled."""
        return [job for worker in self._runtime.router.workers.values() for job in worker.find_own()]

    async def touch(self, queue: str, job_or_id: Targets, *, conn: CallerConnection | None = None) -> Settled:
        """Send a heartbeat for active jobs: for jobs that were fetched, and have the option ``heartbeat``."""
        return await self._execute_with(lambda own: self._store.leases.touch(queue, job_or_id, own=own), conn)

    async def cancel(
        self, queue: str, id_or_ids: Targets, *, conn: CallerConnection | None = None
    ) -> Settled:
        """Cancel queued or active jobs; the handler of a running one is cancelled, wherever it runs. A thread runs on;
        its result is ignored.
        """
        # Before the cancellation: the worker of a running one reports it, and may have done so when the call returns.
        workers = self._runtime.router.workers.values()
        running = {running.job.id for worker in workers for running in worker.slots.running}
        settled = await self._execute_with(
            lambda own: self._store.changing.cancel(queue, id_or_ids, own=own), conn
        )
        for id in settled.ids:
            if id not in running:
                self._runtime.reporter.report(JobCancelled(queue, id, None))
        return settled

    async def resume(
        self, queue: str, id_or_ids: Targets, *, conn: CallerConnection | None = None
    ) -> Settled:
        """Queue cancelled jobs again, in their old position. Raises JobNotFound if none of them is cancelled."""
        return await self._execute_with(
            lambda own: self._store.changing.resume(queue, id_or_ids, own=own), conn
        )

    async def retry(self, queue: str, id_or_ids: Targets, *, conn: CallerConnection | None = None) -> Settled:
        """Queue failed jobs again, for one more attempt. This unblocks a key of strict FIFO. Raises JobNotFound if none
        of them has failed.
        """
        return await self._execute_with(
            lambda own: self._store.changing.retry(queue, id_or_ids, own=own), conn
        )

    async def delete_job(
        self, queue: str, id_or_ids: Targets, *, conn: CallerConnection | None = None
    ) -> Settled:
        """Delete jobs in any state. This also unblocks a key of strict FIFO."""
        return await self._execute_with(
            lambda own: self._store.changing.delete(queue, id_or_ids, own=own), conn
        )

    async def delete_queued_jobs(self, queue: str, *, conn: CallerConnection | None = None) -> int:
        """Delete all queued jobs of a queue, and return how many."""
        delete = self._store.changing.delete_many
        return await self._execute_with(lambda own: delete(queue, ["delete_queued_jobs"], own=own), conn)

    async def delete_stored_jobs(self, queue: str, *, conn: CallerConnection | None = None) -> int:
        """Delete all ended jobs of a queue, and return how many."""
        delete = self._store.changing.delete_many
        return await self._execute_with(lambda own: delete(queue, ["delete_stored_jobs"], own=own), conn)

    async def delete_all_jobs(self, queue: str | None = None, *, conn: CallerConnection | None = None) -> int:
        """Delete EVERY job of a queue, or without a name of ALL queues, and return how many. Running jobs are deleted,
        too: their handlers are cancelled; and so is the history, the archive of ended jobs. It cannot be undone.

        `delete_queued_jobs` and `delete_all_queued_jobs` leave running jobs and the archive alone.
        """
        delete = self._store.changing.delete_all
        return await self._execute_with(lambda own: delete(queue, own=own), conn)

    async def delete_all_queued_jobs(self, *, conn: CallerConnection | None = None) -> int:
        """Delete the queued jobs of all queues, and return how many. Active jobs and the archive stay."""
        return await self._execute_with(lambda own: self._store.changing.delete_all_queued(own=own), conn)

    async def update_job(
        self,
        queue: str,
        id: UUID | str | None = None,
        *,
        key: str | None = None,
        match: Literal["newest", "oldest", "all"] = "newest",
        conn: CallerConnection | None = None,
        **changes: Unpack[UpdateOptions],
    ) -> Settled:
        """Change the data, the priority, the start or options of a queued job; what is not given stays as it is.

        The job is given by its id; or by ``key``, its singleton_key, and then ``match`` chooses the newest or the
        oldest queued job of that key, or all. Raises JobNotFound if there is none: jobs that run or have ended do not
        change.
        """
        update = self._store.changing.update
        return await self._execute_with(lambda own: update(queue, id, key, match, changes, own=own), conn)

    async def clear_storage(self, *, conn: CallerConnection | None = None) -> None:
        """Delete all jobs of all queues with their history, at once (TRUNCATE)."""
        await self._execute(self._store.changing.clear_storage(), conn)

    async def redrive(
        self,
        dead_letter_queue: str,
        *,
        to: str | None = None,
        source: str | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        force: bool = False,
        conn: CallerConnection | None = None,
    ) -> Redriven:
        """Send queued jobs of a dead letter queue back to the queues in which they failed, or to ``to``, oldest first.

        They become new jobs with the data, priority and key of the old ones, and the options that their queue has now.
        ``source``: only those that failed in this queue, which may be deleted by now; UnknownQueue if there is no such
        queue and no job of it. ``limit``: how many at most. ``dry_run``: only count them.

        Copies whose job blocks its key, was retried, or has completed since stay, unless ``force`` is True: the work
        would be done twice. Two copies of a job that is deleted are both sent: delete all of them but one before.
        """
        redrive = self._store.redriving.redrive
        operation = redrive(dead_letter_queue, to, source, limit, dry_run=dry_run, force=force)
        return await self._execute(operation, conn)

    async def get_job_by_id(
        self, queue: str, id: UUID | str, *, conn: CallerConnection | None = None
    ) -> Job | None:
        """One job, live or ended, or None. With ``conn`` also one that your open transaction has sent."""
        return await self._execute(self._store.reading.get_job(queue, id), conn)

    async def find_jobs(
        self, queue: str, *, conn: CallerConnection | None = None, **filters: Unpack[FindOptions]
    ) -> list[Job]:
        """Jobs, live and ended, in order of their ids: the order of sending, except for ids that callers chose.

        Filters: id, state, queued (True: created and retry), singleton_key, data (which the job's data contains),
        source_id (of dead letters), since and until (when live jobs were sent and ended ones ended), newest (True: the
        newest first), limit (1000), after (the id of the last job of the page before).
        """
        return await self._execute(self._store.reading.find_jobs(queue, filters), conn)

    async def why(self, queue: str, id: UUID | str) -> Explanation:
        """Explain why a job is not running."""
        return await self._execute(self._store.reading.why(queue, id))
