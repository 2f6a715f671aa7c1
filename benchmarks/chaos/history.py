"""What happened, as values. All times are seconds of one clock, whoever took them."""

from uuid import UUID

import attrs

__all__ = ["Ended", "Fault", "History", "QueueRules", "Row", "Send", "Settled", "Start"]


@attrs.frozen
class QueueRules:
    """What the checker must know of a queue."""

    one_at_a_time: bool = False
    """No two jobs of a key are active at once."""
    in_order: bool = False
    """Jobs of a key start in the order of their commits, each after the end of the one before."""
    dead_letter: str | None = None
    may_fail_early: bool = False
    """A retry may find its place taken; then the job fails with retries to spare."""


@attrs.frozen
class Send:
    """A job that a producer tried to send, and what it was told."""

    id: UUID
    queue: str
    key: str | None
    invoked: float
    answer: str
    """ok, refused (by a policy), undone (rolled back), or unknown: no answer came."""
    in_ledger: bool = False
    """It was sent in a transaction that also wrote a line into the ledger."""


@attrs.frozen
class Start:
    """A handler was entered."""

    id: UUID
    attempt: int
    leased_on: float
    token: str
    """Names this one call of a handler; it is its output, and its error."""
    who: str
    at: float
    ended: float | None = None
    """None: it was killed."""


@attrs.frozen
class Settled:
    """A worker was told what became of its result."""

    id: UUID
    attempt: int
    at: float
    accepted: bool


@attrs.frozen
class Row:
    """A job in the database at the end."""

    id: UUID
    queue: str
    key: str | None
    state: str
    attempt: int
    leased_on: float | None
    ended_on: float | None
    token: str | None
    """Its output."""
    retry_limit: int
    expire_in: float
    source_id: UUID | None = None
    """For a dead letter: the job it is a copy of."""


@attrs.frozen
class Ended:
    """An attempt that did not end well, as the database remembers it."""

    id: UUID
    queue: str
    key: str | None
    attempt: int
    leased_on: float
    ended_on: float
    outcome: str
    token: str | None = None
    """The error that was stored."""
    worker: str | None = None
    """Who had the lease, by the name in its journal; None: it has none."""


@attrs.frozen
class Fault:
    """What the nemesis did, to whom (None: to everybody), and until when."""

    kind: str
    at: float
    until: float
    target: str | None = None


@attrs.define
class History:
    """Everything that is known of one run."""

    queues: dict[str, QueueRules] = attrs.field(factory=dict)
    sends: list[Send] = attrs.field(factory=list)
    starts: list[Start] = attrs.field(factory=list)
    settled: list[Settled] = attrs.field(factory=list)
    rows: list[Row] = attrs.field(factory=list)
    ended: list[Ended] = attrs.field(factory=list)
    faults: list[Fault] = attrs.field(factory=list)
    ledger: list[UUID] = attrs.field(factory=list)
    """The ids in the ledger, in the order of commits."""

    def rules(self, queue: str) -> QueueRules:
        """The rules of a queue."""
        return self.queues.get(queue, QueueRules())
