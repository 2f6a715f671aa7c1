"""Records the events of a boss, and waits for them."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

import attrs
import trio

from trioboss.events import Event

__all__ = ["Recorder", "record"]

E = TypeVar("E", bound=Event)


@attrs.define(eq=False)
class Recorder:
    """The events of a block, in order. Made by `record`."""

    events: list[Event] = attrs.field(factory=list, init=False)
    _arrived: trio.Event = attrs.field(factory=trio.Event, init=False)

    def of(self, kind: type[E], where: Callable[[E], object] = bool) -> list[E]:
        """The events of one kind, or those of them for which ``where`` is true."""
        return [event for event in self.events if isinstance(event, kind) and where(event)]

    async def wait_for(
        self, kind: type[E], where: Callable[[E], object] = bool, *, count: int = 1
    ) -> list[E]:
        """Wait until there are ``count`` events of that kind, including earlier ones; return them all."""
        while len(found := self.of(kind, where)) < count:
            await self._arrived.wait()
        return found

    def add(self, event: Event) -> None:
        """Record an event, and wake the tasks that wait."""
        self.events.append(event)
        self._arrived.set()
        self._arrived = trio.Event()


@asynccontextmanager
async def record(
    events: AbstractAsyncContextManager[AsyncIterator[Event] | Any],
) -> AsyncIterator[Recorder]:
    """Record events for the length of a block: ``async with record(boss.events()) as recorder:``."""
    recorder = Recorder()

    async def keep(stream: AsyncIterator[Event]) -> None:
        async for event in stream:
            recorder.add(event)

    async with events as stream, trio.open_nursery() as nursery:
        nursery.start_soon(keep, stream)
        yield recorder
        nursery.cancel_scope.cancel()
