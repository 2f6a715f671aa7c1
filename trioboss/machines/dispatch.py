"""Decides what the dispatcher of one queue does next: claim, settle, recover leases, wait, or stop."""

import math
from typing import TypeAlias, TypeVar

import attrs

from trioboss.machines.dispatch_commands import (
    Command,
    DatabaseCommand,
    Pending,
    Recover,
    Settle,
    Stop,
    Wait,
)
from trioboss.model.settle_and_claim import ClaimRequest, Position

__all__ = ["DispatchMachine"]

# After so many full claims in a row the dispatcher removes its idle marker: it claims again in any case, and senders
# need not notify it. Not after one: for a worker with one slot every claim that brings a job is full, and it would
# remove and set its marker for each single job.
_SATURATED = 2
_FREE_CLAIMS = 10  # fruitless claims in a row that need not wait; every claimed job allows one more
_CLAIM_INTERVAL = 0.005  # seconds between fruitless claims after that
_DUE_INTERVAL = 0.01  # seconds between questions for the next due time, while senders do not notify
# Seconds that outcomes wait for room in the slots, so that the next claim goes to the server with them: that saves a
# round trip, which costs as much as many jobs.
_SETTLE_DELAY = 0.005
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 10.0  # seconds between statements while the database fails
# A claim that ran longer than this, and so much more for each job, has passed over entries of jobs that were claimed
# before: somebody has an old snapshot. For a few times as long as it took, claims begin after its last job.
_SLOW_CLAIM, _SLOW_JOB = 0.002, 0.00004  # seconds
_ONWARD = 4.0

_MOST_REQUESTS = 8  # claims that are kept, for when they come again

_S = TypeVar("_S", bound=DatabaseCommand)
_Terms: TypeAlias = tuple[int, bool, bool | None, bool, Position | None]

_NOTHING_PENDING = Pending()
_WAIT_FOR_RING = Wait(math.inf)
_WAIT_FOR_ROOM = Wait(math.inf, for_room=True)


@attrs.define
class DispatchMachine:
    """The state of one queue, as its dispatcher has reported it.

    Invariants:

    - At most one statement is under way.
    - A dispatcher that may claim, with room and nothing under way, waits for its doorbell or the next due time only
      after this order of events: its idle marker was committed; a claim (or the bulk poll) was sent; it found fewer
      jobs than were asked for; the doorbell has not rung since. The sender of any job that can run now has then seen
      the marker, and notifies.
    - A claim asks for the next due time if the time that is known has come, or may be wrong: with that claim the marker
      is set or removed, the marker may have been lost, or a notification did not say when its job is due. Without the
      marker it asks every `_DUE_INTERVAL`, because no sender tells it of deferred jobs.
    - Before it claims again, it recovers leases that it may have and has no record of.
    - A claim that begins after a position is followed by one from the beginning, at the latest at `_onward_until`.
    """

    _request: ClaimRequest = attrs.field(factory=ClaimRequest)
    """The values that all claims have in common."""
    may_have_jobs: bool = True
    """There may be jobs that no claim has tried to take."""
    due_unknown: bool = True
    """A job may be due earlier than `due`."""
    has_marker: bool = False
    """The idle marker is in the database: senders notify this dispatcher."""
    due: float = -math.inf
    """When the next deferred job is due, as far as it is known. The answer to a claim under way may tell of an earlier
    one.
    """
    retry_at: float = -math.inf
    """When to send the next statement, after the database has failed."""
    is_absent: bool = False
    """The presence of this boss is lost: other bosses may take the jobs leased here. It claims nothing."""
    stopping: bool = False
    awaits_bulk_poll: bool = False
    """The bulk poller sets the marker and polls for this dispatcher, which only reacts to its doorbell until then."""
    leases_unknown: bool = False
    """There may be leases of this worker in the database of which it has no record, or that it has given up."""
    keyed: bool = False
    """Jobs of the queue wait for each other: to settle one may make another ready."""

    _under_way: DatabaseCommand | None = None
    _may_be_cancelled: bool = False
    """The claim under way may bring a job that was cancelled in the meantime."""
    _leases_to_recover: int = 0
    _full_claims: int = 0
    _free_claims: float = _FREE_CLAIMS
    _fruitless_at: float = -math.inf
    _failures: int = 0
    _answered_at: float = -math.inf
    _not_before: float = -math.inf
    _find_due_at: float = -math.inf
    _onward_until: float = -math.inf
    """Until then claims begin after `_position`, if there is one; the next one begins at the beginning. Minus
    infinity: all of them do.
    """
    _position: Position | None = None
    _requests: dict[_Terms, ClaimRequest] = attrs.field(factory=dict)

    @property
    def is_claiming(self) -> bool:
        """Whether a claim is under way."""
        return isinstance(self._under_way, ClaimRequest)

    @property
    def goes_onward(self) -> bool:
        """Whether the next claim may begin after the last job of the one before."""
        return self._onward_until > -math.inf

    # -- events

    def ring(self, now: float, delay: float | None = None) -> None:
        """A job is due in ``delay`` seconds; 0: ready now; None: unknown change, ask for the next due time, too."""
        if delay is not None and delay > 0:
            self.due = min(self.due, now + delay)
        else:
            self.may_have_jobs = True
            self.due_unknown = self.due_unknown or delay is None

    def forget_marker(self) -> None:
        """The marker may be gone from the database: set it again before waiting."""
        self.has_marker = self.awaits_bulk_poll = False
        self.may_have_jobs = self.due_unknown = True
        if isinstance(self._under_way, ClaimRequest):
            # The marker that this claim sets may be lost, too.
            self._under_way = attrs.evolve(self._under_way, idle=None)

    def presence_lost(self, *, has_leases: bool) -> None:
        """Other bosses no longer see that this boss is alive: claim nothing until they see it again. Leases that are
        given up here may stay in the database.
        """
        self.leases_unknown = self.leases_unknown or self.is_claiming or has_leases
        self.is_absent = True

    def presence_regained(self) -> None:
        """Other bosses see this boss again; notifications that were sent in the meantime are lost."""
        self.is_absent = False
        self.forget_marker()

    def await_bulk_poll(self) -> None:
        """The bulk poller will set the marker, and poll. A dispatcher that has leases to recover claims by itself."""
        self.presence_regained()
        if not (self.leases_unknown or isinstance(self._under_way, ClaimRequest | Recover)):
            self.awaits_bulk_poll = True
            self.may_have_jobs = False
            self.due = math.inf

    def bulk_polled(self, now: float, next_due: float | None) -> None:
        """The bulk poller has set the marker, and then found a job to claim in ``next_due`` seconds. If the dispatcher
        has claimed by itself in the meantime, this news is older than its own, and has no effect: the dispatcher may
        have removed its marker since.
        """
        if self.awaits_bulk_poll:
            self.awaits_bulk_poll = False
            self.has_marker = True
            if next_due is not None:
                self.ring(now, next_due or None)

    def queue_recreated(self, now: float) -> None:
        """The queue was deleted and created again: its marker is gone, and statements that failed may work now."""
        self._works(now)
        self._go_back()
        self.forget_marker()

    def cancelled_elsewhere(self) -> None:
        """A job was cancelled that this worker does not have: the claim under way may bring it."""
        self._may_be_cancelled = self.is_claiming

    def stop(self) -> None:
        """Claim nothing any more; settle what is left."""
        self.stopping = True

    # -- what to do next

    def plan(self, now: float, room: int, pending: Pending = _NOTHING_PENDING) -> Command:
        """The command for now, with room for so many more jobs. The command counts as under way."""
        if pending.leases_to_recover > self._leases_to_recover:
            self._leases_to_recover = pending.leases_to_recover
            self.leases_unknown = True
            self.ring(now)
        # The claim goes to the server along with these outcomes, and sees the jobs that they make ready.
        if pending.since is not None and (self.keyed or pending.frees_jobs):
            self.ring(now)
        postponed_until = max(pending.postponed_until, self.retry_at)
        # Before a claim, and alone: no other outcome may wait for the transaction for which these wait.
        if now >= postponed_until and self._under_way is None:
            return self._begin(Settle(postponed=True))
        wait = self._wait_to_claim(now, room)
        if wait is None:
            return self._begin(self._claim(now, room, pending))
        if pending.since is not None:
            settle_at = self._settle_at(pending.since, for_room=wait.for_room)
            if now >= settle_at and self._under_way is None:
                return self._begin(Settle())
        # Outcomes that wait for another transaction keep a stopping dispatcher, until its deadline.
        elif self.stopping and not pending.unfinished and pending.postponed_until == math.inf:
            return Stop()
        else:
            settle_at = math.inf
        settle_at = min(settle_at, postponed_until)
        return Wait(settle_at, wait.for_room, to_settle=True) if settle_at < wait.until else wait

    def plan_rest(self, pending: Pending) -> Settle | Recover | Stop:
        """The commands that are left when the dispatcher does not run any more. Each is tried once."""
        if pending.since is not None:
            return self._begin(Settle())
        return self._begin(Recover()) if self.leases_unknown else Stop()

    def _wait_to_claim(self, now: float, room: int) -> Wait | None:
        """How long to wait before the next claim; None if it is time."""
        # Only events change these, and they ring. (Outcomes are settled nevertheless: see `plan`.)
        if self._under_way is not None or self.is_absent or self.stopping:
            return _WAIT_FOR_RING
        due = min(self.due, self._onward_until) if self.goes_onward else self.due
        if not self.may_have_jobs and now < due:
            return Wait(due)
        if now < (not_before := max(self._not_before, self.retry_at)):
            return Wait(not_before)
        return _WAIT_FOR_ROOM if room <= 0 else None

    def _claim(self, now: float, room: int, pending: Pending) -> DatabaseCommand:
        if self.leases_unknown:
            # Settled first: a job that has failed may have been leased to us again by the claim whose answer was lost.
            # As long as its failure waits here, it would be taken for the attempt on record.
            return Settle() if pending.since is not None else Recover()
        is_due = now >= self.due
        saturated = self._full_claims >= _SATURATED
        idle = (not saturated) if self.has_marker == saturated else None
        # Without its marker no sender tells it of deferred jobs: it asks, but not with every claim.
        uninformed = not self.has_marker and now >= self._find_due_at
        find_next_due = self.due_unknown or is_due or idle is not None or uninformed
        self.awaits_bulk_poll = False
        self.may_have_jobs = False
        if now >= self._onward_until or not (saturated or self.keyed):
            self._go_back()
        if find_next_due:
            # The answer will tell the next due time. A notification until then may be newer than what the claim sees.
            self.due_unknown = False
            self.due = math.inf
            self._find_due_at = now + _DUE_INTERVAL
        return self._next_request(room, promote_due=is_due, idle=idle, find_next_due=find_next_due)

    def _next_request(
        self, limit: int, *, promote_due: bool, idle: bool | None, find_next_due: bool
    ) -> ClaimRequest:
        terms = (limit, promote_due, idle, find_next_due, self._position)
        # The same objects as long as few of them alternate: to make one takes as long as all other decisions, and the
        # store keeps the statements that it has made of it.
        request = self._requests.get(terms)
        if request is None:
            if len(self._requests) == _MOST_REQUESTS:
                self._requests.clear()
            request = self._requests[terms] = attrs.evolve(
                self._request,
                limit=limit,
                promote_due=promote_due,
                idle=idle,
                find_next_due=find_next_due,
                after=self._position,
            )
        return request

    def _go_back(self) -> None:
        """Let the next claim begin at the beginning."""
        self._onward_until, self._position = -math.inf, None

    def _begin(self, command: _S) -> _S:
        self._under_way = command
        if isinstance(command, Recover):
            self.leases_unknown = False  # unless it fails, or another lease is given up in the meantime
        return command

    def _settle_at(self, since: float, *, for_room: bool) -> float:
        """When to settle without a claim: now, if there is nothing to claim. If a claim waits for nothing but room in
        the slots, a moment later: until then the outcomes can go to the server with that claim.
        """
        if not for_room:
            return self.retry_at
        return max(self.retry_at, max(since, self._answered_at) + _SETTLE_DELAY)

    # -- what came of it

    def claimed(
        self, count: int, next_due: float | None, now: float, *, keyed: bool = False, took: float = 0.0
    ) -> bool:
        """The claim has brought so many jobs, and took so long; in ``next_due`` seconds a deferred one is due. Return
        whether some of the jobs may have been cancelled already.
        """
        claim = self._under_way
        assert isinstance(claim, ClaimRequest)
        self.answered(now)
        self.keyed = keyed
        if claim.idle is not None:
            self.has_marker = claim.idle
        is_full = count >= claim.limit
        if claim.after is None:
            is_slow = took > _SLOW_CLAIM + count * _SLOW_JOB
            # Where jobs have no keys, a claim that is not full has left none behind its last one.
            goes_onward = is_slow and count > 0 and (is_full or keyed)
            self._onward_until = now + _ONWARD * took if goes_onward else -math.inf
        goes_back = claim.after is not None and not (is_full or keyed)
        if goes_back:
            self._go_back()
        else:
            self._full_claims = self._full_claims + 1 if is_full else 0
        # Without its marker it must not wait: it claims once more, and sets the marker first. (A queue without keys
        # whose claims begin after a position is saturated, and has none.)
        self.may_have_jobs = self.may_have_jobs or is_full or not self.has_marker
        if next_due is not None:
            self.due = min(self.due, now + next_due)
        # A claim that brings jobs is not fruitless: it earns as many free ones as it has brought jobs.
        self._free_claims = min(_FREE_CLAIMS, self._free_claims + count)
        self._not_before = -math.inf if count or goes_back else self._after_fruitless_claim(now)
        may_be_cancelled, self._may_be_cancelled = self._may_be_cancelled, False
        return may_be_cancelled

    def claimed_until(self, position: Position | None) -> None:
        """Where the last job of the claim was, if it has brought one. Only needed where the machine `goes_onward`."""
        if position is None:
            return
        before, self._position = self._position, position
        if before is not None:
            # A claim of a keyed queue takes first jobs of backlogs, wherever they are. If it is not full, it has left
            # nothing before the position that was reached already.
            is_behind = not self._full_claims and position.is_before(before)
            left_seq = max(before.left_seq, position.left_seq)
            self._position = attrs.evolve(before if is_behind else position, left_seq=left_seq)

    def claim_unknown(self, now: float) -> None:
        """The answer to a claim is unknown: the database rejected an outcome that was sent with it, and the outcomes
        were settled again without the claim. It may have leased jobs, so they are recovered before the next claim.
        """
        self.answered(now)
        self.leases_unknown = True
        self._go_back()
        self.forget_marker()
        self._not_before = self._after_fruitless_claim(now)

    def answered(self, now: float) -> None:
        """The database has answered."""
        self._under_way = None
        self._works(now)

    def recovered(self) -> None:
        """The unknown leases are recovered. A claim may fail nevertheless, so the delay after failures is kept."""
        self._under_way = None

    def _works(self, now: float) -> None:
        self._failures = 0
        self.retry_at = -math.inf
        self._answered_at = now

    def failed(self, command: DatabaseCommand, now: float, chance: float) -> None:
        """The database did not answer, or its answer could not be used. ``chance`` (0 to 1) spreads the next statements
        of many dispatchers.
        """
        if isinstance(command, ClaimRequest | Recover):
            self.leases_unknown = True
        self._under_way = None
        self._go_back()
        self.forget_marker()
        self.due = -math.inf
        delay: float = min(_FIRST_DELAY * 2.0 ** min(self._failures, 10), _LONGEST_DELAY)
        self._failures += 1
        self.retry_at = now + delay * (0.5 + chance / 2)

    def _after_fruitless_claim(self, now: float) -> float:
        """When the next claim may be sent: a few at once, then one each interval. Notifications can be forged; but they
        may as well be for jobs that another worker has claimed first, or that the last claim has brought already.
        """
        earned = (now - self._fruitless_at) / _CLAIM_INTERVAL
        self._free_claims = min(_FREE_CLAIMS, self._free_claims + earned) - 1
        self._fruitless_at = now
        return now if self._free_claims >= 1 else now + _CLAIM_INTERVAL
