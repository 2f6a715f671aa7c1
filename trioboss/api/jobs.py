"""Boss on jobs: taking, settling, finding."""

from typing import Any
from uuid import UUID

from trioboss.api.base import ApiBase
from trioboss.model.explanation import Explanation
from trioboss.model.job import Job, Settled
from trioboss.model.payload import Json
from trioboss.postgres.caller import AnyConnection
from trioboss.store import Targets

__all__ = ["JobsMixin"]


class JobsMixin(ApiBase):
    """Everything that is done to jobs after they were sent."""

    async def fetch(
        self,
        queue: str,
        *,
        batch_size: int = 1,
        priority: bool = True,
        ignore_start_after: bool = False,
        min_priority: int | None = None,
        max_priority: int | None = None,
        conn: AnyConnection | None = None,
    ) -> list[Job]:
        """Take up to ``batch_size`` jobs by hand, highest priority first; settle them before they expire.

        ``priority=False`` takes them in order of sending alone.
        """
        return await self._execute_with(
            lambda own: self._store.claiming.fetch(
                queue,
                own=own,
                batch_size=batch_size,
                priority=priority,
                ignore_start_after=ignore_start_after,
                min_priority=min_priority,
                max_priority=max_priority,
            ),
            conn,
        )

    async def fetch_completed(
        self, queue: str, *, batch_size: int = 1, conn: AnyConnection | None = None, **options: Any
    ) -> list[Job]:
        """Take completion jobs of a queue: what was asked, and what came out, of each job that ended.

        The first call, or `on_complete`, starts them; jobs that ended before and are still archived count.
        """
        completions = await self._execute(self._store.queues.tell_completions(queue, history=True), conn)
        return await self.fetch(completions, batch_size=batch_size, conn=conn, **options)

    async def complete(
        self, queue: str, job_or_id: Targets, output: Json = None, *, conn: AnyConnection | None = None
    ) -> Settled:
        """End active jobs well. A `Job` settles only its own attempt: a stale one raises LeaseLost.

        A handler may pass the job it was given. What becomes of it then counts only if it did so in a transaction
        (``conn``) that was rolled back.
        """
        verb = self._store.settling.complete
        return await self._execute_with(lambda own: verb(queue, job_or_id, output, own=own), conn)

    async def fail(
        self, queue: str, job_or_id: Targets, error: object = None, *, conn: AnyConnection | None = None
    ) -> Settled:
        """End attempts badly: the jobs retry, or fail for good. ``error``: an exception, text or JSON."""
        verb = self._store.settling.fail
        return await self._execute_with(lambda own: verb(queue, job_or_id, error, own=own), conn)

    async def touch(self, queue: str, job_or_id: Targets, *, conn: AnyConnection | None = None) -> Settled:
        """Send a heartbeat for active jobs."""
        return await self._execute_with(
            lambda own: self._store.settling.touch(queue, job_or_id, own=own), conn
        )

    async def cancel(self, queue: str, id_or_ids: Targets, *, conn: AnyConnection | None = None) -> Settled:
        """Take queued or active jobs out; the handler of a running one is cancelled, wherever it runs."""
        return await self._execute_with(
            lambda own: self._store.settling.cancel(queue, id_or_ids, own=own), conn
        )

    async def resume(self, queue: str, id_or_ids: Targets, *, conn: AnyConnection | None = None) -> Settled:
        """Queue cancelled jobs again, in their old place."""
        return await self._execute_with(
            lambda own: self._store.settling.resume(queue, id_or_ids, own=own), conn
        )

    async def retry(self, queue: str, id_or_ids: Targets, *, conn: AnyConnection | None = None) -> Settled:
        """Give failed jobs one more try; this unblocks a key of strict FIFO."""
        return await self._execute_with(
            lambda own: self._store.settling.retry(queue, id_or_ids, own=own), conn
        )

    async def delete_job(
        self, queue: str, id_or_ids: Targets, *, conn: AnyConnection | None = None
    ) -> Settled:
        """Delete jobs in any state; this, too, unblocks a key of strict FIFO."""
        return await self._execute_with(
            lambda own: self._store.settling.delete(queue, id_or_ids, own=own), conn
        )

    async def delete_queued_jobs(self, queue: str, *, conn: AnyConnection | None = None) -> int:
        """Delete all jobs that wait in a queue, and return how many."""
        verb = self._store.settling.delete_many
        return await self._execute_with(lambda own: verb(queue, ["delete_queued_jobs"], own=own), conn)

    async def delete_stored_jobs(self, queue: str, *, conn: AnyConnection | None = None) -> int:
        """Delete all ended jobs of a queue, and return how many."""
        verb = self._store.settling.delete_many
        return await self._execute_with(lambda own: verb(queue, ["delete_stored_jobs"], own=own), conn)

    async def delete_all_jobs(self, queue: str | None = None, *, conn: AnyConnection | None = None) -> int:
        """Delete all jobs of a queue, or of all queues, and return how many."""
        verb = self._store.settling.delete_all
        return await self._execute_with(lambda own: verb(queue, own=own), conn)

    async def clear_storage(self, *, conn: AnyConnection | None = None) -> None:
        """Delete all jobs of all queues with their history, at once (TRUNCATE)."""
        await self._execute(self._store.settling.clear_storage(), conn)

    async def get_job_by_id(self, queue: str, id: UUID | str) -> Job | None:
        """One job, live or ended."""
        return await self._execute(self._store.reading.get_job(queue, id))

    async def find_jobs(self, queue: str, **filters: Any) -> list[Job]:
        """Jobs, live and ended, in order of sending.

        Filters: id, state, singleton_key, data (which the job's data contains), source_id (of dead letters),
        limit (1000), after (the seq of the last job of the page before).
        """
        return await self._execute(self._store.reading.find_jobs(queue, filters))

    async def why(self, queue: str, id: UUID | str) -> Explanation:
        """Why is this job not running?"""
        return await self._execute(self._store.reading.why(queue, id))
