"""Metrics that the database has to be asked for. The worker that leads asks, for all of them."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs
import trio

from trioboss.api.boss import Boss
from trioboss.errors import TriobossError
from trioboss.model.cron import Ticks
from trioboss.model.ticks import make_ticks
from trioboss.postgres.errors import is_database_error
from trioboss.sql import Catalog

__all__ = ["DATABASE_METRICS", "measure_database"]

_TIMEOUT = 2.0  # seconds that the database has to answer

DATABASE_METRICS = {
    "trioboss_queue_size": "jobs that wait, counted up to 100000",
    "trioboss_oldest_age_seconds": "seconds that the oldest due job has waited, except behind a blocked key",
    "trioboss_unserved_jobs": "jobs that wait in a queue without a worker; 0 for a queue with one",
    "trioboss_blocked_keys": "keys of strict FIFO that a failed job blocks",
    "trioboss_tick_late_seconds": "seconds since a tick of a schedule was due that was not fired",
}


@attrs.frozen
class _Measured:
    """The values of each metric, by queue."""

    values: dict[str, dict[str, float]] = attrs.field(factory=lambda: {name: {} for name in DATABASE_METRICS})

    def add(self, metric: str, queue: str, value: float) -> None:
        """Add a value; of several for one queue the highest counts."""
        values = self.values[f"trioboss_{metric}"]
        values[queue] = max(value, values.get(queue, value))


async def measure_database(boss: Boss) -> Mapping[str, Mapping[str, float]]:
    """The values of each metric by queue. Empty if the database does not answer."""
    measured = _Measured()
    try:
        with trio.move_on_after(_TIMEOUT):
            async with boss.transaction() as conn:
                for name, size, age, served, blocked in await _read(conn, boss, "measure_queues"):
                    measured.add("queue_size", name, size)
                    measured.add("oldest_age_seconds", name, round(age, 3))
                    # A series that is 0 means that all is well; one that is absent means nothing.
                    measured.add("unserved_jobs", name, 0 if served else size)
                    if blocked is not None:
                        measured.add("blocked_keys", name, blocked)
                for queue, cron, timezone, last, now in await _read(conn, boss, "measure_ticks"):
                    measured.add("tick_late_seconds", queue, _late(make_ticks(cron, timezone), last, now))
    except Exception as error:
        # A measurement that fails must not stop the worker.
        if not isinstance(error, TriobossError) and not is_database_error(error):
            raise
        return _Measured().values
    return measured.values


async def _read(conn: Any, boss: Boss, statement: str) -> Iterator[tuple[Any, ...]]:
    text = Catalog(boss.schema).get(statement).text.encode()
    return iter(await (await conn.execute(text)).fetchall())


def _late(cron: Ticks, last: datetime, now: datetime) -> float:
    """Seconds since the first tick after the last one that was fired; 0 if that is still to come."""
    return max(0.0, round((now - cron.next_after(last)).total_seconds(), 3))
