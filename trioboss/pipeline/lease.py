"""Says to the database that history is being read, so that retention does not drop it meanwhile."""

import time
from uuid import UUID, uuid4

import attrs

from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.planning import Days
from trioboss.postgres.errors import is_permission_denied

__all__ = ["Lease"]

_SECONDS = 90.0


@attrs.define
class Lease:
    """One read of history, of all its tasks. Ends by itself if nobody keeps it."""

    _dsn: str
    _schema: str
    _id: UUID | None = None
    _kept_on: float = 0.0
    """By the clock of the machine. Those of others may differ by seconds, which does no harm."""

    def begin(self, database: Database, days: Days) -> None:
        """Begin, on the driver. Whoever may only read goes without."""
        first = days.first.date() if days.first else None
        last = days.last.date() if days.last else None
        id = uuid4()
        try:
            database.run("begin_reading", id=id, first_day=first, last_day=last, seconds=_SECONDS)
        except Exception as error:
            if not is_permission_denied(error):
                raise
            return
        self._id, self._kept_on = id, time.time()

    def keep(self) -> None:
        """Go on, in a task; called between chunks, it does something once in a while."""
        now = time.time()
        if self._id is not None and now > self._kept_on + _SECONDS / 3:
            self._kept_on = now
            with open_database(self._dsn, self._schema) as database:
                database.run("begin_reading", id=self._id, seconds=_SECONDS)
