"""A job as a handler gets it: the attributes of the claimed job, and how operations report to it."""

import abc
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from trioboss.model.job import Job, Lease
from trioboss.model.states import JobState

if TYPE_CHECKING:
    # A job without a declared type is one of Any. Only type checkers need the default: typing has it from Python 3.13
    # on, and typing_extensions is no dependency of ours.
    from typing_extensions import TypeVar

    D_co = TypeVar("D_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    D_co = TypeVar("D_co", covariant=True)

__all__ = ["D_co", "HandedJob"]


class HandedJob(abc.ABC):
    """A job that was passed to a handler. Operations accept it as the job, and report to it how they settled it.

    Its properties are those of the claimed `Job`, as they were at the claim. Each is written out, so that a type
    checker knows them. The data is missing here: a subclass has it in the type that the worker declares.
    """

    __slots__ = ()

    @property
    @abc.abstractmethod
    def job(self) -> Job:
        """The job as it was claimed."""

    @abc.abstractmethod
    def settled_manually(self, state: JobState, error: str, *, committed: bool) -> None:
        """An operation has settled the attempt. ``committed``: False as long as the caller's transaction is open."""

    @property
    def id(self) -> UUID:
        """The job's id."""
        return self.job.id

    @property
    def queue(self) -> str:
        """The queue it is in."""
        return self.job.queue

    @property
    def lease(self) -> Lease | None:
        """The right to settle this attempt."""
        return self.job.lease

    @property
    def keep_until(self) -> datetime:
        """When the job is deleted if it is still queued then."""
        return self.job.keep_until

    @property
    def state(self) -> JobState:
        """Where it was in its life when it was claimed: active."""
        return self.job.state

    @property
    def priority(self) -> int:
        """Higher ones run first."""
        return self.job.priority

    @property
    def attempt(self) -> int:
        """The number of this attempt; it only grows."""
        return self.job.attempt

    @property
    def retry_count(self) -> int:
        """How many retries were spent."""
        return self.job.retry_count

    @property
    def retry_limit(self) -> int:
        """How many retries it has."""
        return self.job.retry_limit

    @property
    def retry_delay(self) -> float:
        """Seconds until a retry."""
        return self.job.retry_delay

    @property
    def retry_backoff(self) -> bool:
        """Whether the delay doubles with every failure."""
        return self.job.retry_backoff

    @property
    def retry_delay_max(self) -> float | None:
        """The longest delay with backoff, in seconds."""
        return self.job.retry_delay_max

    @property
    def retry_jitter(self) -> float:
        """The part of the delay that is random."""
        return self.job.retry_jitter

    @property
    def retry_multiplier(self) -> float:
        """The factor by which the delay grows with each failure, with backoff."""
        return self.job.retry_multiplier

    @property
    def retry_window(self) -> float | None:
        """Seconds without a failure after which the backoff starts again."""
        return self.job.retry_window

    @property
    def singleton_key(self) -> str | None:
        """Its key."""
        return self.job.singleton_key

    @property
    def singleton_on(self) -> datetime | None:
        """The throttle slot that it occupies."""
        return self.job.singleton_on

    @property
    def created_on(self) -> datetime:
        """When it was sent."""
        return self.job.created_on

    @property
    def start_after(self) -> datetime:
        """When it could start."""
        return self.job.start_after

    @property
    def started_on(self) -> datetime | None:
        """When it was claimed, by the clock of the database."""
        return self.job.started_on

    @property
    def expire_in(self) -> float:
        """Seconds until its lease expires."""
        return self.job.expire_in

    @property
    def heartbeat(self) -> float | None:
        """Seconds within which a heartbeat has to come."""
        return self.job.heartbeat

    @property
    def auto_heartbeat(self) -> bool:
        """Whether trioboss sends the heartbeats."""
        return self.job.auto_heartbeat

    @property
    def max_lease_extensions(self) -> int:
        """How often the lease can be extended."""
        return self.job.max_lease_extensions

    @property
    def lease_extensions(self) -> int:
        """How often the lease was extended when it was claimed."""
        return self.job.lease_extensions

    @property
    def retention(self) -> float:
        """Seconds that it may wait before it is deleted."""
        return self.job.retention

    @property
    def delete_after(self) -> float:
        """Seconds that it is kept after its end."""
        return self.job.delete_after

    @property
    def output(self) -> Any:
        """The error of the attempt before, if there was one."""
        return self.job.output

    @property
    def policy(self) -> str | None:
        """The policy of its queue."""
        return self.job.policy

    @property
    def worker(self) -> UUID | None:
        """The id of the worker that has claimed it."""
        return self.job.worker

    @property
    def source_queue(self) -> str | None:
        """Of a dead letter job: the queue it comes from."""
        return self.job.source_queue

    @property
    def source_id(self) -> UUID | None:
        """Of a dead letter job: the id of the job that failed."""
        return self.job.source_id

    @property
    def source_created_on(self) -> datetime | None:
        """Of a dead letter job: when the job that failed was sent."""
        return self.job.source_created_on

    @property
    def source_retry_count(self) -> int | None:
        """Of a dead letter job: how many retries the job that failed had spent."""
        return self.job.source_retry_count

    @property
    def seq(self) -> int:
        """Its position in the order of sending."""
        return self.job.seq
