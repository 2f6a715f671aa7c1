"""The events of a run, as values. All times are seconds of one clock, whichever process recorded them."""

from uuid import UUID

import attrs

__all__ = [
    "Change",
    "EndedAttempt",
    "Exit",
    "Fault",
    "History",
    "JobRow",
    "Memory",
    "QueueRules",
    "Send",
    "Settled",
    "Start",
    "Tick",
]


@attrs.frozen
class QueueRules:
    """The properties of a queue that the checker needs."""

    one_at_a_time: bool = False
    """No two jobs of a key are active at once."""
    in_order: bool = False
    """Jobs of a key start in the order of their commits, each after the end of the one before."""
    dead_letter: str | None = None
    one_retry: bool = False
    """A key has one retry: a job that fails while another of its key is to be retried fails for good."""
    one_created: bool = False
    """A key has one job that was never active."""
    one_alive: bool = False
    """A key has one job that has not ended."""
    by_priority: bool = False
    """Nothing but the priority decides which job starts first."""
    retry_delay: float = 0.0
    """The longest time in seconds between two attempts."""


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
    answered: float | None = None
    method: str = "send"
    """send, send_once, send_singleton or send_throttled."""
    after: float = 0.0
    """Seconds by which the job is deferred."""
    priority: int = 0
    slot: float | None = None
    """Of send_throttled: the length of a slot in seconds."""
    checksum: int = 0
    """Of the part of the data that has no meaning."""


@attrs.frozen
class Change:
    """A producer cancelled or resumed a job."""

    id: UUID
    kind: str
    """cancel or resume."""
    invoked: float
    answered: float
    answer: str
    """ok, refused (no such job was there), or unknown."""


@attrs.frozen
class Tick:
    """The tick of a schedule, as the database recorded it."""

    id: UUID
    due: float


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
    checksum: int = 0


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
    """An action of the nemesis, to which process (None: to all), and until when."""

    kind: str
    at: float
    until: float
    target: str | None = None


@attrs.frozen
class Exit:
    """A worker process ended."""

    process: str
    at: float
    code: int


@attrs.frozen
class Memory:
    """The resident memory of a worker process that is never killed."""

    process: str
    at: float
    megabytes: float


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
    changes: list[Change] = attrs.field(factory=list)
    ticks: list[Tick] = attrs.field(factory=list)
    """The ticks of the one schedule, which has one every second, in their order."""
    exits: list[Exit] = attrs.field(factory=list)
    memory: list[Memory] = attrs.field(factory=list)
    """In the order of time."""
    other_versions: int = 0
    """Worker processes that imported another version of trioboss."""
    wall_ahead: float = 0.0
    """Seconds by which the wall clock is ahead of the clock of this history."""

    def rules(self, queue: str) -> QueueRules:
        """Return the rules of a queue."""
        return self.queues.get(queue, QueueRules())

    def first_leases(self) -> dict[UUID, float]:
        """Return when each job was leased for the first time, by the database and by the journals."""
        leases = [(end.id, end.leased_on) for end in self.ended]
        leases += [(row.id, row.leased_on) for row in self.rows if row.leased_on is not None]
        leases += [(start.id, start.leased_on) for start in self.starts]
        firsts: dict[UUID, float] = {}
        for id, leased_on in leases:
            firsts[id] = min(leased_on, firsts.get(id, leased_on))
        return firsts
