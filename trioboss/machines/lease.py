"""What does a running job's lease need next?"""

import enum
import math

import attrs

__all__ = ["Due", "LeaseMachine"]

_BEATS = 4  # renewals in the time a heartbeat lasts: two in a row may get lost
_MARGIN = 0.1  # of the heartbeat: a job is stopped this much before others may take it
_STUCK_AFTER = 1.0  # seconds that a cancelled handler has to end


class Due(enum.Enum):
    """What is due on a lease."""

    BEAT = enum.auto()
    """Renew it."""
    EXPIRED = enum.auto()
    """The job took too long: cancel it."""
    UNCONFIRMED = enum.auto()
    """No renewal was confirmed in time: cancel the job before somebody else may take it."""
    STUCK = enum.auto()
    """The handler was cancelled and does not end: settle the attempt without it."""


@attrs.define
class LeaseMachine:
    """One lease. Times are this process's; the lease began when the claim was sent, so it ends here first."""

    began: float
    expire_in: float
    heartbeat: float | None = None
    beats: bool = True
    """Renew automatically."""

    _confirmed: float = attrs.field(init=False)
    _next_beat: float = attrs.field(init=False)
    _cancelled_at: float = attrs.field(default=math.inf, init=False)
    _settled: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._confirmed = self.began
        self._next_beat = self.began + self.heartbeat / _BEATS if self.heartbeat and self.beats else math.inf

    def next(self, *, held: bool = True) -> tuple[float, Due]:
        """What is due next, and when. If it is not held any more, because the handler has settled the job and goes on,
        only the handler's time still runs.
        """
        if self._cancelled_at < math.inf:
            return (math.inf if self._settled else self._cancelled_at + _STUCK_AFTER, Due.STUCK)
        expiry = (self.began + self.expire_in, Due.EXPIRED)
        if not held:
            return expiry
        candidates = [expiry, (self._next_beat, Due.BEAT)]
        if self.heartbeat is not None:
            candidates.append((self._confirmed + self.heartbeat * (1 - _MARGIN), Due.UNCONFIRMED))
        return min(candidates, key=lambda candidate: candidate[0])

    def beat_sent(self, now: float) -> None:
        """A renewal is on its way."""
        assert self.heartbeat is not None
        self._next_beat = now + self.heartbeat / _BEATS

    def beat_confirmed(self, sent_at: float) -> None:
        """A renewal that was sent at that time has been confirmed."""
        self._confirmed = max(self._confirmed, sent_at)

    def extended(self, expire_in: float) -> None:
        """The database has given the lease this length."""
        self.expire_in = expire_in

    def cancelled(self, now: float) -> None:
        """The handler has been told to end."""
        self._cancelled_at = min(self._cancelled_at, now)

    def settled(self) -> None:
        """The attempt is settled; only the handler still has to end."""
        self._settled = True
