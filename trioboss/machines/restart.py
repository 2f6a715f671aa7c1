"""Decides whether an actor that crashed is restarted."""

from collections import deque

import attrs

__all__ = ["RestartMachine"]


@attrs.define
class RestartMachine:
    """Restart intensity as in OTP: at most ``limit`` crashes within ``window`` seconds."""

    limit: int = 5
    window: float = 60.0
    _crashes: deque[float] = attrs.field(factory=deque, init=False)

    def crashed(self, now: float) -> bool:
        """The actor has crashed: return whether to restart it."""
        self._crashes.append(now)
        # Never empty: this crash is within the window.
        while self._crashes[0] <= now - self.window:
            self._crashes.popleft()
        return len(self._crashes) <= self.limit
