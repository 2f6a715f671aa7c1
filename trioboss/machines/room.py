"""Decides which dispatcher of a worker may use free slots next. Dispatchers of busy queues take turns."""

from collections.abc import Hashable
from typing import Generic, TypeVar

import attrs

__all__ = ["RoomWaiters"]

_D = TypeVar("_D", bound=Hashable)


@attrs.define(eq=False)
class RoomWaiters(Generic[_D]):
    """The dispatchers that have jobs to claim and wait for room, the one that has waited longest first.

    Every method that may leave room to the first one returns it, to be woken, or None. A dispatcher that is woken asks
    again for its room, and then claims, waits or leaves.

    Invariant: if there is room, the first of them was woken after it had last asked. So no slot stays free while a
    dispatcher has jobs for it.
    """

    # A dict: it keeps the order of waiting, and finds and removes one dispatcher at once.
    _waiting: dict[_D, None] = attrs.field(factory=dict, init=False)

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def room_for(self, dispatcher: _D, room: int) -> int:
        """How much of the room this dispatcher may use: room for one job is left to each that has waited longer.
        Without that it would be chance which one is first, because an outcome and a free slot wake two dispatchers at
        once.
        """
        # Those in front of it; all that wait, if it does not wait itself and so comes last.
        for waiting in self._waiting:
            if waiting == dispatcher:
                break
            room -= 1
        return room

    def wait(self, dispatcher: _D, room: int) -> _D | None:
        """This dispatcher waits for room; it keeps its position, if it has one."""
        # A key that is there already keeps its position.
        self._waiting[dispatcher] = None
        return self.next(room)

    def leave(self, dispatcher: _D, room: int) -> _D | None:
        """This dispatcher claims, or has nothing to claim, or has ended. ``room`` is what it leaves to others."""
        # The room that it leaves may be enough for the next one, which nothing else would wake.
        self._waiting.pop(dispatcher, None)
        return self.next(room)

    def next(self, room: int) -> _D | None:
        """The dispatcher to be woken, now that there is so much room."""
        return next(iter(self._waiting), None) if room > 0 else None
