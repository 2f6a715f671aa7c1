"""Boss, the part about queues, schedules and subscriptions."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Unpack

from trioboss.api.base import ApiBase
from trioboss.model.job import Duration, SendOptions
from trioboss.model.payload import JsonInput
from trioboss.model.queue import Queue, QueueOptions, QueueStats
from trioboss.model.schedule import Schedule
from trioboss.model.statistics import KeptWarning, QueueSample
from trioboss.postgres.caller import CallerConnection
from trioboss.postgres.migrate import read_version

__all__ = ["QueuesMixin"]


class QueuesMixin(ApiBase):
    """Queues, schedules, subscriptions, and the schema itself."""

    async def create_queue(
        self, name: str, *, conn: CallerConnection | None = None, **options: Unpack[QueueOptions]
    ) -> None:
        """Create a queue. Creating the same queue again does nothing; with other options it raises QueueExists.

        ``name``: 1 to 200 ASCII letters, digits and any of ``_ . - /``. The options are those of `QueueOptions`:
        policy, partition; dead_letter, retry_limit (2), retry_delay (0 s), retry_backoff, retry_delay_max,
        retry_jitter, retry_multiplier (2), retry_window; expire_in (900 s), heartbeat, auto_heartbeat,
        max_lease_extensions (3); commit_order; warning_queue_size; retention (14 days), delete_after (7 days),
        keep_completed.
        """
        await self._execute(self._store.queues.create(name, options), conn)

    async def update_queue(
        self, name: str, *, conn: CallerConnection | None = None, **options: Unpack[QueueOptions]
    ) -> None:
        """Change the given options of a queue, all but policy and partition. Other options stay as they are.

        The changes apply to queued jobs, too, except for options that a job overrides. Attempts that are running keep
        their expire_in and heartbeat.
        """
        await self._execute(self._store.queues.update(name, options), conn)

    async def delete_queue(self, name: str, *, conn: CallerConnection | None = None) -> None:
        """Delete a queue and its live jobs; the archive keeps its ended ones. A missing queue is no error.

        A queue that others name as their dead letter queue raises QueueInUse.
        """
        await self._execute(self._store.queues.delete(name), conn)

    async def get_queue(self, name: str) -> Queue | None:
        """The queue of that name, or None."""
        return await self._execute(self._store.queues.get(name))

    async def get_queues(self, names: Iterable[str] | None = None) -> list[Queue]:
        """All queues, or those of these names, in the order of their names. An unknown name raises UnknownQueue."""
        return await self._execute(self._store.queues.get_all(names))

    async def get_queue_stats(self, name: str) -> QueueStats:
        """Count the queue's jobs now; ended ones of the last day."""
        return await self._execute(self._store.statistics.get_stats(name))

    async def get_all_queue_stats(self) -> dict[str, QueueStats]:
        """Count the jobs of all queues now, in one statement; by name."""
        return await self._execute(self._store.statistics.get_all_stats())

    async def get_queue_stats_history(
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
        return await self._execute(self._store.statistics.get_history(name, since, until, bucket))

    async def get_warnings(
        self, queue: str | None = None, *, since: datetime | str | None = None, limit: int = 100
    ) -> list[KeptWarning]:
        """Warnings of maintenance, of one queue or of all, the newest first. They are kept for a week."""
        return await self._execute(self._store.statistics.get_warnings(queue, since, limit))

    async def get_queue_size(self, name: str, before: str = "active") -> int:
        """Count the jobs in the states before the given one; the order is created, retry, active, completed, cancelled,
        failed. By default those that are queued. Ended jobs are those of the last 24 hours.
        """
        return await self._execute(self._store.queues.get_size(name, before))

    async def get_blocked_keys(self, name: str) -> list[str]:
        """The keys of a key_strict_fifo queue that a failed job blocks, until it is retried or deleted.

        UsageError for a queue of another policy, in which no key can be blocked.
        """
        return await self._execute(self._store.queues.get_blocked_keys(name))

    async def pause(self, name: str, *, conn: CallerConnection | None = None) -> None:
        """Let no worker claim jobs of the queue. Running jobs go on."""
        await self._execute(self._store.queues.pause(name, True), conn)

    async def resume_queue(self, name: str, *, conn: CallerConnection | None = None) -> None:
        """Let workers claim jobs of the queue again."""
        await self._execute(self._store.queues.pause(name, False), conn)

    async def schedule(
        self,
        queue: str,
        cron: str,
        data: JsonInput = None,
        *,
        tz: str = "UTC",
        key: str = "",
        missed: Literal["skip", "latest", "all"] = "skip",
        conn: CallerConnection | None = None,
        **send_options: Unpack[SendOptions],
    ) -> None:
        """Send a job at every tick of a cron expression: five fields, or six with seconds first; or an alias like
        ``@daily``; or of a recurrence rule (RFC 5545): ``FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17``, also with lines DTSTART,
        RDATE and EXDATE. `preview_schedule` shows the ticks.

        The schedule of the same queue and key is replaced. ``tz``: the time zone of the expression, as
        ``"Europe/Berlin"``. ``missed``: which ticks are fired that were due while no boss was running: none ("skip"),
        the "latest", or "all", at most the last 1,000. Further options are those of `send`, for the job of each tick,
        except ``id`` and ``start_after``.
        """
        operation = self._store.schedules.schedule(queue, cron, data, tz, key, missed, send_options)
        await self._execute(operation, conn)

    async def unschedule(self, queue: str, key: str = "", *, conn: CallerConnection | None = None) -> None:
        """Remove a schedule. A missing one is no error."""
        await self._execute(self._store.schedules.unschedule(queue, key), conn)

    async def get_schedules(self, queue: str | None = None) -> list[Schedule]:
        """The schedules of one queue, or all of them."""
        return await self._execute(self._store.schedules.get_all(queue))

    async def subscribe(self, event: str, queue: str, *, conn: CallerConnection | None = None) -> None:
        """Send a job to the queue whenever the event is published."""
        await self._execute(self._store.sending.subscribe(event, queue), conn)

    async def unsubscribe(self, event: str, queue: str, *, conn: CallerConnection | None = None) -> None:
        """End a subscription. A missing one is no error."""
        await self._execute(self._store.sending.unsubscribe(event, queue), conn)

    async def is_installed(self) -> bool:
        """Whether the schema exists, in any version."""
        return await self.schema_version() is not None

    async def schema_version(self) -> int | None:
        """The version of the schema, or None."""
        return await self._execute(read_version(self._store.context.catalog))
