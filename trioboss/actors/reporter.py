"""The stream of events, for subscribers and for the log."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final

import attrs
import trio

from trioboss import events
from trioboss.errors import BossClosed
from trioboss.event_texts import describe_event
from trioboss.events import Event
from trioboss.model.described_error import stack_text

__all__ = ["Reporter"]

_BUFFER = 10_000  # events that a subscriber can be behind before it loses some

_LEVELS: Final[dict[type[Event], int]] = {
    events.JobStarted: logging.DEBUG,
    events.JobCompleted: logging.INFO,
    events.JobFailed: logging.WARNING,
    events.LateError: logging.WARNING,
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

    def includes(self, kind: type[Event]) -> bool:
        """Whether it reads events of this kind: all, if it has named none."""
        return kind in self.kinds or (not self.kinds and kind not in _OPT_IN)


@attrs.define(eq=False)
class Reporter:
    """Takes events from the actors, and never makes them wait: a subscriber that is too slow loses events."""

    worker: str = ""
    """The name of the boss, for its log lines and those of its handlers."""
    logger: logging.Logger = attrs.field(factory=lambda: logging.getLogger("trioboss"))
    has_created_reader: bool = attrs.field(default=False, init=False)
    """Whether JobCreated has a reader. An attribute, because every send asks."""
    _subscribers: list[_Subscriber] = attrs.field(factory=list, init=False)
    _listeners: list[tuple[Callable[[Any], object], tuple[type[Event], ...]]] = attrs.field(
        factory=list, init=False
    )
    _read: dict[type[Event], bool] = attrs.field(factory=dict, init=False)
    """Whether a listener or a subscriber reads events of this kind, as far as that was asked: each job asks."""
    _demanded: trio.Event = attrs.field(factory=trio.Event, init=False)
    _is_closed: bool = attrs.field(default=False, init=False)

    async def wait_demanded(self) -> None:
        """Wait until a subscriber reads events that are made only on demand: work in progress, and counts."""
        await self._demanded.wait()

    def has_reader(self, kind: type[Event]) -> bool:
        """Whether an event of this kind has a reader. If not, it need not be made."""
        is_read = self._read.get(kind)
        if is_read is None:
            is_read = self._read[kind] = self._is_read(kind)
        return is_read or self.logger.isEnabledFor(_LEVELS.get(kind, logging.DEBUG))

    def _is_read(self, kind: type[Event]) -> bool:
        listened = any(kind in kinds for _, kinds in self._listeners)
        return listened or any(each.includes(kind) for each in self._subscribers)

    def listen(self, callback: Callable[[Any], object], *kinds: type[Event]) -> None:
        """Call a function with every event of these kinds, at once, in the task that reports it."""
        self._listeners.append((callback, kinds))
        self._update_readers()

    def report(self, event: Event) -> None:
        """Pass an event on."""
        for callback, kinds in self._listeners:
            if type(event) in kinds:
                callback(event)
        if self.logger.isEnabledFor(_LEVELS.get(type(event), logging.DEBUG)):
            self._log(event)
        for subscriber in self._subscribers:
            if subscriber.includes(type(event)):
                # Lost for this subscriber: an actor that waited for it would hold up jobs.
                with suppress(trio.WouldBlock):
                    subscriber.channel.send_nowait(event)

    def _log(self, event: Event) -> None:
        """Log an event: a line that is complete in any format, the same as fields, and the stack of a failure."""
        job = _job_fields(event)
        attempt = f"#{job['attempt']}" if job["attempt"] else ""
        parts = (self.worker, job["queue"], job["job_id"], attempt, describe_event(event))
        error = getattr(event, "exception", None)
        record = self.logger.makeRecord(
            self.logger.name,
            _LEVELS.get(type(event), logging.DEBUG),
            __file__,
            0,
            "%s",
            (" ".join(str(part) for part in parts if part),),
            None if error is None else (type(error), error, _traceback_of(error)),
            extra={"event": event, "worker": self.worker, **job},
        )
        if error is not None:
            # Formatters use it as it is. They would not limit what a handler raises, nor survive all of it.
            record.exc_text = stack_text(error)
        self.logger.handle(record)

    @asynccontextmanager
    async def subscribe(self, *kinds: type[Event]) -> AsyncIterator[trio.MemoryReceiveChannel[Event]]:
        """Read all events from now on, or those of some kinds, for the length of a block."""
        if self._is_closed:
            raise BossClosed  # nothing would ever end the loop of this reader
        send, receive = trio.open_memory_channel[Event](_BUFFER)
        subscriber = _Subscriber(send, kinds)
        self._subscribers.append(subscriber)
        self._update_readers()
        try:
            with receive:
                yield receive
        finally:
            self._subscribers.remove(subscriber)
            send.close()
            self._update_readers()

    def _update_readers(self) -> None:
        self._read.clear()
        self.has_created_reader = self._is_read(events.JobCreated)
        if any(map(self._is_read, _ON_DEMAND)):
            self._demanded.set()
        elif self._demanded.is_set():
            self._demanded = trio.Event()

    def close(self) -> None:
        """No more events: subscribers' loops end."""
        self._is_closed = True
        for subscriber in self._subscribers:
            subscriber.channel.close()


def _traceback_of(error: BaseException) -> TracebackType | None:
    """The traceback of an error whose class may raise whatever is asked of it."""
    found: TracebackType | None = BaseException.__traceback__.__get__(error)  # type: ignore[union-attr]
    return found


def _job_fields(event: Event) -> dict[str, object]:
    """The job that an event is about, as fields of a record: those of JobLogFilter."""
    id, attempt = getattr(event, "id", None), getattr(event, "attempt", None)
    return {
        "queue": getattr(event, "queue", None) or "",
        "job_id": "" if id is None else str(id),
        "attempt": "" if attempt is None else attempt,
    }
