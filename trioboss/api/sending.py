"""Boss, the part about sending."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack, overload
from uuid import UUID

import attrs

from trioboss.api.base import ApiBase
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
from trioboss.events import JobCreated
from trioboss.model.job import Duration, NewJob, SendOptions, Start
from trioboss.model.payload import JsonInput
from trioboss.postgres.caller import CallerConnection, ensure_transaction, unwrap
from trioboss.postgres.errors import wrap_driver_errors
from trioboss.postgres.executor import execute_in
from trioboss.runtime.lifecycle import Runtime
from trioboss.runtime.send_batching import SendBatcher
from trioboss.store.loading import Loaded

__all__ = ["SendingMixin"]


@attrs.define(eq=False, slots=False)  # only one of the bases of Boss can have slots with fields
class SendingMixin(ApiBase):
    """Everything that creates jobs."""

    _runtime: Runtime
    _batcher: SendBatcher = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._batcher = SendBatcher(self._pool, self._store)

    async def send(
        self,
        queue: str | Mapping[str, Any],
        data: "JsonInput | NewJob" = None,
        *,
        on_duplicate: OnDuplicate = "refuse",
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job and return its id, or None if the queue's policy or a throttle refused it.

        ``data`` may be a `NewJob`. A single mapping is a whole request:
        ``send({"queue": "email", "data": {…}, "options": {…}})``.

        With ``conn`` the job is part of your transaction: it exists if and when that commits. Sending the same ``id``
        twice makes one job. ``data`` is what JSON can hold exactly, at most ``max_payload`` bytes.
        ``on_duplicate="update"``: a queued job of the same ``id``, or else the newest of the same ``singleton_key``,
        gets this data and these options instead; without one, a job is sent.

        The options are those of `SendOptions`: id, priority (0), start_after; singleton_key, singleton_seconds,
        singleton_next_slot; and, where the job differs from its queue, dead_letter, retry_limit, retry_delay,
        retry_backoff, retry_delay_max, retry_jitter, retry_multiplier, retry_window, expire_in, heartbeat,
        auto_heartbeat, max_lease_extensions, retention and delete_after. ``singleton_key`` alone refuses nothing on a
        queue of the policy standard: see `SendOptions`.
        """
        if not isinstance(queue, str):
            queue, data = read_request(queue, data, options)
            options = {}
        if (
            conn is None
            and not options
            and not isinstance(data, NewJob)
            and on_duplicate == "refuse"
            and self._store.sending.is_plain(queue)
        ):
            self._check_open()
            return self._created(queue, await self._batcher.send(queue, data))
        job = make_job(data, options)
        if on_duplicate == "refuse":
            return await self._send(queue, job, conn)
        return await self._send_or_update(queue, job, on_duplicate, conn)

    async def _send_or_update(
        self, queue: str, job: NewJob, on_duplicate: object, conn: CallerConnection | None
    ) -> UUID | None:
        id, was_sent = await self._execute_with(send_or_update(self._store, queue, job, on_duplicate), conn)
        return self._created(queue, id) if was_sent else id

    async def send_after(
        self,
        queue: str,
        data: JsonInput,
        after: Start,
        *,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job that starts later. Options as in `send`.

        ``after``: seconds or a timedelta from now, an aware datetime, or ISO 8601 text.
        """
        return await self._send(queue, deferred(data, after, options), conn)

    async def send_throttled(
        self,
        queue: str,
        data: JsonInput,
        seconds: Duration,
        key: str | None = None,
        *,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job, unless one of the same ``key`` was sent in the same throttle slot of ``seconds``: None then.

        Slots are counted from the beginning of 1970 in UTC: with 3600 they are the hours of the clock. Options as in
        `send`.
        """
        return await self._send(queue, throttled(data, seconds, key, False, options), conn)

    async def send_debounced(
        self,
        queue: str,
        data: JsonInput,
        seconds: Duration,
        key: str | None = None,
        *,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Like `send_throttled`, but a job whose throttle slot is taken starts in the next one, if that is free."""
        return await self._send(queue, throttled(data, seconds, key, True, options), conn)

    async def send_once(
        self,
        queue: str,
        data: JsonInput,
        key: str,
        *,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job unless one of the same key that was sent by this method is created, retry or active."""
        return await self._send(queue, once(data, key, options), conn, "ended")

    async def send_singleton(
        self,
        queue: str,
        data: JsonInput,
        *,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job unless one that was sent by this method, with the same key if any, is created or retry."""
        return await self._send(queue, singleton(data, options), conn, "started")

    async def _send(
        self, queue: str, job: NewJob, conn: CallerConnection | None, unique_until: str | None = None
    ) -> UUID | None:
        send = self._store.sending.send
        id = await self._execute_with(lambda own: send(queue, job, own=own, unique_until=unique_until), conn)
        return self._created(queue, id)

    def _created(self, queue: str, id: UUID | None) -> UUID | None:
        """Report the job, if there is one and a reader."""
        if id is not None and self._runtime.reporter.has_created_reader:
            self._runtime.reporter.report(JobCreated(queue, id))
        return id

    @overload
    async def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: Literal[False] = False,
        conn: CallerConnection | None = None,
    ) -> int: ...

    @overload
    async def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: Literal[True],
        conn: CallerConnection | None = None,
    ) -> list[UUID]: ...

    async def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: bool = False,
        conn: CallerConnection | None = None,
    ) -> int | list[UUID]:
        """Insert any number of jobs, all or none, and return how many the policy accepted, or their ids.

        ``jobs`` are NewJobs, or dicts with ``data`` and the options of `send`; they are streamed, so that a million of
        them need no list. ``return_ids``: return the ids of those that were accepted, instead of their number.
        """
        insert = self._store.loading.insert(queue, jobs, keep_ids=return_ids, own=conn is None)
        if conn is not None:
            connection = unwrap(conn)
            with wrap_driver_errors():  # of the savepoint around both
                async with ensure_transaction(connection):
                    loaded = await execute_in(connection, insert, self._pool)
                    await self._execute_with(lambda own: self._store.sending.notify(queue, own=own), conn)
        else:
            async with self.transaction() as own_conn:
                loaded = await execute_in(own_conn, insert, self._pool)
            await self._execute_with(lambda own: self._store.sending.notify(queue, own=own), None)
        if self._runtime.reporter.has_created_reader:
            for event in _inserted(queue, loaded):
                self._runtime.reporter.report(event)
        return loaded.count if loaded.ids is None else loaded.ids

    async def publish(
        self,
        event: str,
        data: JsonInput = None,
        *,
        conn: CallerConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> list[UUID]:
        """Send a job to every queue that is subscribed to the event, to all or none, and return their ids."""
        job = published(data, options)
        ids = await self._execute_with(lambda own: self._store.sending.publish(event, job, own=own), conn)
        if self._runtime.reporter.has_created_reader:
            for id in ids:
                self._runtime.reporter.report(JobCreated(None, id))
        return ids


def _inserted(queue: str, loaded: Loaded) -> list[JobCreated]:
    if loaded.ids is None:
        return [JobCreated(queue, None, loaded.count)] if loaded.count else []
    return [JobCreated(queue, id) for id in loaded.ids]
