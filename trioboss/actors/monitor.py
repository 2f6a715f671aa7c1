"""Counts the jobs of each queue by state at intervals, for readers of such events."""

import attrs
import trio

from trioboss.actors.ports import MonitorPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, MonitorStates

__all__ = ["Monitor"]


@attrs.define(eq=False)
class Monitor:
    """Reports MonitorStates at intervals. Only while somebody reads them: counting reads whole tables."""

    _port: MonitorPort
    _reporter: Reporter
    _interval: float

    async def run(self) -> None:
        """Count and report."""
        while True:
            await self._reporter.wait_wanted()
            try:
                self._reporter.report(MonitorStates(await self._port.count_states()))
            except DatabaseUnavailable as error:
                self._reporter.report(ErrorEvent("monitor", str(error)))
            await trio.sleep(self._interval)
