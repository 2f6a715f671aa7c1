"""A wake-up that cannot be lost and cannot pile up."""

import attrs
import trio

__all__ = ["Doorbell"]


@attrs.define(eq=False)
class Doorbell:
    """Rung any number of times before somebody waits, it wakes them once."""

    _rung: trio.Event = attrs.field(factory=trio.Event, init=False)

    def ring(self) -> None:
        """Wake who waits, or who waits next."""
        self._rung.set()

    async def wait(self) -> None:
        """Wait until it was rung since the last wait."""
        await self._rung.wait()
        self._rung = trio.Event()

    async def wait_until(self, deadline: float) -> bool:
        """Wait until it is rung, or until that time; True if it was rung."""
        with trio.move_on_at(deadline):
            await self.wait()
            return True
        return False
