"""How closely does maintenance have to watch?"""

import math

import attrs

__all__ = ["MaintenanceMachine"]

_BUSY_INTERVAL = 1.5  # seconds between rounds while jobs are active
_IDLE_INTERVAL = 60.0  # the same, while none are
_FULL_INTERVAL = 60.0  # seconds between rounds that look for warnings, too
_PRUNE_INTERVAL = 3600.0
_PRUNE_WITHIN = 15.0  # seconds from the election: retention reads much, and other things are more urgent
_PRUNE_RETRY = 60.0  # seconds until retention is tried again
_BUSY_FOR = 15.0  # seconds that somebody who said so counts as busy


@attrs.define
class MaintenanceMachine:
    """The pace of one boss's maintenance."""

    _busy_until: float = -math.inf
    _round_at: float = -math.inf
    _full_at: float = -math.inf
    _prune_at: float = math.inf
    _first_expiry: float = math.inf

    def notified_of_work(self, now: float) -> None:
        """Some worker has jobs."""
        self._busy_until = max(self._busy_until, now + _BUSY_FOR)

    def elected(self, now: float, chance: float) -> None:
        """This boss leads from now on: nobody may have watched for a while. ``chance`` (0 to 1) says when it is tidied:
        also where no boss lives for long, one will have its turn.
        """
        self._round_at = -math.inf
        if self._prune_at == math.inf:
            self._prune_at = now + _PRUNE_WITHIN * chance

    def next(self, leads: bool) -> float:
        """When the next round is due. A boss that does not lead has one only to see whether somebody should."""
        if self._round_at < self._busy_until:
            return self._round_at + _BUSY_INTERVAL
        if not leads:
            return math.inf
        urgent = min(self._first_expiry, self._prune_at)
        return min(self._round_at + _IDLE_INTERVAL, max(urgent, self._round_at + _BUSY_INTERVAL))

    def starts_round(self, now: float) -> None:
        """A round begins."""
        self._round_at = now

    def wants_warnings(self, now: float) -> bool:
        """True if the round of a leader is to look for warnings, too; it counts as done."""
        due = now >= self._full_at + _FULL_INTERVAL
        if due:
            self._full_at = now
        return due

    def finished_round(self, now: float, active: int, next_expiry: float | None) -> None:
        """The round found so many active jobs, and the first lease ends in so many seconds."""
        if active:
            self.notified_of_work(now)
        self._first_expiry = math.inf if next_expiry is None else now + next_expiry

    def starts_pruning(self, now: float) -> bool:
        """True if it is time for retention; it counts as done."""
        due = now >= self._prune_at
        if due:
            self._prune_at = now + _PRUNE_INTERVAL
        return due

    def failed_to_prune(self, now: float) -> None:
        """Retention did not come to its end."""
        self._prune_at = now + _PRUNE_RETRY
