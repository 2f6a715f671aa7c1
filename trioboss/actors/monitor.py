"""Counts the jobs of each queue by state at intervals, for readers of such events."""

from collections.abc import Mapping

import attrs
import trio

from trioboss.actors.ports import MonitorPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, MonitorStates
from trioboss.model.states import JobState

__all__ = ["Monitor"]


@attrs.define(eq=False)
class Monitor:
    """Reports MonitorStates at intervals. Only while somebody reads them: counting reads all live jobs."""

    _port: MonitorPort
    _reporter: Reporter
    _interval: float

    async def run(self) -> None:
        """Count and report."""
        while True:
            # Not even a timer as long as nobody reads: an idle boss does not wake up.
            await self._reporter.wait_demanded()
            try:
                self._reporter.report(_with_sums(await self._port.count_states()))
            except DatabaseUnavailable as error:
                self._reporter.report(ErrorEvent("monitor", str(error)))
            await trio.sleep(self._interval)


def _with_sums(queues: Mapping[str, Mapping[str, int]]) -> MonitorStates:
    """The event for these counts: every state has a number, and there are sums."""
    counts = {name: _summed(states) for name, states in sorted(queues.items())}
    totals = {state: sum(states[state] for states in counts.values()) for state in (*JobState, "all")}
    return MonitorStates(counts, {str(state): count for state, count in totals.items()})


def _summed(states: Mapping[str, int]) -> dict[str, int]:
    return {str(state): states.get(state, 0) for state in JobState} | {"all": sum(states.values())}
