"""The public interface for blocking programs: `SyncBoss` executes the same operations as Boss."""

import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, Unpack
from uuid import UUID

from trioboss.api.blocking import AnyConn, BlockingBase
from trioboss.api.new_jobs import (
    OnDuplicate,
    deferred,
    make_job,
    once,
    published,
    read_request,
    send_or_update,
    singleton,
    throttled,
)
from trioboss.model.answers import Redriven, Settled
from trioboss.model.explanation import Explanation
from trioboss.model.job import (
    Duration,
    FetchOptions,
    FindOptions,
    Job,
    NewJob,
    SendOptions,
    Start,
    UpdateOptions,
)
from trioboss.model.option_names import check_known, checks_keywords
from trioboss.model.payload import JsonInput
from trioboss.model.queue import Queue, QueueOptions, QueueStats
from trioboss.model.schedule import Schedule
from trioboss.model.statistics import KeptWarning, QueueSample
from trioboss.postgres.migrate import read_version
from trioboss.store import Targets

__all__ = ["SyncBoss"]


@checks_keywords
class SyncBoss(BlockingBase):
    """Sends, settles and reads jobs from code without trio: Django, scripts, Spark executors.

    Use it as a context manager, or call `close` at the end; any number of threads may share it. Each method is
    described in full at the method of `Boss` that has the same name.

    The arguments are those of `open_boss` with the same names. ``connect`` is a blocking function here: it opens each
    connection instead of ``psycopg.Connection.connect``, with the same arguments. The database is opened by the first
    call; if that fails, the next call tries again.
    """

    # -- queues

    def create_queue(self, name: str, *, conn: AnyConn = None, **options: Unpack[QueueOptions]) -> None:
        """Create a queue."""
        self._execute(self._store.queues.create(name, options), conn)

    def update_queue(self, name: str, *, conn: AnyConn = None, **options: Unpack[QueueOptions]) -> None:
        """Change the given options."""
        self._execute(self._store.queues.update(name, options), conn)

    def delete_queue(self, name: str, *, conn: AnyConn = None) -> None:
        """Delete a queue and its live jobs."""
        self._execute(self._store.queues.delete(name), conn)

    def pause(self, name: str, *, conn: AnyConn = None) -> None:
        """Let no worker claim jobs of the queue."""
        self._execute(self._store.queues.pause(name, True), conn)

    def resume_queue(self, name: str, *, conn: AnyConn = None) -> None:
        """Let workers claim jobs of the queue again."""
        self._execute(self._store.queues.pause(name, False), conn)

    def get_queue(self, name: str) -> Queue | None:
        """The queue of that name, or None."""
        return self._execute(self._store.queues.get(name))

    def get_queues(self, names: Iterable[str] | None = None) -> list[Queue]:
        """All queues, or those of these names."""
        return self._execute(self._store.queues.get_all(names))

    def get_queue_stats(self, name: str) -> QueueStats:
        """Count the queue's jobs now; ended ones of the last day."""
        return self._execute(self._store.statistics.get_stats(name))

    def get_all_queue_stats(self) -> dict[str, QueueStats]:
        """Count the jobs of all queues now, in one statement; by name."""
        return self._execute(self._store.statistics.get_all_stats())

    def get_queue_stats_history(
        self,
        name: str,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        bucket: Duration | None = None,
    ) -> list[QueueSample]:
        """The queue over time, in periods of ``bucket`` seconds, a number of minutes; by default the last hour by the
        minute. Maintenance takes the samples, and keeps them for a day: without a boss that does maintenance there are
        none.
        """
        return self._execute(self._store.statistics.get_history(name, since, until, bucket))

    def get_warnings(
        self, queue: str | None = None, *, since: datetime | str | None = None, limit: int = 100
    ) -> list[KeptWarning]:
        """Warnings of maintenance, of one queue or of all, the newest first. They are kept for a week."""
        return self._execute(self._store.statistics.get_warnings(queue, since, limit))

    def get_queue_size(self, name: str, before: str = "active") -> int:
        """Count the jobs in the states before the given one; ended ones are those of the last 24 hours."""
        return self._execute(self._store.queues.get_size(name, before))

    def get_blocked_keys(self, name: str) -> list[str]:
        """The keys of a strict FIFO queue that a failed job blocks. UsageError for a queue of another policy."""
        return self._execute(self._store.queues.get_blocked_keys(name))

    def is_installed(self) -> bool:
        """Whether the schema exists, in any version."""
        return self.schema_version() is not None

    def schema_version(self) -> int | None:
        """The version of the schema, or None."""
        return self._execute_unchecked(read_version(self._store.context.catalog))

    def schedule(
        self,
        queue: str,
        cron: str,
        data: JsonInput = None,
        *,
        tz: str = "UTC",
        key: str = "",
        missed: Literal["skip", "latest", "all"] = "skip",
        conn: AnyConn = None,
        **send_options: Unpack[SendOptions],
    ) -> None:
        """Send a job at every tick of a cron expression."""
        schedule = self._store.schedules.schedule
        self._execute(schedule(queue, cron, data, tz, key, missed, send_options), conn)

    def unschedule(self, queue: str, key: str = "", *, conn: AnyConn = None) -> None:
        """Remove a schedule."""
        self._execute(self._store.schedules.unschedule(queue, key), conn)

    def get_schedules(self, queue: str | None = None) -> list[Schedule]:
        """The schedules of a queue, or all."""
        return self._execute(self._store.schedules.get_all(queue))

    # -- sending

    def send(
        self,
        queue: str | Mapping[str, Any],
        data: "JsonInput | NewJob" = None,
        *,
        on_duplicate: OnDuplicate = "refuse",
        conn: AnyConn = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job; None if the policy or a throttle refused it."""
        if isinstance(queue, str):
            job = make_job(data, options)
        else:
            queue, job = read_request(queue, data, options)
        if on_duplicate == "refuse":
            return self._send(queue, job, conn)
        return self._execute_with(send_or_update(self._store, queue, job, on_duplicate), conn)[0]

    def send_after(
        self,
        queue: str,
        data: JsonInput,
        after: Start,
        *,
        conn: AnyConn = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job that starts after so many seconds, or at that time."""
        return self._send(queue, deferred(data, after, options), conn)

    def send_throttled(
        self,
        queue: str,
        data: JsonInput,
        seconds: Duration,
        key: str | None = None,
        *,
        conn: AnyConn = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job unless one was sent in the same throttle slot."""
        return self._send(queue, throttled(data, seconds, key, False, options), conn)

    def send_debounced(
        self,
        queue: str,
        data: JsonInput,
        seconds: Duration,
        key: str | None = None,
        *,
        conn: AnyConn = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job in this throttle slot, or in the next one."""
        return self._send(queue, throttled(data, seconds, key, True, options), conn)

    def send_once(
        self, queue: str, data: JsonInput, key: str, *, conn: AnyConn = None, **options: Unpack[SendOptions]
    ) -> UUID | None:
        """Send a job unless one of the same key is created, retry or active."""
        return self._send(queue, once(data, key, options), conn, "ended")

    def send_singleton(
        self, queue: str, data: JsonInput, *, conn: AnyConn = None, **options: Unpack[SendOptions]
    ) -> UUID | None:
        """Send a job unless one is created or retry."""
        return self._send(queue, singleton(data, options), conn, "started")

    def _send(self, queue: str, job: NewJob, conn: AnyConn, unique_until: str | None = None) -> UUID | None:
        send = self._store.sending.send
        return self._execute_with(lambda own: send(queue, job, own=own, unique_until=unique_until), conn)

    def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: bool = False,
        conn: AnyConn = None,
    ) -> int | list[UUID]:
        """Insert any number of jobs, all or none; return how many the policy accepted, or their ids."""
        insert = self._store.loading.insert(queue, jobs, keep_ids=return_ids, own=conn is None)
        loaded = self._execute_atomically(insert, conn)
        self._execute_with(lambda own: self._store.sending.notify(queue, own=own), conn)
        return loaded.count if loaded.ids is None else loaded.ids

    def publish(
        self, event: str, data: JsonInput = None, *, conn: AnyConn = None, **options: Unpack[SendOptions]
    ) -> list[UUID]:
        """Send a job to every queue that is subscribed to the event."""
        job = published(data, options)
        return self._execute_with(lambda own: self._store.sending.publish(event, job, own=own), conn)

    def subscribe(self, event: str, queue: str, *, conn: AnyConn = None) -> None:
        """Send a job to the queue whenever the event is published."""
        self._execute(self._store.sending.subscribe(event, queue), conn)

    def unsubscribe(self, event: str, queue: str, *, conn: AnyConn = None) -> None:
        """End a subscription."""
        self._execute(self._store.sending.unsubscribe(event, queue), conn)

    # -- jobs

    def fetch(
        self,
        queue: str,
        *,
        batch_size: int = 1,
        priority: bool = True,
        ignore_start_after: bool = False,
        min_priority: int | None = None,
        max_priority: int | None = None,
        conn: AnyConn = None,
    ) -> list[Job]:
        """Claim jobs."""
        return self._execute_with(
            lambda own: self._store.manual.fetch(
                queue,
                own=own,
                now=time.monotonic(),
                batch_size=batch_size,
                priority=priority,
                ignore_start_after=ignore_start_after,
                min_priority=min_priority,
                max_priority=max_priority,
            ),
            conn,
        )

    def fetch_completed(
        self, queue: str, *, batch_size: int = 1, conn: AnyConn = None, **options: Unpack[FetchOptions]
    ) -> list[Job]:
        """Claim completion jobs of a queue."""
        check_known("fetch_completed", options, FetchOptions.__annotations__, ("batch_size", "conn"))
        completions = self._execute(self._store.queues.copy_completions(queue, history=True), conn)
        return self.fetch(completions, batch_size=batch_size, conn=conn, **options)

    def complete(
        self,
        queue: str,
        job_or_id: Targets,
        output: JsonInput = None,
        *,
        include_queued: bool = False,
        conn: AnyConn = None,
    ) -> Settled:
        """Complete active jobs."""
        complete = self._store.manual.complete
        return self._execute_with(
            lambda own: complete(queue, job_or_id, output, own=own, include_queued=include_queued), conn
        )

    def fail(self, queue: str, job_or_id: Targets, error: object = None, *, conn: AnyConn = None) -> Settled:
        """Fail active jobs."""
        fail = self._store.manual.fail
        return self._execute_with(lambda own: fail(queue, job_or_id, error, own=own), conn)

    def touch(self, queue: str, job_or_id: Targets, *, conn: AnyConn = None) -> Settled:
        """Send a heartbeat for active jobs."""
        return self._execute_with(lambda own: self._store.leases.touch(queue, job_or_id, own=own), conn)

    def cancel(self, queue: str, id_or_ids: Targets, *, conn: AnyConn = None) -> Settled:
        """Cancel queued or active jobs."""
        return self._execute_with(lambda own: self._store.changing.cancel(queue, id_or_ids, own=own), conn)

    def resume(self, queue: str, id_or_ids: Targets, *, conn: AnyConn = None) -> Settled:
        """Queue cancelled jobs again."""
        return self._execute_with(lambda own: self._store.changing.resume(queue, id_or_ids, own=own), conn)

    def retry(self, queue: str, id_or_ids: Targets, *, conn: AnyConn = None) -> Settled:
        """Retry failed jobs once more."""
        return self._execute_with(lambda own: self._store.changing.retry(queue, id_or_ids, own=own), conn)

    def delete_job(self, queue: str, id_or_ids: Targets, *, conn: AnyConn = None) -> Settled:
        """Delete jobs in any state."""
        return self._execute_with(lambda own: self._store.changing.delete(queue, id_or_ids, own=own), conn)

    def delete_queued_jobs(self, queue: str, *, conn: AnyConn = None) -> int:
        """Delete all queued jobs of a queue."""
        delete = self._store.changing.delete_many
        return self._execute_with(lambda own: delete(queue, ["delete_queued_jobs"], own=own), conn)

    def delete_stored_jobs(self, queue: str, *, conn: AnyConn = None) -> int:
        """Delete all ended jobs of a queue."""
        delete = self._store.changing.delete_many
        return self._execute_with(lambda own: delete(queue, ["delete_stored_jobs"], own=own), conn)

    def delete_all_jobs(self, queue: str | None = None, *, conn: AnyConn = None) -> int:
        """Delete EVERY job of a queue, or of ALL queues: running ones and the archive, too."""
        return self._execute_with(lambda own: self._store.changing.delete_all(queue, own=own), conn)

    def delete_all_queued_jobs(self, *, conn: AnyConn = None) -> int:
        """Delete the queued jobs of all queues."""
        return self._execute_with(lambda own: self._store.changing.delete_all_queued(own=own), conn)

    def update_job(
        self,
        queue: str,
        id: UUID | str | None = None,
        *,
        key: str | None = None,
        match: Literal["newest", "oldest", "all"] = "newest",
        conn: AnyConn = None,
        **changes: Unpack[UpdateOptions],
    ) -> Settled:
        """Change a queued job."""
        update = self._store.changing.update
        return self._execute_with(lambda own: update(queue, id, key, match, changes, own=own), conn)

    def clear_storage(self, *, conn: AnyConn = None) -> None:
        """Delete all jobs of all queues."""
        self._execute(self._store.changing.clear_storage(), conn)

    def redrive(
        self,
        dead_letter_queue: str,
        *,
        to: str | None = None,
        source: str | None = None,
        limit: int | None = None,
        dry_run: bool = False,
        force: bool = False,
        conn: AnyConn = None,
    ) -> Redriven:
        """Send jobs of a dead letter queue back."""
        redrive = self._store.redriving.redrive
        operation = redrive(dead_letter_queue, to, source, limit, dry_run=dry_run, force=force)
        return self._execute(operation, conn)

    def get_job_by_id(self, queue: str, id: UUID | str, *, conn: AnyConn = None) -> Job | None:
        """One job, live or ended, or None."""
        return self._execute(self._store.reading.get_job(queue, id), conn)

    def find_jobs(self, queue: str, *, conn: AnyConn = None, **filters: Unpack[FindOptions]) -> list[Job]:
        """Jobs, live and ended, in order of sending."""
        return self._execute(self._store.reading.find_jobs(queue, filters), conn)

    def why(self, queue: str, id: UUID | str) -> Explanation:
        """Explain why a job is not running."""
        return self._execute(self._store.reading.why(queue, id))
