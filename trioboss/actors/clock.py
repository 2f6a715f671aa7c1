"""What the database's clock shows. Nobody asks what this machine's own shows."""

from datetime import datetime, timedelta

import attrs
import trio

from trioboss.actors.doorbell import Doorbell

__all__ = ["DatabaseClock"]

_STEP = timedelta(seconds=0.5)  # a difference this large is no noise: a clock was set, or this machine slept


@attrs.define(eq=False)
class DatabaseClock:
    """Set whenever the database says what time it is, and read in between by this process's steady clock."""

    stepped: Doorbell
    """Rung when the time turns out to be another than it seemed."""
    _epoch: datetime | None = attrs.field(default=None, init=False)
    """What it showed when this process's clock showed zero."""

    def set(self, shown: datetime, asked_at: float) -> None:
        """It showed this, somewhere between our question and its answer, which is now."""
        epoch = shown - timedelta(seconds=(asked_at + trio.current_time()) / 2)
        if self._epoch is not None and abs(epoch - self._epoch) > _STEP:
            self.stepped.ring()
        self._epoch = epoch

    def now(self) -> datetime:
        """What it shows now."""
        assert self._epoch is not None
        return self._epoch + timedelta(seconds=trio.current_time())

    def when(self, instant: datetime) -> float:
        """What this process's clock will show at an instant."""
        assert self._epoch is not None
        return (instant - self._epoch).total_seconds()
