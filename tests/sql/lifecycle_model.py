"""The expected state of the jobs of a few queues: the rules in plain Python, without SQL.

It is written from the documents and not from the statements: a job is a value, a statement is a layer of changed
jobs, and time is an argument. How the database gets there is not part of it: it has no checks of backlogs and no
indexes. test_lifecycle_machine.py compares the two after every step.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import attrs
from lifecycle_values import (
    ACTIVE,
    CANCELLED,
    COMPLETED,
    FAILED,
    Layer,
    ModelJob,
    ModelQueue,
    Options,
    Overrides,
    SendRequest,
    Slot,
)

from trioboss.model.policy import Policy
from trioboss.model.states import JobState, Readiness

Fence = tuple[UUID, int | None, datetime | None]
"""A lease: id, attempt, start. Without an attempt: whichever is active."""


@attrs.define(eq=False)
class Model:
    """The operations. Each changes a layer and returns what the caller should get."""

    queues: dict[str, ModelQueue]
    now: datetime
    key_locks: dict[tuple[str, str | None], int]
    """The lock that senders of a key take; two keys may share one."""
    committed: Layer = attrs.field(factory=Layer)
    sent: int = 0

    def options(self, job: ModelJob) -> Options:
        """The options that apply to a job now."""
        return Options.resolve(job.overrides, self.queues[job.queue])

    # -- sending

    def send(self, layer: Layer, request: SendRequest) -> bool:
        queue = self.queues[request.queue]
        self._take_key_lock(layer, queue, request.key, waits=True)
        start = request.starts(self.now)
        if request.throttle_seconds is not None:
            slot = self._find_throttle_slot(layer, request, request.throttle_seconds)
            if slot is None:
                return False
            layer.take_throttle(slot, request.id)
            start = max(start, slot[-1]) if slot[-1] > self.now else start
        job = self._new_job(queue, request, start)
        if not layer.has_room(job):
            layer.free_throttle(request.id)
            return False
        layer.put(job)
        return True

    def _new_job(self, queue: ModelQueue, request: SendRequest, start: datetime) -> ModelJob:
        self.sent += 1
        job = ModelJob(
            request.id,
            queue.name,
            queue.policy,
            self.sent,
            request.key,
            request.priority,
            start,
            Readiness.DEFERRED,
            overrides=request.overrides,
            unique_until=request.unique_until,
        )
        return job if start > self.now else attrs.evolve(job, readiness=job.queued_readiness)

    def _take_key_lock(self, layer: Layer, queue: ModelQueue, key: str | None, *, waits: bool) -> None:
        """Senders of one key of strict FIFO wait for each other until they commit; a dead letter never waits."""
        if queue.is_fifo and queue.commit_order:
            lock = ("key lock", self.key_locks[queue.name, key])
            layer.changes.add(lock)
            if waits:
                layer.needs.add(lock)

    def _find_throttle_slot(self, layer: Layer, request: SendRequest, seconds: int) -> Slot | None:
        begins = datetime.fromtimestamp(self.now.timestamp() // seconds * seconds, self.now.tzinfo)
        for step in range(2 if request.next_slot else 1):
            slot = ("throttle", request.queue, request.key, begins + step * timedelta(seconds=seconds))
            layer.needs.add(slot)
            if layer.find_throttled(slot) is None:
                return slot
        return None

    def insert(self, layer: Layer, requests: list[SendRequest]) -> list[UUID]:
        policy = self.queues[requests[0].queue].policy
        if policy in (Policy.SHORT, Policy.STATELY, Policy.EXCLUSIVE):
            # In the order of keys, so that two loads never wait for each other in a cycle.
            requests = sorted(requests, key=lambda request: (request.key is None, request.key or ""))
        return [request.id for request in requests if self.send(layer, request)]

    # -- claiming

    def promote_due(self, layer: Layer, queue: str, locked: set[UUID]) -> None:
        """Jobs whose time has come wait for the next thing."""
        for job in layer.all(queue):
            if job.readiness is Readiness.DEFERRED and job.start_after <= self.now and job.id not in locked:
                layer.put(attrs.evolve(job, readiness=job.queued_readiness))

    def heads(self, layer: Layer, queue: str) -> list[ModelJob]:
        """The first of each backlog whose key has no owner."""
        jobs = [job for job in layer.all(queue) if job.is_live]
        owned = {job.key for job in jobs if job.owns_key}
        first: dict[str | None, ModelJob] = {}
        for job in sorted(jobs, key=lambda job: job.rank):
            if job.readiness is Readiness.WAITING and job.key not in owned:
                first.setdefault(job.key, job)
        return list(first.values())

    def admit(self, layer: Layer, queue: str, limit: int, by_priority: bool, locked: set[UUID]) -> bool:
        """Make the heads ready, except those that somebody is changing; whether one of those was wanted."""
        heads = in_claim_order(self.heads(layer, queue), by_priority)
        admitted = [job for job in heads if job.id not in locked][:limit]
        for job in admitted:
            layer.put(attrs.evolve(job, readiness=Readiness.READY, owns_key=True))
        return len(admitted) < min(limit, len(heads))

    def claim(
        self, layer: Layer, queue: str, limit: int, by_priority: bool, locked: set[UUID], *, heads: bool
    ) -> tuple[list[UUID], bool]:
        """Lease ready jobs and, with ``heads``, the first of each free backlog. Returns their ids, and whether a head
        that somebody is changing was wanted.
        """
        ready = [job for job in layer.all(queue) if job.readiness is Readiness.READY and job.is_live]
        ready = [job for job in ready if job.id not in locked]
        first = self.heads(layer, queue) if heads else []
        found = in_claim_order([*ready, *first], by_priority)
        claimed = [job for job in found if job.id not in locked][:limit]
        expires = self.now + timedelta(seconds=self.queues[queue].expire_in)
        for job in claimed:
            layer.put(
                attrs.evolve(
                    job,
                    readiness=Readiness.ACTIVE,
                    owns_key=job.policy.is_keyed,
                    attempt=job.attempt + 1,
                    started_on=self.now,
                    expires_on=expires,
                    heartbeat_on=None,
                )
            )
        return [job.id for job in claimed], len(claimed) < min(limit, len(found))

    def next_due(self, layer: Layer, queue: str) -> float | None:
        """In how many seconds the next job becomes due."""
        deferred = [job for job in layer.all(queue) if job.readiness is Readiness.DEFERRED and job.is_live]
        waits = [(job.start_after - self.now).total_seconds() for job in deferred]
        return max(0.0, min(waits)) if waits else None

    # -- settling

    def current(self, layer: Layer, leases: Iterable[Fence]) -> list[ModelJob]:
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
                layer.put(self._archived(job, COMPLETED))
            else:
                layer.drop(job)

    def _archived(self, job: ModelJob, outcome: JobState) -> ModelJob:
        return attrs.evolve(
            job,
            outcome=outcome,
            readiness=Readiness.ENDED,
            owns_key=False,
            completed_on=self.now,
            heartbeat_on=None,
        )

    def touch(self, layer: Layer, jobs: list[ModelJob]) -> None:
        for job in jobs:
            layer.put(attrs.evolve(job, heartbeat_on=self.now))

    def fail(self, layer: Layer, jobs: list[ModelJob], outcome: str = "failed") -> None:
        """End attempts badly. First all those are queued again that can be; then the others fail for good."""
        left = []
        for job in jobs:
            layer.history.append((job.id, job.attempt, outcome))
            options = self.options(job)
            again = self._retried(job, options)
            if job.retry_count < options.retry_limit and layer.has_room(again):
                layer.put(again)
            else:
                left.append(job)
        for job in left:
            self._fail_for_good(layer, job)

    def _retried(self, job: ModelJob, options: Options) -> ModelJob:
        delay = 0 if options.retry_backoff else options.retry_delay
        again = attrs.evolve(
            self._queued(job),
            retry_count=job.retry_count + 1,
            failures=job.failures + 1,
            start_after=self.now + timedelta(seconds=delay),
            random_start=options.retry_backoff,
        )
        if delay or options.retry_backoff:
            return attrs.evolve(again, readiness=Readiness.DEFERRED)
        return attrs.evolve(again, readiness=again.queued_readiness)

    def _queued(self, job: ModelJob) -> ModelJob:
        """The job after its attempt: strict FIFO keeps its key, the others give it up."""
        return attrs.evolve(
            job,
            readiness=Readiness.READY,
            owns_key=job.is_fifo,
            has_slot=True,
            expires_on=None,
            heartbeat_on=None,
        )

    def _fail_for_good(self, layer: Layer, job: ModelJob) -> None:
        failed = self._archived(job, FAILED)
        layer.put(attrs.evolve(failed, outcome=None, owns_key=True) if job.is_fifo else failed)
        dead_letter = self.queues[job.queue].dead_letter
        if dead_letter is not None:
            copy = self._dead_letter(layer, job, self.queues[dead_letter])
            if layer.has_room(copy):
                layer.put(copy)

    def _dead_letter(self, layer: Layer, job: ModelJob, queue: ModelQueue) -> ModelJob:
        """The copy of a failed job, with an id that is not the real one yet."""
        key = (job.key or job.queue) if queue.is_fifo else job.key
        self._take_key_lock(layer, queue, key, waits=False)
        overrides = Overrides(**attrs.asdict(self.options(job)))
        request = SendRequest(uuid4(), queue.name, key, job.priority, overrides=overrides)
        return attrs.evolve(self._new_job(queue, request, self.now), source_id=job.id)

    def release(self, layer: Layer, jobs: list[ModelJob]) -> None:
        """Queue jobs again. One whose slot is taken is queued without it."""
        for job in jobs:
            back = self._queued(attrs.evolve(job, start_after=self.now))
            back = attrs.evolve(back, readiness=back.queued_readiness)
            if job.unique_until == "started" and not layer.has_room(attrs.evolve(back, has_slot=False)):
                back = attrs.evolve(back, unique_until=None)
            if not layer.has_room(back):
                back = attrs.evolve(back, has_slot=False)
            layer.history.append((job.id, job.attempt, "released"))
            layer.put(back)

    # -- by id

    def _in(self, layer: Layer, queue: str, ids: Iterable[UUID], *states: JobState) -> list[ModelJob]:
        """In the order in which rows are written: by key, then in order of sending."""
        layer.targets |= set(ids)
        jobs = [job for job in layer.all(queue) if job.id in ids and job.state in states]
        return sorted(jobs, key=lambda job: (job.key is None, job.key or "", job.seq))

    def cancel(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        jobs = self._in(layer, queue, ids, JobState.CREATED, JobState.RETRY, ACTIVE)
        for job in jobs:
            if job.state is ACTIVE:
                layer.history.append((job.id, job.attempt, "cancelled"))
            layer.free_throttle(job.id)
            layer.put(self._archived(job, CANCELLED))
        return [job.id for job in jobs]

    def resume(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        resumed = []
        for job in self._in(layer, queue, ids, CANCELLED):
            start = max(job.start_after, self.now)
            back = attrs.evolve(self._revived(job), start_after=start, owns_key=False)
            late = start > self.now
            back = attrs.evolve(back, readiness=Readiness.DEFERRED if late else back.queued_readiness)
            if layer.has_room(back):
                layer.put(back)
                resumed.append(job.id)
        return resumed

    def retry(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        """One more attempt, and it counts as a retry."""
        retried = []
        for job in self._in(layer, queue, ids, FAILED):
            overrides = attrs.evolve(job.overrides, retry_limit=self.options(job).retry_limit + 1)
            back = attrs.evolve(
                self._revived(job),
                overrides=overrides,
                retry_count=job.retry_count + 1,
                start_after=self.now,
            )
            back = attrs.evolve(back, readiness=back.queued_readiness)
            if layer.has_room(back):
                layer.put(back)
                retried.append(job.id)
        return retried

    @staticmethod
    def _revived(job: ModelJob) -> ModelJob:
        return attrs.evolve(
            job,
            outcome=None,
            readiness=Readiness.READY,
            has_slot=True,
            completed_on=None,
            heartbeat_on=None,
            expires_on=None,
            random_start=False,
        )

    def delete(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> list[UUID]:
        jobs = self._in(layer, queue, ids, *JobState)
        for job in jobs:
            layer.free_throttle(job.id)
            layer.drop(job)
        return [job.id for job in jobs]

    # -- plain SQL

    def delete_rows(self, layer: Layer, queue: str, ids: Iterable[UUID]) -> None:
        """DELETE from the live table: throttle slots stay."""
        for job in self._in(layer, queue, ids, *JobState):
            if job.is_live:
                layer.drop(job)

    def move(self, layer: Layer, job: ModelJob, readiness: Readiness) -> bool:
        """UPDATE of the readiness: slot and key follow it, or the change is refused."""
        layer.targets.add(job.id)
        claims_key = readiness is Readiness.READY and job.policy.is_keyed and not job.owns_key
        if claims_key:
            readiness = Readiness.WAITING  # only a claim admits a job
        keeps_key = readiness is Readiness.READY or (readiness is Readiness.DEFERRED and job.is_fifo)
        owns_key = job.owns_key and keeps_key
        # The slot is worked out anew together with the owner.
        has_slot = job.has_slot or claims_key or owns_key != job.owns_key
        moved = attrs.evolve(job, readiness=readiness, owns_key=owns_key, has_slot=has_slot)
        if not layer.has_room(moved):
            return False
        layer.put(moved)
        return True


def in_claim_order(jobs: list[ModelJob], by_priority: bool) -> list[ModelJob]:
    return sorted(jobs, key=lambda job: (-job.priority if by_priority else 0, job.seq))
