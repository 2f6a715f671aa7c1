"""Decides when the listener pings, polls, or connects again; actors/listener.py carries it out.

Notifications can stop without an error. The listener checks for that in three ways:

- A poll, on connect and then every 20 s, also sends a *probe*: a notification to the listener itself. If it does not
  arrive within 3 s, the connection is broken, and the listener connects again. If no probe ever arrived on the first
  connection, LISTEN has no effect there, as behind a transaction pooler: *polling mode* begins, with a poll every 2 s.
- After 5 s in which the server has sent nothing, the listener pings it. The server has 4 s to answer a ping or a poll
  (runtime/adapter.py).
- If a poll could not send its probe, because the server's queue of notifications is nearly full, polling mode begins as
  well; it ends when a probe arrives again.

A listener that is not connected tries again after at most 0.1 s, then after twice that time, up to 5 s, or up to 0.5 s
while no server runs. On connect it listens, takes the lock of its presence, and polls.

Other bosses may take the jobs of this one ``presence_grace`` after it has lost the connection, or behind a pooler twice
``presence_grace`` after its last poll. `Listener._guard_presence` gives up all jobs of the boss one second before that
time. An attempt to connect that finds no running server begins the grace anew, because no other boss can be connected
then; not behind a pooler, whose answers prove nothing about the server.
"""

import math

import attrs

__all__ = ["POLLING_INTERVAL", "PROBE_TIMEOUT", "ListenMachine", "OutageReports"]

POLLING_INTERVAL = 2.0
"""Seconds between polls in polling mode."""
PROBE_TIMEOUT = 3.0
"""Seconds in which the notification that a poll sends has to arrive at the listener itself."""

_PING_AFTER = 5.0  # seconds after which the connection is checked, if the server has sent nothing
_SAFETY_INTERVAL = 20.0  # seconds between polls, in case a notification was lost
_FIRST_DELAY, _LONGEST_DELAY = 0.1, 5.0  # seconds between attempts to connect
_LONGEST_DELAY_WHILE_DOWN = 0.5
_FIRST_REPEAT, _LONGEST_REPEAT = 5.0, 60.0  # seconds between two reports of one outage
_MOST_REASONS = 5  # reports of one outage for another reason


@attrs.define
class ListenMachine:
    """One listener: its next ping, its next poll, and how long to wait after a failure."""

    polling: bool = False
    """Polling mode: the connection works, but notifications do not arrive, because a pooler is in between, or cannot be
    sent.
    """
    _received_at: float = -math.inf
    _poll_at: float = -math.inf
    _probed_at: float = math.inf
    _failures: int = 0
    _connections: int = 0
    _has_received_probe: bool = False

    def connected(self, now: float) -> None:
        """LISTEN is in force: poll at once, for what was sent before."""
        self._connections += 1
        self._received_at = now
        self._poll_at = now
        self._probed_at = math.inf

    def received(self, now: float) -> None:
        """The server has sent something."""
        self._received_at = now

    def polled(self, now: float, *, notified: bool = True) -> None:
        """A poll was answered. ``notified``: it has sent a probe. If it could not, no session can notify: polling mode
        begins, and ends when a probe arrives again.
        """
        self.polling = self.polling or not notified
        self._received_at = now
        self._failures = 0
        self._poll_at = now + (POLLING_INTERVAL if self.polling else _SAFETY_INTERVAL)
        # The first probe that is missing counts: a later one must not put the timeout off.
        self._probed_at = math.inf if self.polling else min(self._probed_at, now)

    def received_probe(self) -> None:
        """The probe has arrived."""
        self._has_received_probe = True
        self._probed_at = math.inf
        self.polling = False

    def missed_probe(self) -> bool:
        """The probe is overdue: whether polling mode begins. If not, the connection is broken."""
        if self._connections > 1 or self._has_received_probe:
            return False
        self.polling = True
        self.poll_now()
        return True

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
        runs there. The next attempt then follows sooner: it costs little, and as long as no server runs, no other boss
        can take the jobs of this one.
        """
        longest = _LONGEST_DELAY_WHILE_DOWN if down else _LONGEST_DELAY
        delay: float = min(_FIRST_DELAY * 2.0 ** min(self._failures, 10), longest)
        self._failures += 1
        return delay * (0.5 + chance / 2)


@attrs.define
class OutageReports:
    """Which failures to connect are reported: the first of an outage, those for another reason, and then fewer and
    fewer. An attempt every 0.4 s would fill a log.
    """

    _since: float | None = None
    _repeat_at: float = math.inf
    _pause: float = _FIRST_REPEAT
    _reasons: set[str] = attrs.field(factory=set)

    def failed(self, now: float, reason: str) -> float | None:
        """There is no connection: for how many seconds, if that is to be reported."""
        if self._since is None:
            self._since = now
        if now >= self._repeat_at:
            self._pause = min(2 * self._pause, _LONGEST_REPEAT)
        elif reason in self._reasons or len(self._reasons) == _MOST_REASONS:
            return None
        self._reasons.add(reason)
        self._repeat_at = now + self._pause
        return now - self._since

    def ended(self, now: float) -> float | None:
        """There is a connection: after how many seconds without one, if there was an outage."""
        since = self._since
        self._since, self._repeat_at, self._pause = None, math.inf, _FIRST_REPEAT
        self._reasons.clear()
        return None if since is None else now - since
