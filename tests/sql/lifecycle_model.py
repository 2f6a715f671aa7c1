"""What the jobs of a few queues should look like: the rules in plain Python, without SQL.

It is written from the documents and not from the statements: a job is a value, a statement is a layer of changed
jobs, and time is an argument. What it does not know is how the database gets there: it has no inbox, no notices
of freed keys, no index. test_lifecycle_machine.py compares the two after every step.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import attrs
from lifecycle_values import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    CREATED,
    FAILED,
    RETRY,
    Layer,
    ModelJob,
    ModelQueue,
    Order,
    Place,
)

from trioboss.model.policy import Policy
from trioboss.model.states import JobState

Fence = tuple[UUID, int | None, datetime | None]
"""A lease: id, attempt, start. Without an attempt: whichever is active."""


@attrs.define(eq=False)
class Model:
    """The verbs. Each changes a layer and says what the caller should be told."""

    queues: dict[str, ModelQueue]
    now: datetime
    turns: dict[tuple[str, str | None], int]
    """The lock that senders of a key take; two keys may share one."""
    committed: Layer = attrs.field(factory=Layer)
    sent: int = 0

    # -- sending

    def send(self, layer: Layer, order: Order) -> bool:
        queue = self.queues[order.queue]
        if queue.is_fifo and queue.commit_order:
            turn = ("turn", self.turns[queue.name, order.key])
            layer.wants.add(turn)
            layer.shakes.add(turn)
        start = self.now + timedelta(seconds=order.delay)
        if order.slot_seconds is not None:
            slot = self._find_slot(layer, order, order.slot_seconds)
            if slot is None:
                return False
            layer.take_slot(slot, order.id)
            start = max(start, slot[-1]) if slot[-1] > self.now else start
        self.sent += 1
        job = ModelJob(
            order.id,
            queue.name,
            queue.policy,
            self.sent,
            order.key,
            order.priority,
            start,
            queue.retry_limit,
            queue.retry_delay,
            queue.retry_backoff,
            queue.expire_in,
            queue.dead_letter,
            order.unique_until,
            deferred=start > self.now,
        )
        if not layer.has_room(job):
            layer.free_slots(order.id)
            return False
        layer.put(job)
        return True

    def _find_slot(self, layer: Layer, order: Order, seconds: int) -> Place | None:
        begins = datetime.fromtimestamp(self.now.timestamp() // seconds * seconds, self.now.tzinfo)
        for step in range(2 if order.next_slot else 1):
            slot = ("slot", order.queue, order.key, begins + step * timedelta(seconds=seconds))
            layer.wants.add(slot)
            if layer.slot(slot) is None:
                return slot
        return None

    def insert(self, layer: Layer, orders: list[Order]) -> list[UUID]:
        policy = self.queues[orders[0].queue].policy
        if policy in (Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE):
            # In the order of keys, so that two loads never wait for each other in a circle.
            orders = sorted(orders, key=lambda order: (order.key is None, order.key or ""))
        return [order.id for order in orders if self.send(layer, order)]

    # -- claiming

    def place(self, layer: Layer, queue: str, locked: set[UUID]) -> set[str | None]:
        """Give the turn to the first of each free key; return the keys whose first is locked."""
        again = set()
        jobs = [job for job in layer.all(queue) if job.is_live or (job.is_fifo and job.state is FAILED)]
        for key in dict.fromkeys(job.key for job in jobs):
            mine = [job for job in jobs if job.key == key]
            due = [job for job in mine if job.is_queued and job.start_after <= self.now]
            holders = [job for job in mine if job.holds_key]
            assert len(holders) <= 1, holders
            if holders and self._is_passed(holders[0], due, locked):
                layer.put(attrs.evolve(holders.pop(), ready=False))
            line = [job for job in due if not holders or job in holders]
            if not line:
                continue
            first = min(line, key=lambda job: job.rank)
            if first.id not in locked:
                layer.put(attrs.evolve(first, ready=True))
            elif not holders:
                again.add(key)
        return again

    def _is_passed(self, holder: ModelJob, due: list[ModelJob], locked: set[UUID]) -> bool:
        """True if a job that has its turn, and is not claimed, has to let a more urgent one go first."""
        if holder.is_fifo or not holder.is_queued or holder.id in locked:
            return False
        return any(job.priority > holder.priority for job in due if job.id not in locked)

    def claim(self, layer: Layer, queue: str, limit: int, by_priority: bool, locked: set[UUID]) -> list[UUID]:
        keyed = self.queues[queue].policy.is_keyed
        due = [job for job in layer.all(queue) if job.is_queued and job.id not in locked]
        ready = [job for job in due if (job.ready if keyed else job.start_after <= self.now)]
        if by_priority:
            ready.sort(key=lambda job: (-job.priority, job.seq))
        for job in ready[:limit]:
            layer.put(
                attrs.evolve(
                    job,
                    state=ACTIVE,
                    attempt=job.attempt + 1,
                    started_on=self.now,
                    heartbeat_on=self.now,
                    ready=True,
                )
            )
        return [job.id for job in ready[:limit]]

    def next_due(self, layer: Layer, queue: str) -> float | None:
        """In how many seconds the clock will make the next job due."""
        waits = [job.start_after - self.now for job in layer.all(queue) if job.is_queued]
        return min((wait.total_seconds() for wait in waits if wait > timedelta(0)), default=None)

    # -- settling

    def current(
        self, layer: Layer, leases: Iterable[tuple[UUID, int | None, datetime | None]]
    ) -> list[ModelJob]:
        """The active jobs that these leases (a null attempt: ids) are for, in order of sending."""
        found = []
        for id, attempt, started_on in leases:
            layer.targets.add(id)
            job = layer.get(id)
            if job is None or job.state is not ACTIVE:
                continue
            if attempt is None or (job.attempt, job.started_on) == (attempt, started_on):
                found.append(job)
        return sorted(found, key=lambda job: job.seq)

    def complete(self, layer: Layer, jobs: list[ModelJob]) -> None:
        for job in jobs:
            if self.queues[job.queue].keep_completed:
                layer.put(attrs.evolve(job, state=COMPLETED, completed_on=self.now))
            else:
                layer.drop(job)

    def touch(self, layer: Layer, jobs: list[ModelJob]) -> None:
        for job in jobs:
            layer.put(attrs.evolve(job, heartbeat_on=self.now))

    def fail(self, layer: Layer, jobs: list[ModelJob], outcome: str = "failed") -> list[ModelJob]:
        """End attempts badly; return the dead letters of it, whose ids are not the real ones yet."""
        letters = []
        for job in jobs:
            layer.history.append((job.id, job.attempt, outcome))
            delay = 0 if job.retry_backoff else job.retry_delay
            start = self.now + timedelta(seconds=delay)
            again = attrs.evolve(
                job,
                state=RETRY,
                retry_count=job.retry_count + 1,
                failures=job.failures + 1,
                start_after=start,
                deferred=delay > 0 or job.retry_backoff,
                heartbeat_on=None,
                ready=job.is_fifo and start <= self.now and not job.retry_backoff,
            )
            if job.retry_count < job.retry_limit and layer.has_room(again):
                layer.put(again)
                continue
            beat = None if job.is_fifo else job.heartbeat_on
            layer.put(attrs.evolve(job, state=FAILED, completed_on=self.now, heartbeat_on=beat))
            if job.dead_letter is not None:
                letter = self._letter(job, self.queues[job.dead_letter])
                if layer.has_room(letter):
                    layer.put(letter)
                    letters.append(letter)
        return letters

    def _letter(self, job: ModelJob, queue: ModelQueue) -> ModelJob:
        self.sent += 1
        return attrs.evolve(
            job,
            id=uuid4(),
            queue=queue.name,
            policy=queue.policy,
            seq=self.sent,
            key=(job.key or job.queue) if queue.is_fifo else job.key,
            start_after=self.now,
            expire_in=queue.expire_in,
            dead_letter=queue.dead_letter,
            unique_until=None,
            source_id=job.id,
            state=CREATED,
            attempt=0,
            retry_count=0,
            failures=0,
            started_on=None,
            completed_on=None,
            heartbeat_on=None,
            ready=False,
            deferred=False,
        )

    def release(self, layer: Layer, jobs: list[ModelJob]) -> list[ModelJob]:
        """Queue jobs again; return those that find no room, which fail."""
        left = []
        for job in jobs:
            back = attrs.evolve(
                job, state=RETRY, start_after=self.now, deferred=False, heartbeat_on=None, ready=job.is_fifo
            )
            if layer.has_room(back):
                layer.history.append((job.id, job.attempt, "released"))
                layer.put(back)
            else:
                left.append(job)
        return left

    # -- by id

    def _in(self, layer: Layer, queue: str, ids: Iterable[UUID], *states: JobState) -> list[ModelJob]:
        """In the order in which rows are written: by key, then in order of sending."""
        layer.targets |= set(ids)
        jobs = [job for job in layer.all(queue) if job.id in ids and job.state in states]
        return sorted(jobs, key=lambda job: (job.key is None, job.key or "", job.seq))

    def cancel(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        jobs = self._in(layer, queue, ids, CREATED, RETRY, ACTIVE)
        for job in jobs:
            if job.state is ACTIVE:
                layer.history.append((job.id, job.attempt, "cancelled"))
            layer.free_slots(job.id)
            layer.put(attrs.evolve(job, state=CANCELLED, completed_on=self.now))
        return [job.id for job in jobs]

    def resume(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        return self._revive(layer, self._in(layer, queue, ids, CANCELLED), CREATED)

    def retry(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        return self._revive(layer, self._in(layer, queue, ids, FAILED), RETRY)

    def _revive(self, layer: Layer, jobs: list[ModelJob], state: JobState) -> list[UUID]:
        revived = []
        for job in jobs:
            more = int(state is RETRY)  # a retry by hand is one more try, and counts as one
            back = attrs.evolve(
                job,
                state=state,
                retry_count=job.retry_count + more,
                retry_limit=job.retry_limit + more,
                start_after=self.now if more else max(job.start_after, self.now),
                completed_on=None,
                heartbeat_on=None,
                ready=bool(more) and job.is_fifo,
                deferred=not more and job.start_after > self.now,
            )
            if layer.has_room(back):
                layer.put(back)
                revived.append(job.id)
        return revived

    def delete(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        jobs = self._in(layer, queue, ids, *JobState)
        for job in jobs:
            layer.free_slots(job.id)
            layer.drop(job)
        return [job.id for job in jobs]
