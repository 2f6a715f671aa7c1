"""A wake-up that cannot be lost and cannot pile up."""

import math

import attrs
import trio

__all__ = ["PACE", "Doorbell"]

PACE = 0.05
"""Seconds between wake-ups by a doorbell that notifications ring: every client of the database can send them."""


@attrs.define(eq=False)
class Doorbell:
    """Wakes one waiter, once, however often it was rung before; with a ``pace``, not more often than that."""

    _pace: float = 0.0
    _woke_at: float = attrs.field(default=-math.inf, init=False)
    _rung: trio.Event = attrs.field(factory=trio.Event, init=False)

    def ring(self) -> None:
        """Wake the task that waits, or the next one that will."""
        self._rung.set()

    async def wait(self) -> None:
        """Wait until it was rung since the last wait."""
        await self._rung.wait()
        if self._pace:
            await trio.sleep_until(self._woke_at + self._pace)
            self._woke_at = trio.current_time()
        self._rung = trio.Event()

    async def wait_until(self, deadline: float) -> bool:
        """Wait until it is rung, or until that time; return whether it was rung."""
        if deadline == math.inf:  # the most frequent case, and a scope costs more than the wait
            await self.wait()
            return True
        with trio.move_on_at(deadline):
            await self.wait()
            return True
        return False
