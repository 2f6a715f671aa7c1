"""Decides when maintenance rescues leases, finds warnings, takes samples, and prunes; and when a boss notifies it of
jobs.
"""

import math

import attrs

__all__ = ["BUSY", "BusyNotifier", "MaintenanceMachine"]

BUSY = "*busy"
"""The notification that some boss has jobs."""

# Seconds between rounds while jobs are active. A killed process is noted as gone in the next round, and its leases end
# in the first round after the grace of 5 s: 8 of the 10 s that P7 of GUARANTEES.md promises.
_BUSY_INTERVAL = 1.5
_FIND_WARNINGS_INTERVAL = 60.0  # seconds between rounds that also run find_warnings.sql
_SAMPLE_INTERVAL = 15.0  # seconds between samples of the queues, while jobs are active
_PRUNE_WITHIN = 15.0  # seconds from the election: pruning reads much, and leases are more urgent
_PRUNE_RETRY = 60.0  # seconds until a failed pruning is repeated
_BUSY_FOR = 15.0  # seconds that a boss counts as busy after its notification
# Seconds between these notifications: fewer than _BUSY_FOR, so that a boss with jobs always counts as busy.
_NOTIFY_BUSY_INTERVAL = 10.0


@attrs.define(eq=False)
class BusyNotifier:
    """Decides when a boss notifies the leader that it has jobs, whose leases the leader has to rescue if the boss dies.
    There is one for all dispatchers and fetches of a boss: a claim is too frequent to notify each time.
    """

    due_at: float = -math.inf
    """When the next notification is due, if there are jobs."""

    def due_notification(self, now: float) -> str | None:
        """The notification to send, because there are jobs; None if the last one is recent enough."""
        if now < self.due_at:
            return None
        self.due_at = now + _NOTIFY_BUSY_INTERVAL
        return BUSY


@attrs.define
class MaintenanceMachine:
    """The pace of one boss's maintenance."""

    idle_interval: float = 60.0
    """Seconds between rounds while no jobs are active."""
    prune_interval: float = 3600.0
    _busy_until: float = -math.inf
    _round_at: float = -math.inf
    _warnings_at: float = -math.inf
    _sample_at: float = -math.inf
    _prune_at: float = math.inf
    _first_expiry: float = math.inf

    def notified_of_work(self, now: float) -> None:
        """Some worker has jobs."""
        self._busy_until = max(self._busy_until, now + _BUSY_FOR)

    def elected(self, now: float, chance: float) -> None:
        """This boss leads from now on. There may have been no leader for a while, so a round is due. ``chance`` (0 to
        1) chooses when the first pruning is due: where bosses live only for seconds, some of them prune soon enough.
        """
        self._round_at = -math.inf
        # Once only: a leader that is elected again and again must not prune each time.
        if self._prune_at == math.inf:
            self._prune_at = now + _PRUNE_WITHIN * chance

    def next(self, leads: bool) -> float:
        """When the next round is due. A boss that does not lead has rounds only to find out whether a leader is
        missing.
        """
        # Also without leadership: while there are jobs, a missing leader has to be found soon.
        if self._round_at < self._busy_until:
            return self._round_at + _BUSY_INTERVAL
        if not leads:
            return math.inf
        # Not at once, however urgent: a lease that cannot be ended would make rounds without a pause.
        urgent = min(self._first_expiry, self._prune_at)
        return min(self._round_at + self.idle_interval, max(urgent, self._round_at + _BUSY_INTERVAL))

    def starts_round(self, now: float) -> None:
        """A round begins."""
        self._round_at = now

    def warnings_due(self, now: float) -> bool:
        """Whether the round of a leader also finds warnings. That then counts as done."""
        due = now >= self._warnings_at + _FIND_WARNINGS_INTERVAL
        if due:
            self._warnings_at = now
        return due

    def starts_sampling(self, now: float) -> bool:
        """Whether it is time to take a sample of the queues. It then counts as done."""
        due = now >= self._sample_at
        if due:
            self._sample_at = now + _SAMPLE_INTERVAL
        return due

    def finished_round(self, now: float, active: int, next_expiry: float | None) -> None:
        """The round has found so many active jobs, and the first lease ends in ``next_expiry`` seconds."""
        # As a notification of work: jobs that run for hours claim nothing, so no boss notifies of them.
        if active:
            self.notified_of_work(now)
        self._first_expiry = math.inf if next_expiry is None else now + next_expiry

    def starts_pruning(self, now: float) -> bool:
        """Whether it is time to prune. It then counts as done."""
        due = now >= self._prune_at
        if due:
            self._prune_at = now + self.prune_interval
        return due

    def failed_to_prune(self, now: float) -> None:
        """Pruning has failed."""
        self._prune_at = now + _PRUNE_RETRY
