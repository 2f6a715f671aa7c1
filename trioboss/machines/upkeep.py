"""How closely does upkeep have to watch?"""

import math

import attrs

__all__ = ["UpkeepMachine"]

_CLOSELY = 1.5  # seconds between rounds while jobs are active
_AT_REST = 60.0  # the same, while none are
_FULL_INTERVAL = 60.0  # seconds between rounds that look for warnings, too
_TIDY_INTERVAL = 3600.0
_BUSY_FOR = 15.0  # seconds that somebody who said so counts as busy


@attrs.define
class UpkeepMachine:
    """The pace of one boss's upkeep."""

    _busy_until: float = -math.inf
    _watched_at: float = -math.inf
    _full_at: float = -math.inf
    _tidied_at: float = -math.inf
    _first_expiry: float = math.inf

    def heard_of_work(self, now: float) -> None:
        """Some worker has jobs."""
        self._busy_until = max(self._busy_until, now + _BUSY_FOR)

    def next(self, leads: bool) -> float:
        """When the next round is due. A boss that does not lead has one only to see whether somebody should."""
        if self._watched_at < self._busy_until:
            return self._watched_at + _CLOSELY
        if not leads:
            return math.inf
        return min(self._watched_at + _AT_REST, max(self._first_expiry, self._watched_at + _CLOSELY))

    def starts_round(self, now: float) -> bool:
        """A round begins; True if it is to be a full one."""
        self._watched_at = now
        full = now >= self._full_at + _FULL_INTERVAL
        if full:
            self._full_at = now
        return full

    def watched(self, now: float, active: int, next_expiry: float | None) -> None:
        """The round found so many active jobs, and the first lease ends in so many seconds."""
        if active:
            self.heard_of_work(now)
        self._first_expiry = math.inf if next_expiry is None else now + next_expiry

    def starts_tidying(self, now: float) -> bool:
        """True if it is time for retention; it counts as done."""
        due = now >= self._tidied_at + _TIDY_INTERVAL
        if due:
            self._tidied_at = now
        return due
