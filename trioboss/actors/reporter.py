"""The stream of events, for subscribers and for the log."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import attrs
import trio

from trioboss import events
from trioboss.events import Event

__all__ = ["Reporter"]

_BUFFER = 10_000  # events that a subscriber can be behind before it loses some

_LEVELS: Final[dict[type[Event], int]] = {
    events.JobStarted: logging.DEBUG,
    events.JobCompleted: logging.INFO,
    events.JobFailed: logging.WARNING,
    events.JobReleased: logging.INFO,
    events.JobCancelled: logging.INFO,
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
_ON_DEMAND = (events.Wip, events.MonitorStates)  # need a timer, which an idle boss should not have


@attrs.define(eq=False)
class _Subscriber:
    channel: trio.MemorySendChannel[Event]
    kinds: tuple[type[Event], ...]

    def wants(self, kind: type[Event]) -> bool:
        """Whether it reads events of this kind: all, if it has named none."""
        return not self.kinds or kind in self.kinds


@attrs.define(eq=False)
class Reporter:
    """Takes events from the actors, and never makes them wait: a subscriber that is too slow loses events."""

    logger: logging.Logger = attrs.field(factory=lambda: logging.getLogger("trioboss"))
    _subscribers: list[_Subscriber] = attrs.field(factory=list, init=False)
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def wait_wanted(self) -> None:
        """Wait until somebody subscribes to events that are made only on demand: work in progress, and counts."""
        await self._wanted.wait()

    def wants(self, kind: type[Event]) -> bool:
        """Whether an event of this kind has a reader. If not, it need not be made."""
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
        """Read all events from now on, or those of some kinds, for the length of a block."""
        send, receive = trio.open_memory_channel[Event](_BUFFER)
        subscriber = _Subscriber(send, kinds)
        self._subscribers.append(subscriber)
        self._update_wanted()
        try:
            with receive:
                yield receive
        finally:
            self._subscribers.remove(subscriber)
            send.close()
            self._update_wanted()

    def _update_wanted(self) -> None:
        if any(each.wants(kind) for each in self._subscribers for kind in _ON_DEMAND):
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
