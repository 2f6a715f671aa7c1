"""Boss, the part about sending."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, Unpack, overload
from uuid import UUID

import attrs

from trioboss.api.base import ApiBase
from trioboss.api.new_jobs import deferred, once, throttled
from trioboss.model.job import Duration, NewJob, SendOptions, Start
from trioboss.model.payload import Json
from trioboss.postgres.caller import AnyConnection, ensure_transaction
from trioboss.postgres.executor import execute_in
from trioboss.runtime.send_batching import SendBatcher

__all__ = ["SendingMixin"]


@attrs.define(eq=False, slots=False)  # only one of the bases of Boss can have slots with fields
class SendingMixin(ApiBase):
    """Everything that creates jobs."""

    _batcher: SendBatcher = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._batcher = SendBatcher(self._pool, self._store)

    async def send(
        self,
        queue: str,
        data: Json = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job and return its id, or None if the queue's policy or a throttle refused it.

        With ``conn`` the job is part of your transaction: it exists if and when that commits. Sending the same ``id``
        twice makes one job.
        """
        if conn is None and not options and self._store.sending.is_plain(queue):
            return await self._batcher.send(queue, data)
        return await self._send(queue, NewJob.from_options(data, options), conn)

    async def send_after(
        self,
        queue: str,
        data: Json,
        after: Start,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job that starts after so many seconds, or at that time."""
        return await self._send(queue, deferred(data, after, options), conn)

    async def send_throttled(
        self,
        queue: str,
        data: Json,
        seconds: Duration,
        key: str | None = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job unless one was sent in the same slot of so many seconds, for the same key."""
        return await self._send(queue, throttled(data, seconds, key, False, options), conn)

    async def send_debounced(
        self,
        queue: str,
        data: Json,
        seconds: Duration,
        key: str | None = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Like `send_throttled`, but a job whose slot is taken gets the next one, if that is free."""
        return await self._send(queue, throttled(data, seconds, key, True, options), conn)

    async def send_once(
        self,
        queue: str,
        data: Json,
        key: str,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> UUID | None:
        """Send a job unless one of the same key that was sent by this method is created, retry or active."""
        return await self._send(queue, once(data, key, options), conn, "ended")

    async def send_singleton(
        self, queue: str, data: Json, *, conn: AnyConnection | None = None, **options: Unpack[SendOptions]
    ) -> UUID | None:
        """Send a job unless one that was sent by this method, with the same key if any, is created or retry."""
        return await self._send(queue, NewJob.from_options(data, options), conn, "started")

    async def _send(
        self, queue: str, job: NewJob, conn: AnyConnection | None, unique_until: str | None = None
    ) -> UUID | None:
        send = self._store.sending.send
        return await self._execute_with(
            lambda own: send(queue, job, own=own, unique_until=unique_until), conn
        )

    @overload
    async def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: Literal[False] = False,
        conn: AnyConnection | None = None,
    ) -> int: ...

    @overload
    async def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: Literal[True],
        conn: AnyConnection | None = None,
    ) -> list[UUID]: ...

    async def insert(
        self,
        queue: str,
        jobs: Iterable[NewJob | Mapping[str, Any]],
        *,
        return_ids: bool = False,
        conn: AnyConnection | None = None,
    ) -> int | list[UUID]:
        """Insert any number of jobs, all or none, and return how many the policy accepted, or their ids.

        ``jobs`` are NewJobs, or dicts with ``data`` and the options of `send`; they are streamed.
        """
        insert = self._store.loading.insert(queue, jobs, keep_ids=return_ids, own=conn is None)
        if conn is not None:
            async with ensure_transaction(conn):
                loaded = await execute_in(conn, insert, self._pool)
                await self._execute_with(lambda own: self._store.sending.notify(queue, own=own), conn)
        else:
            async with self.transaction() as own_conn:
                loaded = await execute_in(own_conn, insert, self._pool)
            await self._execute_with(lambda own: self._store.sending.notify(queue, own=own), None)
        return loaded.count if loaded.ids is None else loaded.ids

    async def publish(
        self,
        event: str,
        data: Json = None,
        *,
        conn: AnyConnection | None = None,
        **options: Unpack[SendOptions],
    ) -> list[UUID]:
        """Send a job to every queue that is subscribed to the event, to all or none, and return their ids."""
        job = NewJob.from_options(data, options)
        return await self._execute_with(lambda own: self._store.sending.publish(event, job, own=own), conn)
