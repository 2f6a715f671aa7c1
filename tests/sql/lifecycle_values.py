"""The values of the lifecycle model: queues, jobs, requests to send one, and layers of changed jobs."""

from datetime import datetime, timedelta
from uuid import UUID

import attrs

from trioboss.model.policy import Policy
from trioboss.model.states import JobState, Readiness, state_of

CREATED, RETRY, ACTIVE = JobState.CREATED, JobState.RETRY, JobState.ACTIVE
COMPLETED, CANCELLED, FAILED = JobState.COMPLETED, JobState.CANCELLED, JobState.FAILED
QUEUED = (Readiness.DEFERRED, Readiness.BLOCKED, Readiness.WAITING, Readiness.READY)

Slot = tuple[object, ...]
"""The values that only one job can have at a time: by a policy, by send_once, by a throttle, or a lock."""


@attrs.frozen
class ModelQueue:
    name: str
    policy: Policy
    commit_order: bool = True
    retry_limit: int = 0
    retry_delay: int = 0
    retry_backoff: bool = False
    expire_in: int = 30
    keep_completed: bool = True
    dead_letter: str | None = None

    @property
    def is_fifo(self) -> bool:
        return self.policy is Policy.KEY_STRICT_FIFO


@attrs.frozen
class Overrides:
    """The options by which a job differs from its queue; None: as its queue."""

    retry_limit: int | None = None
    retry_delay: int | None = None
    retry_backoff: bool | None = None


@attrs.frozen
class Options:
    """The options that apply to a job."""

    retry_limit: int
    retry_delay: int
    retry_backoff: bool

    @classmethod
    def resolve(cls, overrides: Overrides, queue: ModelQueue) -> "Options":
        given = attrs.asdict(overrides)
        return cls(*(getattr(queue, name) if value is None else value for name, value in given.items()))


@attrs.frozen
class ModelJob:
    id: UUID
    queue: str
    policy: Policy
    seq: int
    """The order of sending."""
    key: str | None
    priority: int
    start_after: datetime
    readiness: Readiness
    outcome: JobState | None = None
    """Of a job in the archive."""
    overrides: Overrides = Overrides()
    unique_until: str | None = None
    source_id: UUID | None = None
    has_slot: bool = True
    """Whether it has the slot that its policy gives to a queued job. A released job does without if it is taken."""
    owns_key: bool = False
    attempt: int = 0
    retry_count: int = 0
    failures: int = 0
    started_on: datetime | None = None
    expires_on: datetime | None = None
    completed_on: datetime | None = None
    heartbeat_on: datetime | None = None
    random_start: bool = False
    """A backoff made its start random, and the model does not know it yet."""

    @property
    def state(self) -> JobState:
        return self.outcome or state_of(self.readiness, self.attempt)

    @property
    def is_queued(self) -> bool:
        return self.outcome is None and self.readiness in QUEUED

    @property
    def is_running_or_queued(self) -> bool:
        return self.outcome is None and self.readiness is not Readiness.ENDED

    @property
    def is_live(self) -> bool:
        """In the live table: queued, active, or failed and in the way of its key."""
        return self.outcome is None

    @property
    def is_fifo(self) -> bool:
        return self.policy is Policy.KEY_STRICT_FIFO

    @property
    def queued_readiness(self) -> Readiness:
        """Its readiness once its time has come."""
        return Readiness.WAITING if self.policy.is_keyed and not self.owns_key else Readiness.READY

    @property
    def rank(self) -> tuple[int, int]:
        """Its position in the backlog of its key: strict FIFO ignores priorities."""
        return (0 if self.is_fifo else -self.priority, self.seq)

    @property
    def slots(self) -> set[Slot]:
        """The values that it keeps other jobs from having, by the policy of the queue and by the way it was sent."""
        where = (self.queue, self.key)
        live = self.is_running_or_queued
        waits = self.is_queued and self.has_slot
        rules = {
            ("created", *where): self.policy is Policy.SHORT and self.state is CREATED,
            ("stately", *where, self.state): self.policy is Policy.STATELY and waits,
            ("exclusive", *where): self.policy is Policy.EXCLUSIVE and live,
            ("once", *where): self.unique_until == "ended" and live,
            ("singleton", *where): self.unique_until == "started" and self.is_queued,
        }
        return {slot for slot, applies in rules.items() if applies}


@attrs.define(eq=False)
class Layer:
    """Changed jobs and throttle slots: those of a statement on those of a transaction on the committed ones."""

    below: "Layer | None" = None
    jobs: dict[UUID, ModelJob | None] = attrs.field(factory=dict)
    throttle: dict[Slot, UUID | None] = attrs.field(factory=dict)
    history: list[tuple[UUID, int, str]] = attrs.field(factory=list)
    """Attempts that did not end well: job, attempt, outcome."""
    targets: set[UUID] = attrs.field(factory=set)
    """Jobs that the statement names."""
    needs: set[Slot] = attrs.field(factory=set)
    """Slots that it tries to take."""
    changes: set[Slot] = attrs.field(factory=set)
    """Slots that it took or gave up, or whose owner it changed: a statement that needs one waits for the commit."""
    gone: set[UUID] = attrs.field(factory=set)
    """Jobs that left the live table. If one returns, it has a new row, which a statement that waits for the old one
    does not see."""

    def get(self, id: UUID) -> ModelJob | None:
        if id in self.jobs:
            return self.jobs[id]
        return None if self.below is None else self.below.get(id)

    def find_throttled(self, slot: Slot) -> UUID | None:
        if slot in self.throttle:
            return self.throttle[slot]
        return None if self.below is None else self.below.find_throttled(slot)

    def _merged(self) -> dict[UUID, ModelJob | None]:
        return self.jobs if self.below is None else {**self.below._merged(), **self.jobs}

    def _merged_throttle(self) -> dict[Slot, UUID | None]:
        return self.throttle if self.below is None else {**self.below._merged_throttle(), **self.throttle}

    def all(self, queue: str | None = None) -> list[ModelJob]:
        """In order of sending."""
        found = (job for job in self._merged().values() if job is not None)
        return sorted((job for job in found if queue in (None, job.queue)), key=lambda job: job.seq)

    def put(self, job: ModelJob) -> None:
        was = self.get(job.id)
        self.changes |= job.slots | (was.slots if was else set())
        self.targets.add(job.id)
        self.jobs[job.id] = job
        if not job.is_live:
            self.gone.add(job.id)

    def drop(self, job: ModelJob) -> None:
        self.changes |= job.slots
        self.targets.add(job.id)
        self.jobs[job.id] = None
        self.gone.add(job.id)

    def rename(self, job: ModelJob, id: UUID) -> None:
        """Give a job that the database made the id that it has there."""
        del self.jobs[job.id]
        self.jobs[id] = attrs.evolve(job, id=id)

    def take_throttle(self, slot: Slot, id: UUID) -> None:
        self.changes.add(slot)
        self.throttle[slot] = id

    def free_throttle(self, id: UUID) -> None:
        for slot, owner in self._merged_throttle().items():
            if owner == id:
                self.changes.add(slot)
                self.throttle[slot] = None

    def has_room(self, job: ModelJob) -> bool:
        """Whether no other job has a slot that this one needs."""
        self.needs |= job.slots
        return not any(other.id != job.id and other.slots & job.slots for other in self.all(job.queue))

    def merge(self) -> None:
        """Make the changes part of the layer below."""
        below = self.below
        assert below is not None
        below.jobs |= self.jobs
        below.throttle |= self.throttle
        below.history += self.history
        below.targets |= self.targets
        below.changes |= self.changes
        below.gone |= self.gone
        if below.below is None:
            below.jobs = {id: job for id, job in below.jobs.items() if job is not None}
            below.throttle = {slot: id for slot, id in below.throttle.items() if id is not None}
            below.targets, below.changes, below.gone = set(), set(), set()

    def must_wait_for(self, other: "Layer") -> bool:
        """Whether the database lets this statement wait until the other transaction ends."""
        return bool(self.targets & other.targets or self.needs & other.changes)


@attrs.frozen
class SendRequest:
    """A job to be sent."""

    id: UUID
    queue: str
    key: str | None = None
    priority: int = 0
    delay: int = 0
    unique_until: str | None = None
    throttle_seconds: int | None = None
    next_slot: bool = False
    overrides: Overrides = Overrides()

    def starts(self, now: datetime) -> datetime:
        return now + timedelta(seconds=self.delay)
