"""When does a listener prove its ears, look itself, or try to connect again?"""

import math

import attrs

__all__ = ["ListenMachine"]

_PING_AFTER = 5.0  # seconds of silence after which the connection has to prove itself
_SAFETY_POLL_INTERVAL = 20.0  # seconds between looks, in case a word got lost
_POLLING_MODE_INTERVAL = 2.0  # the same, where no words come through
_PROBE_TIMEOUT = 3.0  # seconds in which our own word has to come back
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0  # seconds between attempts to connect


@attrs.define
class ListenMachine:
    """One listener: its next ping, its next look, and how long to wait after a failure."""

    polling: bool = False
    """Words do not come through, although the connection is good: a pooler is in between."""
    _received_at: float = -math.inf
    _poll_at: float = -math.inf
    _probed_at: float = math.inf
    _failures: int = 0

    def connected(self, now: float) -> None:
        """LISTEN is in force: look at once, for what was said before."""
        self._received_at = now
        self._poll_at = now
        self._probed_at = math.inf

    def received(self, now: float) -> None:
        """The server said something."""
        self._received_at = now

    def polled(self, now: float) -> None:
        """A look was made, and our own word sent out."""
        self._received_at = now
        self._failures = 0
        self._poll_at = now + (_POLLING_MODE_INTERVAL if self.polling else _SAFETY_POLL_INTERVAL)
        self._probed_at = math.inf if self.polling else min(self._probed_at, now)

    def received_probe(self) -> None:
        """Our own word came back."""
        self._probed_at = math.inf
        self.polling = False

    def poll_now(self) -> None:
        """Look as soon as possible."""
        self._poll_at = -math.inf

    def is_poll_due(self, now: float) -> bool:
        """Time to look."""
        return now >= self._poll_at

    def is_ping_due(self, now: float) -> bool:
        """Time to prove the connection."""
        return now >= self._received_at + _PING_AFTER

    def is_probe_overdue(self, now: float) -> bool:
        """Our own word should have come back by now."""
        return now >= self._probed_at + _PROBE_TIMEOUT

    def next(self) -> float:
        """When something is due."""
        return min(self._poll_at, self._received_at + _PING_AFTER, self._probed_at + _PROBE_TIMEOUT)

    def failed(self, chance: float) -> float:
        """The connection is lost: seconds until the next attempt, spread by ``chance`` (0 to 1)."""
        delay: float = min(_FIRST_DELAY * 2.0 ** min(self._failures, 10), _LONGEST_DELAY)
        self._failures += 1
        return delay * (0.5 + chance / 2)
