"""The frame of a step of the lifecycle machine: queues, time, transactions, and values of both product and model."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import attrs
from hypothesis.stateful import RuleBasedStateMachine
from lifecycle_checks import Witness, in_bounds
from lifecycle_model import Fence, Model
from lifecycle_sessions import OWN, Row, Sessions
from lifecycle_values import Layer, ModelJob, ModelQueue, SendRequest

from trioboss.model.job import Job, Lease, NewJob
from trioboss.model.policy import Policy

# Before the clock of the server: what a trigger takes for the time is never before the time of the test.
START = datetime(2020, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
KEYS = ("a", "b")

_KEY_LOCKS = """
    SELECT key, trioboss.key_lock(%s, key, (SELECT seed FROM trioboss.lock_seed)) FROM unnest(%s::text[]) key
"""


class LifecycleFrame(RuleBasedStateMachine):
    """The objects that every step needs. The steps are in lifecycle_machine.py."""

    def __init__(self, sessions: Sessions) -> None:
        super().__init__()
        self.sessions = sessions
        self.sessions.clear()
        self.model = Model({}, START, {})
        self.drafts: dict[int, Layer] = {}
        """The changes of callers that are not committed."""
        self.witness = Witness()
        self.names: list[str] = []
        self.claimed: list[Job] = []
        self.agreed = False

    def create_queue(self, queue: ModelQueue) -> None:
        options = attrs.asdict(queue)
        del options["name"]
        self.sessions.run(OWN, lambda own: self.sessions.store.queues.create(queue.name, options))
        self.model.queues[queue.name] = queue
        if queue.is_fifo:
            # A dead letter without a key gets the name of its queue for a key.
            keys = [*KEYS, *(f"q{number}" for number in range(len(Policy)))]
            for key, lock in self.sessions.query(_KEY_LOCKS, [queue.name, keys]):
                self.model.key_locks[queue.name, key] = lock
        self.names.append(queue.name)

    def update_queue(self, queue: ModelQueue, **options: Any) -> None:
        """Options reach the jobs that are queued, and no lease."""
        self.begin(OWN)
        self.sessions.run(OWN, lambda own: self.sessions.store.queues.update(queue.name, options))
        self.model.queues[queue.name] = attrs.evolve(queue, **options)

    # -- the frame of a step

    def begin(self, session: int) -> Layer:
        """A new statement, a moment later."""
        self.agreed = False
        self.pass_time(MICROSECOND)
        if session == OWN:
            return Layer(self.model.committed)
        return Layer(self.drafts.get(session) or Layer(self.model.committed))

    def pass_time(self, span: timedelta) -> None:
        self.model.now += span
        self.sessions.now = self.model.now

    def would_wait(self, layer: Layer, session: int) -> bool:
        return any(layer.must_wait_for(draft) for other, draft in self.drafts.items() if other != session)

    def finish(self, layer: Layer, session: int) -> None:
        """The statement was run: in our own session it is committed."""
        self.adopt(layer, session)
        assert layer.below is not None
        if session != OWN:
            self.drafts[session] = layer.below
        layer.merge()
        if session == OWN:
            self.witness.saw_commit(layer.jobs)

    def adopt(self, layer: Layer, session: int) -> None:
        """Take over what only the database can decide: the ids of dead letters, the random part of a backoff."""
        for job in [job for job in layer.jobs.values() if job]:
            if job.source_id is not None and job.attempt == 0 and job.id not in self.witness.sent:
                dead_letters = "SELECT id FROM trioboss.job WHERE source_id = %s AND id <> ALL (%s)"
                ((id,),) = self.sessions.query(
                    dead_letters, [job.source_id, list(self.witness.sent)], session
                )
                layer.rename(job, id)
                self.witness.saw_sent(id, irregular=True)
            elif job.random_start:
                starts = "SELECT start_after FROM trioboss.live_job WHERE id = %s"
                ((start,),) = self.sessions.query(starts, [job.id], session)
                longest = max(self.model.options(job).retry_delay, 1) * 2 ** min(16, job.failures)
                assert in_bounds(start, self.model.now, longest / 2, longest)
                layer.put(attrs.evolve(job, start_after=start, random_start=False))

    def locked(self, session: int | None = None) -> set[UUID]:
        """The jobs that other sessions have changed and not committed."""
        return {id for other, draft in self.drafts.items() if other != session for id in draft.jobs}

    def end_transaction(self, session: int, *, commits: bool) -> None:
        draft = self.drafts.pop(session)
        if commits:
            self.sessions.connections[session].commit()
            draft.merge()
            self.witness.saw_commit(draft.jobs)
        else:
            self.sessions.connections[session].rollback()


# -- the same value in the product and in the model


def as_new_job(request: SendRequest) -> NewJob:
    return NewJob(
        None,
        id=request.id,
        priority=request.priority,
        start_after=request.delay,
        singleton_key=request.key,
        singleton_seconds=request.throttle_seconds,
        singleton_next_slot=request.next_slot,
        **attrs.asdict(request.overrides),
    )


def as_row(job: ModelJob, model: Model) -> Row:
    of_job = {field.name: getattr(job, field.name, None) for field in attrs.fields(Row)}
    return Row(**{**of_job, "live": job.is_live, "retry_limit": model.options(job).retry_limit})


_NOT_IN_JOB = ("policy", "owns_key", "live", "key", "retry_limit")


def assert_same(job: Job, expected: ModelJob) -> None:
    wanted = {field.name for field in attrs.fields(Row)} - {*_NOT_IN_JOB}
    assert {name: getattr(job, name) for name in wanted} == {name: getattr(expected, name) for name in wanted}
    assert job.singleton_key == expected.key


def fence(job: Job, *, by_id: bool) -> Fence:
    return (job.id, None, None) if by_id else (job.id, job.attempt, job.started_on)


def lease_of(job: ModelJob) -> Lease:
    assert job.started_on is not None
    return Lease(job.id, job.attempt, job.started_on)
