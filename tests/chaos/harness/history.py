"""What happened in a run, as values. All times are seconds of one clock, whichever process recorded them."""

from uuid import UUID

import attrs

__all__ = ["EndedAttempt", "Fault", "History", "JobRow", "QueueRules", "Send", "Settled", "Start"]


@attrs.frozen
class QueueRules:
    """What the checker needs to know about a queue."""

    one_at_a_time: bool = False
    """No two jobs of a key are active at once."""
    in_order: bool = False
    """Jobs of a key start in the order of their commits, each after the end of the one before."""
    dead_letter: str | None = None
    may_fail_early: bool = False
    """A retry may be refused because another job of its key is queued; then the job fails with retries left."""


@attrs.frozen
class Send:
    """A job that a producer tried to send, and the answer it got."""

    id: UUID
    queue: str
    key: str | None
    invoked: float
    answer: str
    """ok, refused (by a policy), rolled_back, or unknown (no answer arrived)."""
    in_ledger: bool = False
    """The transaction of the send also wrote a line into the ledger."""


@attrs.frozen
class Start:
    """A handler was entered."""

    id: UUID
    attempt: int
    leased_on: float
    token: str
    """Names this one handler call; the handler's output or error carries it."""
    process: str
    at: float
    ended: float | None = None
    """None: the process was killed before the handler returned."""


@attrs.frozen
class Settled:
    """The database accepted or refused the result of an attempt."""

    id: UUID
    attempt: int
    at: float
    accepted: bool


@attrs.frozen
class JobRow:
    """A job in the database at the end of the run."""

    id: UUID
    queue: str
    key: str | None
    state: str
    attempt: int
    leased_on: float | None
    ended_on: float | None
    token: str | None
    """From its output."""
    retry_limit: int
    expire_in: float
    source_id: UUID | None = None
    """For a dead letter job: the job that it is a copy of."""


@attrs.frozen
class EndedAttempt:
    """An attempt without success, as the database recorded it."""

    id: UUID
    queue: str
    key: str | None
    attempt: int
    leased_on: float
    ended_on: float
    outcome: str
    token: str | None = None
    """From its error."""
    worker: str | None = None
    """The process that had the lease, by the name in its journal; None: it wrote none."""


@attrs.frozen
class Fault:
    """What the nemesis did, to which process (None: to all), and until when."""

    kind: str
    at: float
    until: float
    target: str | None = None


@attrs.define
class History:
    """Everything that is recorded of one run."""

    queues: dict[str, QueueRules] = attrs.field(factory=dict)
    sends: list[Send] = attrs.field(factory=list)
    starts: list[Start] = attrs.field(factory=list)
    settled: list[Settled] = attrs.field(factory=list)
    rows: list[JobRow] = attrs.field(factory=list)
    ended: list[EndedAttempt] = attrs.field(factory=list)
    faults: list[Fault] = attrs.field(factory=list)
    ledger: list[UUID] = attrs.field(factory=list)
    """The ids in the ledger, in the order of commits."""

    def rules(self, queue: str) -> QueueRules:
        """Return the rules of a queue."""
        return self.queues.get(queue, QueueRules())
