"""Keeps for operators how late the event loop was: for how long a handler has blocked it."""

import attrs
import trio

from trioboss.actors.actor import Doorbell
from trioboss.actors.ports import MonitorPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent

__all__ = ["LagMonitor", "Lags"]

_INTERVAL = (
    5.0  # seconds for which lags are collected: one statement at most in this time, and none without lags
)
_NOTABLE = 0.1  # seconds: a shorter lag is that of a busy machine, and of no interest to operators


@attrs.define(eq=False)
class Lags:
    """The longest time by which a timer was late since the monitor has written one."""

    _longest: float = attrs.field(default=0.0, init=False)
    _bell: Doorbell = attrs.field(factory=Doorbell, init=False)

    def add(self, seconds: float) -> None:
        """A timer was late by so much, because no task could run in between."""
        if seconds >= _NOTABLE:
            self._longest = max(self._longest, seconds)
            self._bell.ring()

    async def wait(self) -> None:
        """Wait until there is one that operators should know."""
        await self._bell.wait()

    def take(self) -> float:
        """The longest one, which is forgotten here."""
        longest, self._longest = self._longest, 0.0
        return longest


@attrs.define(eq=False)
class LagMonitor:
    """Writes the longest lag of the last seconds, if there was any."""

    _port: MonitorPort
    _reporter: Reporter
    _lags: Lags

    async def run(self) -> None:
        """Collect lags, and write."""
        while True:
            await self._lags.wait()
            await trio.sleep(_INTERVAL)  # one row for a storm of reports: operators ask for the longest time
            if (longest := self._lags.take()) == 0:
                continue  # it was rung again, for a lag that was already written
            try:
                await self._port.keep_lag(longest)
            except DatabaseUnavailable as error:
                self._reporter.report(ErrorEvent("loop lag", str(error)))
