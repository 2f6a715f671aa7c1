"""The clock of the database. No actor decides by the clock of this machine, which may be wrong: it is only read for
times that people see (`WorkerWip`).
"""

from datetime import UTC, datetime, timedelta

import attrs
import trio

from trioboss.actors.actor import Doorbell

__all__ = ["DatabaseClock", "wall_time"]

# A larger difference is no noise: a clock was set, or this machine was suspended.
_LARGEST_DRIFT = timedelta(seconds=0.5)


@attrs.define(eq=False)
class DatabaseClock:
    """Set whenever the database tells its time, and advanced in between by the monotonic clock of this process."""

    stepped: Doorbell
    """Rung when the time of the database differs from what was computed."""
    _epoch: datetime | None = attrs.field(default=None, init=False)
    """The time of the database when the clock of this process was zero."""

    def set(self, shown: datetime, asked_at: float) -> None:
        """The database has answered, just now, with its time. It read its clock at some moment since ``asked_at``; the
        middle is assumed.
        """
        epoch = shown - timedelta(seconds=(asked_at + trio.current_time()) / 2)
        if self._epoch is not None and abs(epoch - self._epoch) > _LARGEST_DRIFT:
            self.stepped.ring()
        self._epoch = epoch

    def now(self) -> datetime:
        """The time of the database."""
        assert self._epoch is not None
        return self._epoch + timedelta(seconds=trio.current_time())

    def when(self, instant: datetime) -> float:
        """The time of this process's clock at an instant of the database's clock."""
        assert self._epoch is not None
        return (instant - self._epoch).total_seconds()


def wall_time(at: float | None) -> datetime | None:
    """A time of trio's clock as one of this machine."""
    if at is None:
        return None
    return datetime.now(UTC) - timedelta(seconds=trio.current_time() - at)
