"""Verbs that make jobs, one at a time. Bulk loads are in loading.py."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

import attrs

from trioboss.errors import UnknownQueue, UsageError
from trioboss.model.check import check_name
from trioboss.model.job import NewJob, make_id
from trioboss.model.payload import Json, encode
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire.results import PGresult, read_rows
from trioboss.store.context import Context
from trioboss.store.parameters import text_array, uuid_array
from trioboss.store.rows import read_first, read_queues

__all__ = ["SendOperations", "job_options", "require_key"]

_OPTIONS = [field.name for field in attrs.fields(NewJob) if field.name not in ("data", "id", "start_after")]


def job_options(job: NewJob) -> dict[str, Any]:
    """The options of a job as parameters of send.sql; a backoff of its own brings its own jitter."""
    options = {name: getattr(job, name) for name in _OPTIONS}
    if job.retry_backoff is not None and job.retry_jitter is None:
        options["retry_jitter"] = 0.5 if job.retry_backoff else 0.0
    key = "start_after" if isinstance(job.start_after, datetime) else "delay"
    options[key] = job.start_after
    return options


def require_key(queue: Queue, job: NewJob) -> None:
    """Strict FIFO is order for each key, so every job needs one."""
    if queue.policy is Policy.KEY_STRICT_FIFO and job.singleton_key is None:
        raise UsageError("key_strict_fifo queues require a singleton_key")


@attrs.frozen
class _Sent:
    """The answer of send.sql or send_throttled.sql. Nothing at all: the queue is not what we thought."""

    id: UUID | None = None
    slot: datetime | None = None


def _read_sent(result: PGresult) -> _Sent:
    rows = read_rows(result)
    return _Sent(rows[0][0], *rows[0][2:]) if rows else _Sent()


class Letter(Protocol):
    """A job that brings nothing but its data, as JSON text."""

    @property
    def id(self) -> UUID: ...
    @property
    def data(self) -> str | None: ...


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

    def write_data(self, data: Json) -> str | None:
        """A job's data as JSON text."""
        return None if data is None else encode(data, "data", self._context.max_bytes)

    def is_plain(self, name: str) -> bool:
        """Whether this is known as a queue without any rule: all its jobs need is their data."""
        queue = self._context.recall(name)
        return queue is not None and queue.policy is Policy.STANDARD

    def send_plain(self, name: str, letters: Sequence[Letter]) -> Operation[bool]:
        """Put jobs that bring nothing but their data into a standard queue: all, or none if it is another now."""
        queue = yield from self._context.know(name)
        ids, data = uuid_array(letter.id for letter in letters), text_array(letter.data for letter in letters)
        step = self._context.step("send_plain", queue.table_name, queue=name, ids=ids, data=data)
        results = yield Batch((step,), follow_up=(self._context.wake(name, ready=True),))
        return results[0][0].command_tuples != 0

    def send_and_wake(self, name: str, letter: Letter) -> Operation[bool]:
        """The same for one, which wakes who sleeps by its own commit, unless others are at it."""
        queue = yield from self._context.know(name)
        values = {"queue": name, "id": letter.id, "data": letter.data}
        results = yield Batch((self._context.step("send_and_wake", queue.table_name, **values),))
        answer = read_first(results)
        if answer == [(False,)]:
            yield Batch(follow_up=(self._context.wake(name, ready=True),))
        return bool(answer)

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
            step = self._step(queue, job, id, data, ring=not own, unique_until=unique_until)
            # An id of the caller's own may be one that was sent, and has ended, before.
            unless_ended = (self.drop_if_ended(queue, [id]),) if job.id else ()
            wake = (self.wake(name, job),) if own else ()
            results = yield Batch((step, *unless_ended), follow_up=wake)
            sent = _read_sent(results[0][0])
            if sent.id is not None and not (unless_ended and read_rows(results[0][1])):
                return id
            return (yield from self._refused(queue, job, id, sent.slot))

        return (yield from self._context.on_queue(name, send))

    def _step(
        self, queue: Queue, job: NewJob, id: UUID, data: str | None, *, ring: bool, unique_until: str | None
    ) -> BoundStatement:
        require_key(queue, job)
        statement = "send" if job.singleton_seconds is None else "send_throttled"
        values = job_options(job) | {"queue": queue.name, "id": id, "data": data}
        values |= {"ring": ring, "unique_until": unique_until}
        values["singleton_next_slot"] = bool(job.singleton_next_slot)
        return self._context.step(statement, queue.table_name, **values)

    def wake(self, name: str, job: NewJob | None = None) -> BoundStatement:
        """The step that wakes who sleeps past the job's time; for a transaction of its own."""
        if job is None or job.start_after is None:
            # A throttled job may have got a later slot.
            return self._context.wake(name, ready=job is not None and job.singleton_seconds is None)
        start = job.start_after
        due = {"due": start} if isinstance(start, datetime) else {"delay": start}
        return self._context.step("wake", queue=name, **due)

    def drop_if_ended(self, queue: Queue, ids: Iterable[UUID]) -> BoundStatement:
        """The step that takes back jobs just sent whose ids ended before."""
        return self._context.step("drop_if_ended", queue.table_name, queue=queue.name, ids=uuid_array(ids))

    def ring(self, name: str, *, own: bool) -> Operation[None]:
        """The word to the workers that the queue has jobs: at once, or when the caller commits."""
        yield Batch((self.wake(name) if own else self._context.step("ring", queue=name),))

    def _refused(self, queue: Queue, job: NewJob, id: UUID, slot: datetime | None) -> Operation[UUID | None]:
        """Nothing was sent. Whose fault is it? None: the policy said no. The id: it was sent before."""
        step = self._context.step(
            "explain_refusal", queue.table_name, queue=queue.name, id=id, dead_letter=job.dead_letter
        )
        results = yield Batch((*self._give_back(queue.name, id, slot), step))
        policy, dead_letter_exists, sent_before = read_rows(results[0][-1])[0]
        if policy is None:
            self._context.forget(queue.name)
            raise UnknownQueue(queue.name)
        if job.dead_letter is not None and not dead_letter_exists:
            raise UnknownQueue(job.dead_letter)
        if policy != queue.policy:
            self._context.forget(queue.name)
            require_key((yield from self._context.know(queue.name)), job)
        return id if sent_before else None

    def _give_back(self, name: str, id: UUID, slot: datetime | None) -> tuple[BoundStatement, ...]:
        """The step, if any, that frees the throttle slot which a job took before it was refused."""
        if slot is None:
            return ()
        return (self._context.step("give_back_slot", queue=name, id=id, slot=slot),)

    def publish(self, event: str, job: NewJob, *, own: bool) -> Operation[list[UUID]]:
        """Send the job to every queue that subscribed to the event: to all of them, or to none."""
        check_name("event", event)
        if job.id is not None:
            raise UsageError("id: an event becomes a job in each queue, so it cannot have one id")
        data = self.write_data(job.data)
        queues = read_queues((yield Batch((self._context.step("get_subscribers", event=event),))))
        self._context.remember(queues)
        if job.dead_letter is not None:
            yield from self._context.look(job.dead_letter)
        if not queues:
            return []
        ids = [make_id() for _ in queues]
        steps = [
            self._step(queue, job, id, data, ring=not own, unique_until=None)
            for queue, id in zip(queues, ids, strict=True)
        ]
        wakes = tuple((self.wake(queue.name, job),) for queue in queues) if own else ()
        results = yield Batch(tuple(steps), *wakes)
        answers = [
            (queue, id, _read_sent(result)) for queue, id, result in zip(queues, ids, results[0], strict=True)
        ]
        freed = [self._give_back(q.name, id, sent.slot) for q, id, sent in answers if sent.id is None]
        if slots := [step for steps in freed for step in steps]:
            yield Batch(tuple(slots))
        return [id for _, id, sent in answers if sent.id is not None]

    def subscribe(self, event: str, name: str) -> Operation[None]:
        """Let a queue get a job for each event of that name."""
        check_name("event", event)
        check_name("queue", name)
        if not read_first((yield Batch((self._context.step("subscribe", event=event, queue=name),)))):
            raise UnknownQueue(name)

    def unsubscribe(self, event: str, name: str) -> Operation[None]:
        """End a subscription; one that does not exist is fine."""
        check_name("event", event)
        check_name("queue", name)
        yield Batch((self._context.step("unsubscribe", event=event, queue=name),))
