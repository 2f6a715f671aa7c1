"""Keeps for operators how long handlers have blocked the event loop."""

from collections.abc import Iterator
from contextlib import suppress

import attrs
import trio

from trioboss.actors.ports import MonitorPort
from trioboss.actors.reporter import Reporter
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, Event, LoopBlocked

__all__ = ["LagMonitor"]

_INTERVAL = 5.0  # seconds for which reports of a blocked event loop are collected


@attrs.define(eq=False)
class LagMonitor:
    """Writes the longest time of the last seconds, if the event loop was blocked at all."""

    _port: MonitorPort
    _reporter: Reporter

    async def run(self) -> None:
        """Collect the events, and write."""
        async with self._reporter.subscribe(LoopBlocked) as events:
            async for event in events:
                # One row for a storm of reports: what operators ask for is the longest time.
                await trio.sleep(_INTERVAL)
                blocked = [each for each in (event, *_take_all(events)) if isinstance(each, LoopBlocked)]
                try:
                    await self._port.keep_lag(max(each.seconds for each in blocked))
                except DatabaseUnavailable as error:
                    self._reporter.report(ErrorEvent("loop lag", str(error)))


def _take_all(channel: trio.MemoryReceiveChannel[Event]) -> Iterator[Event]:
    """The events that are in a channel now."""
    with suppress(trio.WouldBlock):
        while True:
            yield channel.receive_nowait()
