"""The stream of events: to whoever subscribed, and to the log."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import attrs
import trio

from trioboss import events
from trioboss.events import Event

__all__ = ["Reporter"]

_BUFFER = 10_000  # events a slow subscriber may be behind before it loses some

_LEVELS: Final[dict[type[Event], int]] = {
    events.JobStarted: logging.DEBUG,
    events.JobCompleted: logging.INFO,
    events.JobFailed: logging.WARNING,
    events.JobReleased: logging.INFO,
    events.LeaseLostEvent: logging.WARNING,
    events.JobStuck: logging.WARNING,
    events.JobsRecovered: logging.WARNING,
    events.QueueWarning: logging.WARNING,
    events.ListenerUp: logging.INFO,
    events.ListenerDown: logging.WARNING,
    events.LeaderChanged: logging.INFO,
    events.LoopBlocked: logging.WARNING,
    events.ActorRestarted: logging.ERROR,
    events.ErrorEvent: logging.ERROR,
}


_COSTLY = (events.Wip, events.MonitorStates)  # take a timer, which a boss at rest does without


@attrs.define(eq=False)
class _Subscriber:
    channel: trio.MemorySendChannel[Event]
    kinds: tuple[type[Event], ...]

    def wants(self, kind: type[Event]) -> bool:
        """Whether it asked for that; who named no kind wants all."""
        return not self.kinds or kind in self.kinds


@attrs.define(eq=False)
class Reporter:
    """Takes events from the actors. Nobody waits for anybody here: a subscriber that lags loses events."""

    logger: logging.Logger = attrs.field(factory=lambda: logging.getLogger("trioboss"))
    _subscribers: list[_Subscriber] = attrs.field(factory=list, init=False)
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def wait_wanted(self) -> None:
        """Until somebody subscribes to what is found out only for them: work in progress, and counts."""
        await self._wanted.wait()

    def wants(self, kind: type[Event]) -> bool:
        """Whether anybody would see an event of that kind: if not, it need not be made."""
        if self._subscribers and any(each.wants(kind) for each in self._subscribers):
            return True
        return self.logger.isEnabledFor(_LEVELS.get(kind, logging.DEBUG))

    def report(self, event: Event) -> None:
        """Pass an event on."""
        level = _LEVELS.get(type(event), logging.DEBUG)
        if self.logger.isEnabledFor(level):
            self.logger.log(level, "%s", describe(event), extra={"event": event})
        for subscriber in self._subscribers:
            if subscriber.wants(type(event)):
                with suppress(trio.WouldBlock):
                    subscriber.channel.send_nowait(event)

    @asynccontextmanager
    async def subscribe(self, *kinds: type[Event]) -> AsyncIterator[trio.MemoryReceiveChannel[Event]]:
        """All events from now on, or those of some kinds, for the length of a block."""
        send, receive = trio.open_memory_channel[Event](_BUFFER)
        subscriber = _Subscriber(send, kinds)
        self._subscribers.append(subscriber)
        self._notice_wishes()
        try:
            with receive:
                yield receive
        finally:
            self._subscribers.remove(subscriber)
            send.close()
            self._notice_wishes()

    def _notice_wishes(self) -> None:
        if any(each.wants(kind) for each in self._subscribers for kind in _COSTLY):
            self._wanted.set()
        elif self._wanted.is_set():
            self._wanted = trio.Event()

    def close(self) -> None:
        """No more events: subscribers' loops end."""
        for subscriber in self._subscribers:
            subscriber.channel.close()


def describe(event: Event) -> str:
    """An event as one line for people: no payload, no line breaks."""
    fields = attrs.asdict(event, recurse=False)
    shown = " ".join(f"{name}={_show(value)}" for name, value in fields.items())
    return f"{type(event).__name__} {shown}".rstrip()


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value * 1000:.1f}ms" if value < 10 else f"{value:.1f}s"
    text = str(value)
    return repr(text) if not text.isprintable() or " " in text else text
