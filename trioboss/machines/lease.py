"""Decides what the lease of a running job needs next: a renewal, or the end of the job.

actors/attempts.py carries it out: `Heartbeat._act` chooses the cancellation when no renewal was confirmed in time. If
the worker itself is stuck, rescue_leases.sql ends the lease, in the leader.
"""

import enum
import math

import attrs

__all__ = ["STUCK_AFTER", "Due", "LeaseMachine"]

_BEATS = 4  # renewals in the time a heartbeat lasts: two in a row may be lost
_EARLY = 0.1  # of the heartbeat: a job is cancelled this much before another worker may take it

STUCK_AFTER = 1.0
"""Seconds that a cancelled handler has to end. After that its attempt is settled without it, so that a handler that
ignores its cancellation keeps its job from no retry; its slot stays occupied until it ends.
"""


class Due(enum.Enum):
    """The need of a lease."""

    BEAT = enum.auto()
    """A renewal."""
    EXPIRED = enum.auto()
    """The job took too long: cancel it."""
    UNCONFIRMED = enum.auto()
    """No renewal was confirmed in time: cancel the job before another worker may take it."""
    STUCK = enum.auto()
    """The handler was cancelled and does not end: settle the attempt without it."""


@attrs.define
class LeaseMachine:
    """One lease. Times are those of this process.

    A lease counts from when its claim was sent. The database counts from when it received the claim, so the lease ends
    here first.
    """

    claim_sent_at: float
    expire_in: float
    heartbeat: float | None = None
    auto_heartbeat: bool = True

    _confirmed_at: float = attrs.field(init=False)
    _next_beat: float = attrs.field(init=False)
    _cancelled_at: float = attrs.field(default=math.inf, init=False)

    def __attrs_post_init__(self) -> None:
        self._confirmed_at = self.claim_sent_at
        self._next_beat = math.inf
        if self.heartbeat is not None and self.auto_heartbeat:
            self._next_beat = self.claim_sent_at + self.heartbeat / _BEATS

    def next(self, *, held: bool = True) -> tuple[float, Due]:
        """The next thing that is due, and when. After the handler has settled the job itself, the lease is not held
        any more, and only the handler's time is limited.
        """
        if self._cancelled_at < math.inf:
            # A cancelled handler gets no further renewals: whatever it does, its attempt is settled or lost.
            return self._cancelled_at + STUCK_AFTER, Due.STUCK
        expiry = (self.claim_sent_at + self.expire_in, Due.EXPIRED)
        if not held:
            return expiry
        candidates = [expiry, (self._next_beat, Due.BEAT)]
        if self.heartbeat is not None:
            candidates.append((self._confirmed_at + self.heartbeat * (1 - _EARLY), Due.UNCONFIRMED))
        return min(candidates, key=lambda candidate: candidate[0])

    def beat_sent(self, now: float) -> None:
        """A renewal is under way."""
        assert self.heartbeat is not None
        self._next_beat = now + self.heartbeat / _BEATS

    def beat_confirmed(self, sent_at: float) -> None:
        """A renewal that was sent at that time has been confirmed. The lease counts from when it was sent."""
        # Answers may come in another order than the renewals were sent.
        self._confirmed_at = max(self._confirmed_at, sent_at)

    def extended(self, expire_in: float) -> None:
        """The database has given the lease this length."""
        self.expire_in = expire_in

    def cancelled(self, now: float) -> None:
        """The handler is cancelled."""
        # A second cancellation gives the handler no more time.
        self._cancelled_at = min(self._cancelled_at, now)
