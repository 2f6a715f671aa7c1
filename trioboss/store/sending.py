"""Operations that send jobs. Bulk loads are in loading.py."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import attrs

from trioboss.errors import QueueChanged, UnknownQueue, UsageError
from trioboss.model.check import check_name
from trioboss.model.ids import make_id
from trioboss.model.job import OPTIONS, NewJob
from trioboss.model.payload import JsonInput, encode
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_table_gone
from trioboss.postgres.operation import Batch, OnOwnConnection, Operation
from trioboss.postgres.wire import PGresult, read_rows
from trioboss.store.context import Context, text_array, uuid_array
from trioboss.store.rows import read_first, read_queues

__all__ = ["PendingSend", "SendOperations", "overrides", "require_key", "start"]

_MOST_TRIES = 3  # to update or send a job: another session may claim or send one in between
_OLD_SNAPSHOT = ("repeatable read", "serializable")


def overrides(job: NewJob) -> str | None:
    """The options of its queue that a job overrides, as JSON text; None if there are none."""
    options = {name: value for name in OPTIONS if (value := getattr(job, name)) is not None}
    if job.trace:
        options["trace"] = job.trace
    if not options:
        return None
    if job.retry_backoff is not None and job.retry_jitter is None:
        # The jitter of the queue belongs to the backoff of the queue, which the job overrides.
        options["retry_jitter"] = 0.5 if job.retry_backoff else 0.0
    return json.dumps(options)


def start(job: NewJob) -> dict[str, Any]:
    """When a job may start, as parameters of send.sql: an instant, or a delay in seconds."""
    return {"start_after" if isinstance(job.start_after, datetime) else "delay": job.start_after}


def require_key(queue: Queue, job: NewJob) -> None:
    """Strict FIFO is order for each key, so every job needs one."""
    if queue.policy is Policy.KEY_STRICT_FIFO and job.singleton_key is None:
        raise UsageError("key_strict_fifo queues require a singleton_key")


@attrs.frozen
class _Sent:
    """The answer of send.sql or send_throttled.sql. No id: the job was refused, or the cached queue is outdated."""

    id: UUID | None = None
    isolation: str | None = None
    """Of the caller's transaction."""
    slot: datetime | None = None


def _read_sent(result: PGresult) -> _Sent:
    rows = read_rows(result)
    return _Sent(rows[0][0], *rows[0][2:]) if rows else _Sent()


class PendingSend(Protocol):
    """A send of a job that brings nothing but its data, as JSON text."""

    @property
    def id(self) -> UUID:
        """The id of the job."""

    @property
    def data(self) -> str | None:
        """Its data."""


@attrs.frozen
class SendOperations:
    """Send jobs and publish events. ``own`` says whether the transaction is ours or the caller's."""

    _context: Context

    def send(
        self, name: str, job: NewJob, *, own: bool, unique_until: str | None = None
    ) -> Operation[UUID | None]:
        """Put a job into a queue; None if the policy or a throttle refused it."""
        check_name("queue", name)
        id = UUID(str(job.id)) if job.id else make_id()
        data = self.write_data(job.data)
        return (yield from self.send_encoded(name, job, id, data, own=own, unique_until=unique_until))

    def send_or_update(
        self, name: str, job: NewJob, update: Callable[[], Operation[list[UUID]]], *, own: bool
    ) -> Operation[tuple[UUID | None, bool]]:
        """Change the queued job of the same id or key by ``update``, or else send one; return its id, and whether it
        was sent.
        """
        # A key is sent as `send_singleton` does it: of two calls at the same time one is refused, and updates then.
        unique_until = "started" if job.id is None else None
        # Between the two another session can take the job away, or send one: then the other of the two succeeds.
        for _ in range(_MOST_TRIES):
            if updated := (yield from update()):
                return updated[0], False
            id = yield from self.send(name, job, own=own, unique_until=unique_until)
            if id is not None:
                return id, True
        return None, False

    def write_data(self, data: JsonInput) -> str | None:
        """A job's data as JSON text."""
        return None if data is None else encode(data, "data", self._context.max_bytes)

    def is_plain(self, name: str) -> bool:
        """Whether this is cached as a standard queue: its jobs need nothing but their data."""
        queue = self._context.cached(name)
        return queue is not None and queue.policy is Policy.STANDARD

    def send_plain(self, name: str, sends: Sequence[PendingSend]) -> Operation[bool]:
        """Put jobs that bring nothing but their data into a standard queue: all, or none if it is another now."""
        # The statement inserts nothing unless the queue is a standard one now: then the sends go one by one.
        queue = yield from self._context.find(name)
        ids, data = uuid_array(send.id for send in sends), text_array(send.data for send in sends)
        send_all = self._context.bind("send_plain", queue.table_name, queue=name, ids=ids, data=data)
        try:
            results = yield Batch((send_all,), follow_up=(self._context.notify_idle(name, ready=True),))
        except Exception as error:
            return self._is_other_queue(name, error)
        return results[0][0].command_tuples != 0

    def send_and_notify(self, name: str, send: PendingSend) -> Operation[bool]:
        """The same for one, which notifies idle dispatchers by its own commit, unless another sender is doing so."""
        # The cache may be outdated. The statement checks the policy itself, and inserts nothing if it is another one.
        queue = yield from self._context.find(name)
        values = {"queue": name, "id": send.id, "data": send.data}
        try:
            results = yield Batch((self._context.bind("send_and_notify", queue.table_name, **values),))
        except Exception as error:
            return self._is_other_queue(name, error)
        answer = read_rows(results[0][0])
        # No row: it is no standard queue. False: committed, but nobody was notified yet.
        if answer == [(False,)]:
            yield Batch(follow_up=(self._context.notify_idle(name, ready=True),))
        return bool(answer)

    def _is_other_queue(self, name: str, error: Exception) -> bool:
        """False if the error says that the queue has another table now, so that nothing was sent; else raise it."""
        if not is_table_gone(error):
            raise error
        self._context.forget(name)
        return False

    def send_encoded(
        self,
        name: str,
        job: NewJob,
        id: UUID,
        data: str | None,
        *,
        own: bool,
        unique_until: str | None = None,
    ) -> Operation[UUID | None]:
        """Send a job whose id is chosen and whose data is JSON text already."""

        def send(queue: Queue) -> Operation[UUID | None]:
            # In the caller's transaction the notification is part of the statement; on ours it follows the commit.
            statement = self._bind(queue, job, id, data, notify=not own, unique_until=unique_until)
            # An id of the caller's own may be one that was sent, and has ended, before.
            unless_ended = (self.drop_if_ended(queue, [id]),) if job.id else ()
            notify = (self.notify_idle(name, job),) if own else ()
            results = yield Batch((statement, *unless_ended), follow_up=notify)
            sent = _read_sent(results[0][0])
            if sent.id is not None and not (unless_ended and read_rows(results[0][1])):
                if sent.isolation in _OLD_SNAPSHOT and (
                    yield from self.check_snapshot(queue, [id] if job.id else [])
                ):
                    yield Batch(self._return_slot(name, id, sent.slot))
                return id
            return (yield from self._refused(queue, job, id, sent.slot))

        return (yield from self._context.on_queue(name, send))

    def check_snapshot(self, queue: Queue, given: Sequence[UUID]) -> Operation[set[UUID]]:
        """Check a send in a transaction of the caller, with an isolation level above READ COMMITTED: its snapshot shows
        the database as it was when the transaction began.

        Raises QueueChanged if the queue has been deleted and created again since. Removes jobs of this send whose
        ``given`` id belongs to a job that has ended since, and returns their ids.
        """
        read = self._context.bind("get_queues", queue=queue.name)
        seen = read_queues((yield Batch((read,))))
        find = self._context.bind("find_ended_ids", queue=queue.name, ids=uuid_array(given))
        now = yield OnOwnConnection(Batch((read, find)))
        # A queue that only the caller's transaction has is one that it has made.
        if any(found.created_on != seen[0].created_on for found in read_queues(now)):
            self._context.forget(queue.name)
            raise QueueChanged(queue.name)
        ended = [row[0] for row in read_rows(now[0][1])]
        if ended:
            yield Batch((self._context.bind("drop_sent", queue=queue.name, ids=uuid_array(ended)),))
        return set(ended)

    def _bind(
        self, queue: Queue, job: NewJob, id: UUID, data: str | None, *, notify: bool, unique_until: str | None
    ) -> BoundStatement:
        require_key(queue, job)
        key = job.singleton_key
        values = start(job) | {"queue": queue.name, "id": id, "data": data, "notify": notify}
        values |= {"priority": job.priority, "singleton_key": key, "options": overrides(job)}
        values["unique_key"] = None if unique_until is None else f"{unique_until}:{key or ''}"
        if job.singleton_seconds is None:
            return self._context.bind("send", queue.table_name, **values)
        values["singleton_seconds"] = job.singleton_seconds
        values["singleton_next_slot"] = bool(job.singleton_next_slot)
        return self._context.bind("send_throttled", queue.table_name, **values)

    def notify_idle(self, name: str, job: NewJob | None = None) -> BoundStatement:
        """The statement that notifies dispatchers that would still be waiting when the job is due; for a transaction of
        its own.
        """
        if job is None or job.start_after is None:
            # A throttled job may have got a later throttle slot.
            return self._context.notify_idle(name, ready=job is not None and job.singleton_seconds is None)
        due = {"due" if isinstance(job.start_after, datetime) else "delay": job.start_after}
        return self._context.bind("notify_idle", queue=name, **due)

    def drop_if_ended(self, queue: Queue, ids: Iterable[UUID]) -> BoundStatement:
        """The statement that removes jobs just sent whose ids ended before."""
        return self._context.bind("drop_if_ended", queue.table_name, queue=queue.name, ids=uuid_array(ids))

    def notify(self, name: str, *, own: bool) -> Operation[None]:
        """Notify the workers that the queue has jobs: at once, or when the caller commits."""
        yield Batch((self.notify_idle(name) if own else self._context.bind("notify_queue", queue=name),))

    def _refused(self, queue: Queue, job: NewJob, id: UUID, slot: datetime | None) -> Operation[UUID | None]:
        """Nothing was sent: find out why. None: the policy refused the job. The id: it was sent before."""
        explain = self._context.bind(
            "explain_refusal", queue.table_name, queue=queue.name, id=id, dead_letter=job.dead_letter
        )
        results = yield Batch((*self._return_slot(queue.name, id, slot), explain))
        policy, dead_letter_exists, sent_before = read_rows(results[0][-1])[0]
        # Causes in order of certainty; a refusal by policy or throttle remains.
        if policy is None:
            self._context.forget(queue.name)
            raise UnknownQueue(queue.name)
        if job.dead_letter is not None and not dead_letter_exists:
            raise UnknownQueue(job.dead_letter)
        if policy != queue.policy:
            self._context.forget(queue.name)
            require_key((yield from self._context.find(queue.name)), job)
        return id if sent_before else None

    def _return_slot(self, name: str, id: UUID, slot: datetime | None) -> tuple[BoundStatement, ...]:
        """The statement, if any, that returns the throttle slot which a job took before it was refused."""
        if slot is None:
            return ()
        return (self._context.bind("return_throttle_slot", queue=name, id=id, slot=slot),)

    def publish(self, event: str, job: NewJob, *, own: bool) -> Operation[list[UUID]]:
        """Send the job to every queue that subscribed to the event: to all of them, or to none."""
        check_name("event", event)
        if job.id is not None:
            raise UsageError("id: an event becomes a job in each queue, so it cannot have one id")
        data = self.write_data(job.data)
        names = read_first((yield Batch((self._context.bind("get_subscribers", event=event),))))
        queues: list[Queue] = []
        # Read again, and all before the first send: a mistake in one of them must be found while nothing is sent.
        for (name,) in names:
            queues.append((yield from self._context.reload(name)))
        if job.dead_letter is not None:
            yield from self._context.reload(job.dead_letter)
        if not queues:
            return []
        # One transaction, in the order of the names: two publishers of strict FIFO keys never wait in a cycle.
        ids = [make_id() for _ in queues]
        statements = [
            self._bind(queue, job, id, data, notify=not own, unique_until=None)
            for queue, id in zip(queues, ids, strict=True)
        ]
        notify = tuple((self.notify_idle(queue.name, job),) for queue in queues) if own else ()
        try:
            results = yield Batch(tuple(statements), *notify)
        except Exception as error:
            if not is_table_gone(error):
                raise
            self._context.forget()
            raise QueueChanged(queues[0].name if len(queues) == 1 else event) from error
        answers = [
            (queue, id, _read_sent(result)) for queue, id, result in zip(queues, ids, results[0], strict=True)
        ]
        refused = [self._return_slot(q.name, id, sent.slot) for q, id, sent in answers if sent.id is None]
        if slots := [statement for statements in refused for statement in statements]:
            yield Batch(tuple(slots))
        return [id for _, id, sent in answers if sent.id is not None]

    def subscribe(self, event: str, name: str) -> Operation[None]:
        """Let a queue get a job for each event of that name."""
        check_name("event", event)
        check_name("queue", name)
        yield from self._context.refer_to(name, self._context.bind("subscribe", event=event, queue=name))

    def unsubscribe(self, event: str, name: str) -> Operation[None]:
        """End a subscription; one that does not exist is fine."""
        check_name("event", event)
        check_name("queue", name)
        if not read_first((yield Batch((self._context.bind("unsubscribe", event=event, queue=name),)))):
            yield from self._context.reload(name)
