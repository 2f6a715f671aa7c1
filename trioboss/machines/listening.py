"""Decides when the listener pings, polls, or connects again."""

import math

import attrs

__all__ = ["POLLING_INTERVAL", "PROBE_TIMEOUT", "ListenMachine"]

POLLING_INTERVAL = 2.0
"""Seconds between polls in polling mode."""
PROBE_TIMEOUT = 3.0
"""Seconds in which the notification that a poll sends has to arrive at the listener itself."""

_PING_AFTER = 5.0  # seconds without a notification after which the connection is checked
_SAFETY_INTERVAL = 20.0  # seconds between polls, in case a notification was lost
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0  # seconds between attempts to connect
_LONGEST_DELAY_WHILE_DOWN = 0.5


@attrs.define
class ListenMachine:
    """One listener: its next ping, its next poll, and how long to wait after a failure."""

    polling: bool = False
    """Polling mode: notifications do not arrive although the connection works, because a pooler is in between."""
    _received_at: float = -math.inf
    _poll_at: float = -math.inf
    _probed_at: float = math.inf
    _failures: int = 0

    def connected(self, now: float) -> None:
        """LISTEN is in force: poll at once, for what was sent before."""
        self._received_at = now
        self._poll_at = now
        self._probed_at = math.inf

    def received(self, now: float) -> None:
        """The server has sent something."""
        self._received_at = now

    def polled(self, now: float, *, notified: bool = True) -> None:
        """A poll was answered, and has sent a probe, if it could. If not, nobody can notify: polling mode begins, and
        ends when a probe arrives again.
        """
        self.polling = self.polling or not notified
        self._received_at = now
        self._failures = 0
        self._poll_at = now + (POLLING_INTERVAL if self.polling else _SAFETY_INTERVAL)
        # The first probe that is missing counts: a later one must not put the timeout off.
        self._probed_at = math.inf if self.polling else min(self._probed_at, now)

    def received_probe(self) -> None:
        """The probe has arrived."""
        self._probed_at = math.inf
        self.polling = False

    def poll_now(self) -> None:
        """Poll as soon as possible."""
        self._poll_at = -math.inf

    def is_poll_due(self, now: float) -> bool:
        """Whether it is time to poll."""
        return now >= self._poll_at

    def is_ping_due(self, now: float) -> bool:
        """Whether it is time to check the connection."""
        return now >= self._received_at + _PING_AFTER

    def is_probe_overdue(self, now: float) -> bool:
        """Whether the probe should have arrived by now."""
        return now >= self._probed_at + PROBE_TIMEOUT

    def next(self) -> float:
        """When something is due."""
        return min(self._poll_at, self._received_at + _PING_AFTER, self._probed_at + PROBE_TIMEOUT)

    def failed(self, chance: float, *, down: bool = False) -> float:
        """The connection is lost: seconds until the next attempt, spread by ``chance`` (0 to 1). ``down``: no server
        runs there. Such an attempt costs little, and shows that nobody takes our jobs.
        """
        longest = _LONGEST_DELAY_WHILE_DOWN if down else _LONGEST_DELAY
        delay: float = min(_FIRST_DELAY * 2.0 ** min(self._failures, 10), longest)
        self._failures += 1
        return delay * (0.5 + chance / 2)
