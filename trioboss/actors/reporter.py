"""The stream of events, for subscribers and for the log."""

import logging
from collections.abc import AsyncIterator, Callable
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
_OPT_IN = (events.JobCreated,)  # one for every send: made only for those that ask for it by name
_ON_DEMAND = (events.Wip, events.MonitorStates)  # need a timer, which an idle boss should not have


@attrs.define(eq=False)
class _Subscriber:
    channel: trio.MemorySendChannel[Event]
    kinds: tuple[type[Event], ...]

    def wants(self, kind: type[Event]) -> bool:
        """Whether it reads events of this kind: all, if it has named none."""
        return kind in self.kinds or (not self.kinds and kind not in _OPT_IN)


@attrs.define(eq=False)
class Reporter:
    """Takes events from the actors, and never makes them wait: a subscriber that is too slow loses events."""

    logger: logging.Logger = attrs.field(factory=lambda: logging.getLogger("trioboss"))
    wants_created: bool = attrs.field(default=False, init=False)
    """Whether JobCreated has a reader. An attribute, because every send asks."""
    _subscribers: list[_Subscriber] = attrs.field(factory=list, init=False)
    _listeners: list[tuple[Callable[[Event], None], tuple[type[Event], ...]]] = attrs.field(
        factory=list, init=False
    )
    _wanted: trio.Event = attrs.field(factory=trio.Event, init=False)

    async def wait_wanted(self) -> None:
        """Wait until somebody subscribes to events that are made only on demand: work in progress, and counts."""
        await self._wanted.wait()

    def wants(self, kind: type[Event]) -> bool:
        """Whether an event of this kind has a reader. If not, it need not be made."""
        if self._listeners and any(kind in kinds for _, kinds in self._listeners):
            return True
        if self._subscribers and any(each.wants(kind) for each in self._subscribers):
            return True
        return self.logger.isEnabledFor(_LEVELS.get(kind, logging.DEBUG))

    def listen(self, callback: Callable[[Event], None], *kinds: type[Event]) -> None:
        """Call a function with every event of these kinds, at once, in the task that reports it."""
        self._listeners.append((callback, kinds))

    def report(self, event: Event) -> None:
        """Pass an event on."""
        for callback, kinds in self._listeners:
            if type(event) in kinds:
                callback(event)
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
        self.wants_created = any(each.wants(events.JobCreated) for each in self._subscribers)
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
    fields = [field.name for field in attrs.fields(type(event)) if field.repr]
    shown = " ".join(f"{name}={_show(getattr(event, name))}" for name in fields)
    return f"{type(event).__name__} {shown}".rstrip()


def _show(value: object) -> str:
    if isinstance(value, float):
        return f"{value * 1000:.1f}ms" if value < 10 else f"{value:.1f}s"
    text = str(value)
    return repr(text) if not text.isprintable() or " " in text else text
