"""The life of one attempt, from its claim to its settlement, as one table of states and events (see ``_TABLE``).

An attempt waits in the buffer, runs, may be cancelled, has an outcome, and is settled by a statement, or lost. A
handler can also settle its own job while it runs, and a handler that ignores its cancellation is given up: its attempt
is settled without it. This module decides about one attempt, and the actors carry the actions out. They also turn what
they observe into its events:

- `Heartbeat._act`: the lease needs something. It chooses the reason if a renewal is missing: LOSE or EXPIRE.
- `Renewer.run`: a renewal was refused (LOSE), or has succeeded after a tentative settlement (ROLL_BACK).
- `LeaseChecker.run`: the lease is gone. Its callers in worker.py and dispatcher.py choose the reason: CANCEL or LOSE.
- `superseded`: a later attempt of the job is in this process. Its callers make that LOSE, or in the completer REFUSE.
- `Worker`: it stops (STOP), or its boss was absent for too long (LOSE).
- `Completer.answered`: the database has accepted an outcome (ACCEPT), or has not (REFUSE).
"""

import enum
from typing import TypeAlias

import attrs

from trioboss.model.described_error import describe_error
from trioboss.model.settle_and_claim import Failure
from trioboss.model.states import JobState

__all__ = [
    "TRANSITIONS",
    "Action",
    "AttemptMachine",
    "AttemptState",
    "CancelReason",
    "Completed",
    "Event",
    "Failed",
    "ManualSettlement",
    "Outcome",
    "Released",
]


class CancelReason(enum.StrEnum):
    """Why a running job was cancelled."""

    EXPIRED = "expired"
    """The attempt ran for longer than ``expire_in``; or its handler, which renews the lease itself (``auto_heartbeat``
    is off), has not done so in time.
    """
    CANCELLED = "cancelled"
    """The job was cancelled, deleted, or settled by somebody else."""
    LEASE_LOST = "lease_lost"
    """Another worker may take the job, or has taken it: this process can no longer settle the attempt."""
    STOPPING = "stopping"
    """The worker stops, and the grace is over."""


@attrs.frozen
class Completed:
    """The handler returned; its value is JSON text."""

    output: str


@attrs.frozen
class Failed:
    """The handler raised, or ran for too long."""

    failure: Failure
    error: str
    """The error in one line."""
    exception: BaseException | None = attrs.field(default=None, eq=False, repr=False)
    """The exception itself, for events; None where nothing was raised."""


@attrs.frozen
class Released:
    """The worker stops, or the job expired before its handler was called. No retry is spent."""


Outcome: TypeAlias = Completed | Failed | Released
"""The result of an attempt, as it will be settled."""


@attrs.frozen
class ManualSettlement:
    """How the handler has settled its own job, before it ended: with `job.complete`, `boss.complete` or `boss.fail`."""

    state: JobState
    error: str


# An IntEnum has the hash of an int. A plain Enum computes its hash in Python: a lookup takes 80 ns instead of 20, and
# an attempt makes four of them.
class AttemptState(enum.IntEnum):
    """Where an attempt stands."""

    BUFFERED = enum.auto()
    """Leased, and no slot has taken it yet."""
    RUNNING = enum.auto()
    """Its handler runs."""
    TENTATIVE = enum.auto()
    """Its handler runs and has settled the job within a transaction that is still open, and may be rolled back."""
    UNLEASED = enum.auto()
    """The same, but the lease is gone from the database, most likely because that transaction was committed."""
    MANUAL = enum.auto()
    """Its handler has settled the job and goes on, for instance to clean up."""
    LEAVING = enum.auto()
    """The same, but the handler is cancelled."""
    EXPIRED = enum.auto()
    """Cancelled because its time is over. A failure will be settled, unless the handler completes all the same."""
    STOPPING = enum.auto()
    """Cancelled because its worker stops. It will be released, unless the handler completes all the same."""
    CANCELLED = enum.auto()
    """Cancelled because the job was cancelled, deleted or settled elsewhere: nothing is left to settle."""
    LEASE_LOST = enum.auto()
    """Cancelled because another worker may take the job, or has taken it: this process must settle nothing."""
    ABANDONED = enum.auto()
    """Its lost lease is reported; the handler does not end, or the attempt is still in the buffer."""
    KNOWN = enum.auto()
    """Its outcome is known and waits in the completer. A handler that was given up may still be running."""
    SETTLING = enum.auto()
    """Its outcome is in the statement that is under way."""
    UNANSWERED = enum.auto()
    """The statement was sent, and its answer was lost: it is unknown whether the database has settled the attempt. It
    waits in the completer, and goes into the next statement again.
    """
    RESETTLING = enum.auto()
    """Its outcome is in a statement again."""
    SETTLED = enum.auto()
    """The database has its outcome."""
    LOST = enum.auto()
    """This process settles nothing of it: the job was ended elsewhere, or another worker has it or will have it."""


class Event(enum.IntEnum):
    """The events of an attempt."""

    START = enum.auto()
    """A slot calls its handler."""
    EXPIRE = enum.auto()
    """Its time is over."""
    STOP = enum.auto()
    """Its worker stops."""
    CANCEL = enum.auto()
    """The job was cancelled, deleted or settled elsewhere: after a notification, a check has found no such lease."""
    LOSE = enum.auto()
    """Its lease is lost, or could not be confirmed in time."""
    TENTATIVE = enum.auto()
    """Its handler has settled the job, in a transaction of its own that is still open."""
    ROLL_BACK = enum.auto()
    """That transaction was rolled back: the lease could be renewed."""
    MANUAL = enum.auto()
    """Its handler has settled the job."""
    END = enum.auto()
    """Its handler has ended, or it was taken out of the buffer."""
    GIVE_UP = enum.auto()
    """Its handler was cancelled and does not end."""
    SEND = enum.auto()
    """Its outcome goes into a statement."""
    ACCEPT = enum.auto()
    """The database has settled it."""
    REFUSE = enum.auto()
    """The lease is not in the database any more, or a later attempt of the job runs in this process."""
    REFUSE_MANUAL = enum.auto()
    """The same, where the handler's own settlement explains it."""
    NO_ANSWER = enum.auto()
    """The answer of the statement was lost."""
    POSTPONE = enum.auto()
    """Another transaction has changed the job, or what its outcome needs, and is still open."""


class Action(enum.Enum):
    """The reaction of the actors to a transition. The values are the marks in the table."""

    NOTHING = ""
    CANCEL_HANDLER = "!"
    """Cancel the scope of the handler's call."""
    SETTLE = "+"
    """Put the outcome into the completer."""
    REPORT_SETTLED = "="
    """Count and report the outcome."""
    REPORT_MANUAL = "*"
    """Count and report the handler's own settlement."""
    REPORT_UNANSWERED = "?"
    """Count the outcome as settled: the statement whose answer was lost must have settled it."""
    REPORT_REFUSED = "#"
    """Report that the outcome came too late."""
    REPORT_LOST = "%"
    """Report that the lease was lost while the job was running."""
    REPORT_CANCELLED = "^"
    """Report that the handler of a job that was cancelled elsewhere has ended."""
    RECOVER = "~"
    """Recover the lease: it was given up here and may still be in the database."""
    REPORT_LOST_AND_RECOVER = "&"
    """Both."""


# How to read the table: a row is the state before, a column the event. A cell is the next state, followed by the mark
# of the action (see Action), if there is one: KNOWN+ is the state KNOWN with the action SETTLE. "-": the event has no
# effect. ".", or a row that is not there: the event cannot happen in that state.
#
# The reasons:
# BUFFERED    An attempt that never started needs no handler to end: its outcome is known at once. It has not failed.
# TENTATIVE,  The lease is gone from the database because the handler has settled the job: that is no reason to
# UNLEASED,   cancel the handler. While a settlement is tentative the lease is renewed, because the transaction may be
# MANUAL      rolled back.
# EXPIRED to  The first reason for a cancellation counts. If the handler settles the job nevertheless, its settlement
# LEASE_LOST  counts once it is committed. One in a transaction that is still open changes nothing here: if it is
#             committed later, the database refuses the outcome that this process settles.
# LEASE_LOST  While its handler runs, the lease must not be recovered; recovery follows when the handler ends.
# ABANDONED   From here on a cancellation has no effect: the scope of the slot may belong to another job by now.
# UNANSWERED, A refusal no longer means that the lease was lost: most likely the first statement has settled the
# RESETTLING  attempt.
_TABLE = """
STATE       START    EXPIRE    STOP       CANCEL      LOSE         TENTATIVE  MANUAL   END       GIVE_UP
BUFFERED    RUNNING  KNOWN+    KNOWN+     LOST^       ABANDONED%   .          .        .         .
RUNNING     .        EXPIRED!  STOPPING!  CANCELLED!  LEASE_LOST!  TENTATIVE  MANUAL   KNOWN+    .
TENTATIVE   .        EXPIRED!  STOPPING!  UNLEASED    UNLEASED     -          MANUAL   KNOWN+    .
UNLEASED    .        EXPIRED!  STOPPING!  -           -            -          MANUAL   KNOWN+    .
MANUAL      .        LEAVING!  LEAVING!   -           -            -          -        SETTLED*  .
LEAVING     .        -         -          -           -            -          -        SETTLED*  SETTLED*
EXPIRED     .        -         -          -           -            -          LEAVING  KNOWN+    KNOWN+
STOPPING    .        -         -          -           -            -          LEAVING  KNOWN+    KNOWN+
CANCELLED   .        -         -          -           -            -          LEAVING  LOST^     LOST^
LEASE_LOST  .        -         -          -           -            -          LEAVING  LOST&     ABANDONED%
ABANDONED   .        -         -          -           -            -          -        LOST~     -
KNOWN       .        -         -          -           -            -          -        -         -
SETTLING    .        -         -          -           -            -          -        -         -
UNANSWERED  .        -         -          -           -            -          -        -         -
RESETTLING  .        -         -          -           -            -          -        -         -
SETTLED     .        -         -          -           -            -          -        -         -
LOST        .        -         -          -           -            -          -        -         -

STATE       ROLL_BACK
TENTATIVE   RUNNING

STATE       SEND        ACCEPT    REFUSE    REFUSE_MANUAL  NO_ANSWER    POSTPONE
KNOWN       SETTLING    .         LOST#     SETTLED*       .            .
SETTLING    .           SETTLED=  LOST#     SETTLED*       UNANSWERED+  KNOWN+
UNANSWERED  RESETTLING  .         SETTLED?  SETTLED*       .            .
RESETTLING  .           SETTLED=  SETTLED?  SETTLED*       UNANSWERED+  UNANSWERED+
"""

_Cell: TypeAlias = tuple[AttemptState, Action]


def _read(table: str) -> dict[Event, dict[AttemptState, _Cell]]:
    """The columns of the table. A misspelt name is an error when this module is imported."""
    columns: dict[Event, dict[AttemptState, _Cell]] = {event: {} for event in Event}
    events: list[Event] = []
    for name, *cells in (line.split() for line in table.splitlines() if line):
        if name == "STATE":
            events = [Event[cell] for cell in cells]
            continue
        state = AttemptState[name]
        for event, cell in zip(events, cells, strict=True):
            if cell == "-":
                columns[event][state] = (state, Action.NOTHING)
            elif cell != ".":
                following = cell.rstrip("!+=*?#%~&^")
                columns[event][state] = (AttemptState[following], Action(cell.removeprefix(following)))
    return columns


TRANSITIONS = _read(_TABLE)

_S, _E, _A = AttemptState, Event, Action
# Each event looks up its own column: one lookup by state, and no key to build.
_START, _END, _GIVE_UP = TRANSITIONS[_E.START], TRANSITIONS[_E.END], TRANSITIONS[_E.GIVE_UP]
_ROLL_BACK = TRANSITIONS[_E.ROLL_BACK]
_SEND, _ACCEPT, _NO_ANSWER = TRANSITIONS[_E.SEND], TRANSITIONS[_E.ACCEPT], TRANSITIONS[_E.NO_ANSWER]
_CANCEL = {
    CancelReason.EXPIRED: TRANSITIONS[_E.EXPIRE],
    CancelReason.STOPPING: TRANSITIONS[_E.STOP],
    CancelReason.CANCELLED: TRANSITIONS[_E.CANCEL],
    CancelReason.LEASE_LOST: TRANSITIONS[_E.LOSE],
}
_UNCANCELLED = frozenset({_S.BUFFERED, _S.RUNNING, _S.TENTATIVE, _S.UNLEASED, _S.MANUAL})
_SETTLED_MANUALLY = frozenset({_S.MANUAL, _S.LEAVING})

_EXPIRED = Failed(Failure(describe_error("the job expired"), outcome="expired"), "the job expired")


@attrs.define(eq=False)
class AttemptMachine:
    """One attempt: its state, and the values that come with it. Each method is an event, and returns the action."""

    state: AttemptState = attrs.field(default=_S.BUFFERED, init=False)
    reason: CancelReason | None = attrs.field(default=None, init=False)
    """Why it was cancelled: for the handler to read, and for batches, which are cancelled when all their jobs are."""
    outcome: Outcome | None = attrs.field(default=None, init=False)
    """Known from the state KNOWN on."""
    manual: ManualSettlement | None = attrs.field(default=None, init=False)

    @property
    def is_uncancelled(self) -> bool:
        """Whether a cancellation could still have an effect."""
        return self.state in _UNCANCELLED

    @property
    def is_decided(self) -> bool:
        """Whether nothing that the handler does can change what becomes of the attempt."""
        return self.state >= _S.ABANDONED  # the states are declared in this order

    @property
    def needs_lease(self) -> bool:
        """Whether its lease has to be renewed: not after the handler has settled the job, and the lease with it."""
        return self.manual is None or self.state is _S.TENTATIVE

    @property
    def is_settled_manually(self) -> bool:
        """Whether its handler has settled the job for certain, and not in a transaction that is still open."""
        return self.state in _SETTLED_MANUALLY

    def started(self) -> None:
        """A slot calls its handler."""
        self.state = _START[self.state][0]

    def cancelled(self, reason: CancelReason) -> Action:
        """It is cancelled, or its lease is lost. The first reason counts."""
        before = self.state
        self.state, action = _CANCEL[reason][before]
        if action is _A.CANCEL_HANDLER:
            self.reason = reason
        # Only an attempt in the buffer is settled by a cancellation: it never ran, and spends no retry.
        elif action is _A.SETTLE:
            self.outcome = Released()
        return action

    def settled_manually(self, settlement: ManualSettlement, *, committed: bool) -> None:
        """Its handler has settled the job: ``committed``, or in a transaction that is still open."""
        self.manual = settlement
        event = _E.MANUAL if committed else _E.TENTATIVE
        self.state = TRANSITIONS[event][self.state][0]

    def rolled_back(self, settlement: ManualSettlement) -> None:
        """A renewal that was sent after this tentative settlement has succeeded: the settlement was rolled back."""
        # The handler may have settled the job again since the renewal was sent.
        if self.manual is settlement and self.state in _ROLL_BACK:
            self.state = _ROLL_BACK[self.state][0]
            self.manual = None

    def ended(self, outcome: Outcome | None) -> Action:
        """Its handler has ended, with an outcome, or with none if it was cancelled."""
        before = self.state
        self.state, action = _END[before]
        if action is _A.SETTLE:
            # Completed counts whatever the state was: the work is done. (No subclasses: `is` is the fastest test.)
            self.outcome = outcome if type(outcome) is Completed else _judge(before, outcome)
        return action

    def given_up(self) -> Action:
        """Its handler was cancelled and does not end: settle it without the handler."""
        before = self.state
        self.state, action = _GIVE_UP[before]
        if action is _A.SETTLE:
            self.outcome = _judge(before, None)
        return action

    def sent(self) -> Outcome:
        """Its outcome goes into a statement."""
        self.state = _SEND[self.state][0]
        assert self.outcome is not None
        return self.outcome

    def accepted(self) -> Action:
        """The database has settled it."""
        self.state, action = _ACCEPT[self.state]
        return action

    def refused(self) -> Action:
        """The lease is not in the database any more, or a later attempt of the job is running here."""
        event = _E.REFUSE if self.manual is None else _E.REFUSE_MANUAL
        self.state, action = TRANSITIONS[event][self.state]
        return action

    def unanswered(self) -> Action:
        """The answer of the statement was lost."""
        self.state, action = _NO_ANSWER[self.state]
        return action

    def postponed(self) -> Action:
        """It is not settled, because another transaction has changed the job and is still open."""
        self.state, action = TRANSITIONS[_E.POSTPONE][self.state]
        return action


def _judge(state: AttemptState, outcome: Outcome | None) -> Outcome:
    """The outcome of an attempt whose handler did not complete, by the state in which it ended: an error that a
    cancelled handler raises is a consequence of the cancellation, and does not count as its failure.
    """
    if state is _S.EXPIRED:
        return _EXPIRED
    if state is _S.STOPPING:
        return Released()
    assert outcome is not None
    return outcome
