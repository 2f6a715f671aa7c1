"""The values of the lifecycle model: queues, jobs, orders, and layers of changed jobs."""

from datetime import datetime, timedelta
from uuid import UUID

import attrs

from trioboss.model.policy import Policy
from trioboss.model.states import JobState

CREATED, RETRY, ACTIVE = JobState.CREATED, JobState.RETRY, JobState.ACTIVE
COMPLETED, CANCELLED, FAILED = JobState.COMPLETED, JobState.CANCELLED, JobState.FAILED

Place = tuple[object, ...]
"""Something that one job has and no other can have at the same time."""


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
class ModelJob:
    id: UUID
    queue: str
    policy: Policy
    seq: int
    """The order of sending."""
    key: str | None
    priority: int
    start_after: datetime
    retry_limit: int
    retry_delay: int
    retry_backoff: bool
    expire_in: int
    dead_letter: str | None
    unique_until: str | None = None
    source_id: UUID | None = None
    state: JobState = CREATED
    attempt: int = 0
    retry_count: int = 0
    failures: int = 0
    started_on: datetime | None = None
    completed_on: datetime | None = None
    heartbeat_on: datetime | None = None
    ready: bool = False
    """For keyed policies: it is its turn."""
    deferred: bool = False
    """It was not due when it was written."""

    @property
    def is_queued(self) -> bool:
        return self.state in (CREATED, RETRY)

    @property
    def is_live(self) -> bool:
        return self.state in (CREATED, RETRY, ACTIVE)

    @property
    def is_fifo(self) -> bool:
        return self.policy is Policy.KEY_STRICT_FIFO

    @property
    def is_hot(self) -> bool:
        """Live, or failed and in the way of its key."""
        return self.is_live or (self.is_fifo and self.state is FAILED)

    @property
    def expires_on(self) -> datetime:
        assert self.started_on is not None
        return self.started_on + timedelta(seconds=self.expire_in)

    @property
    def holds_key(self) -> bool:
        """True if no other job of its key may have the turn."""
        if not self.policy.is_keyed:
            return False
        blocks = self.is_fifo and self.state in (RETRY, FAILED)
        return self.state is ACTIVE or (self.is_queued and self.ready) or blocks

    @property
    def rank(self) -> tuple[int, int]:
        """Its place in the line of its key: strict FIFO knows no priorities."""
        return (0 if self.is_fifo else -self.priority, self.seq)

    @property
    def places(self) -> set[Place]:
        """What keeps other jobs out, by the policy of the queue and by the way it was sent."""
        where = (self.queue, self.key)
        rules = {
            ("short", *where): self.policy is Policy.SHORT and self.state is CREATED,
            ("stately", *where, self.state): self.policy is Policy.STATELY and self.is_live,
            ("exclusive", *where): self.policy is Policy.EXCLUSIVE and self.is_live,
            ("once", *where): self.unique_until == "ended" and self.is_live,
            ("singleton", *where): self.unique_until == "started" and self.is_queued,
        }
        return {place for place, applies in rules.items() if applies}


@attrs.define(eq=False)
class Layer:
    """Jobs and slots as they lie on top of others: a statement on a transaction on what is committed."""

    below: "Layer | None" = None
    jobs: dict[UUID, ModelJob | None] = attrs.field(factory=dict)
    slots: dict[Place, UUID | None] = attrs.field(factory=dict)
    history: list[tuple[UUID, int, str]] = attrs.field(factory=list)
    """Attempts that did not end well: job, attempt, outcome."""
    targets: set[UUID] = attrs.field(factory=set)
    """Jobs that the statement was about."""
    wants: set[Place] = attrs.field(factory=set)
    """Places it tried to enter."""
    shakes: set[Place] = attrs.field(factory=set)
    """Places that it entered or left, or whose owner it changed: who wants in must wait for the commit."""
    gone: set[UUID] = attrs.field(factory=set)
    """Jobs that left the live ones. One that comes back is another row, which who waits for the old one misses."""

    def get(self, id: UUID) -> ModelJob | None:
        if id in self.jobs:
            return self.jobs[id]
        return None if self.below is None else self.below.get(id)

    def slot(self, slot: Place) -> UUID | None:
        if slot in self.slots:
            return self.slots[slot]
        return None if self.below is None else self.below.slot(slot)

    def _merged(self) -> dict[UUID, ModelJob | None]:
        return self.jobs if self.below is None else {**self.below._merged(), **self.jobs}

    def _merged_slots(self) -> dict[Place, UUID | None]:
        return self.slots if self.below is None else {**self.below._merged_slots(), **self.slots}

    def all(self, queue: str | None = None) -> list[ModelJob]:
        """In order of sending."""
        found = (job for job in self._merged().values() if job is not None)
        return sorted((job for job in found if queue in (None, job.queue)), key=lambda job: job.seq)

    def put(self, job: ModelJob) -> None:
        was = self.get(job.id)
        self.shakes |= job.places | (was.places if was else set())
        self.targets.add(job.id)
        self.jobs[job.id] = job
        if not job.is_hot:
            self.gone.add(job.id)

    def drop(self, job: ModelJob) -> None:
        self.shakes |= job.places
        self.targets.add(job.id)
        self.jobs[job.id] = None
        self.gone.add(job.id)

    def rename(self, job: ModelJob, id: UUID) -> None:
        """Give a job that the database made the id that it got there."""
        del self.jobs[job.id]
        self.jobs[id] = attrs.evolve(job, id=id)

    def take_slot(self, slot: Place, id: UUID) -> None:
        self.shakes.add(slot)
        self.slots[slot] = id

    def free_slots(self, id: UUID) -> None:
        for slot, owner in self._merged_slots().items():
            if owner == id:
                self.shakes.add(slot)
                self.slots[slot] = None

    def has_room(self, job: ModelJob) -> bool:
        """Whether no other job is where this one wants to be."""
        self.wants |= job.places
        return not any(other.id != job.id and other.places & job.places for other in self.all(job.queue))

    def pour(self) -> None:
        """Make the changes part of what lies below."""
        below = self.below
        assert below is not None
        below.jobs |= self.jobs
        below.slots |= self.slots
        below.history += self.history
        below.targets |= self.targets
        below.shakes |= self.shakes
        below.gone |= self.gone
        if below.below is None:
            below.jobs = {id: job for id, job in below.jobs.items() if job is not None}
            below.slots = {slot: id for slot, id in below.slots.items() if id is not None}
            below.targets, below.shakes, below.gone = set(), set(), set()

    def must_wait_for(self, other: "Layer") -> bool:
        """Whether the database would let this statement wait until the other transaction ends."""
        return bool(self.targets & other.targets or self.wants & other.shakes)


@attrs.frozen
class Order:
    """A job to be sent."""

    id: UUID
    queue: str
    key: str | None = None
    priority: int = 0
    delay: int = 0
    unique_until: str | None = None
    slot_seconds: int | None = None
    next_slot: bool = False
