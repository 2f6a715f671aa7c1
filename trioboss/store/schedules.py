"""Operations on schedules, and on the ticks that they fire."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_name
from trioboss.model.job import NewJob
from trioboss.model.payload import encode
from trioboss.model.schedule import Schedule, check_cron, check_missed, check_timezone
from trioboss.postgres.errors import is_rejected
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context
from trioboss.store.rows import read_first, read_schedules
from trioboss.store.sending import SendOperations, require_key

__all__ = ["ScheduleOperations", "send_options"]


@attrs.frozen
class ScheduleOperations:
    """Create, read and remove schedules, and fire their ticks."""

    _context: Context

    def schedule(
        self, name: str, cron: str, data: object, tz: str, key: str, missed: str, options: Mapping[str, Any]
    ) -> Operation[None]:
        """Create or replace the schedule of that key."""
        check_name("queue", name)
        job = NewJob.from_options(None, options, ("tz", "key", "missed", "conn"), "schedule")
        values = {
            "queue": name,
            "key": _check_key(key),
            "cron": check_cron(cron),
            "timezone": check_timezone(tz),
            "missed": check_missed(missed),
            "data": None if data is None else encode(data, "data", self._context.max_bytes),
            "options": json.dumps(send_options(job)),
        }
        # A mistake that would fail every tick is refused here.
        require_key((yield from self._context.reload(name)), job)
        if job.dead_letter is not None:
            yield from self._context.reload(job.dead_letter)
        yield from self._context.refer_to(name, self._context.bind("schedule", **values))

    def unschedule(self, name: str, key: str) -> Operation[None]:
        """Remove the schedule of that key; one that does not exist is fine."""
        check_name("queue", name)
        unschedule = self._context.bind("unschedule", queue=name, key=_check_key(key))
        if not read_first((yield Batch((unschedule,)))):
            yield from self._context.reload(name)

    def get_all(self, name: str | None) -> Operation[list[Schedule]]:
        """The schedules of one queue, or all of them."""
        if name is not None:
            check_name("queue", name)
        found = read_schedules((yield Batch((self._context.bind("get_schedules", queue=name),))))
        if not found and name is not None:
            yield from self._context.reload(name)
        return found

    # -- for the scheduler

    def read_ticks(self) -> Operation[tuple[datetime, list[tuple[Schedule, datetime | None]]]]:
        """The time of the database, and each schedule, without its data and options, with its last tick."""
        rows = read_first((yield Batch((self._context.bind("get_last_ticks"),))))
        schedules = [(Schedule(*row[1:10]), row[10]) for row in rows if row[1] is not None]
        return rows[0][0], schedules

    def fire(self, schedule: Schedule, due: datetime, id: UUID) -> Operation[tuple[bool, UUID | None, float]]:
        """Write a tick into the table tick and send its job, both or neither. Needs an open transaction around it.

        Returns whether the tick was ours to fire, the id of the job, and the seconds to wait if it came too early.
        """
        try:
            return (yield from self._fire(schedule, due, id))
        except Exception as error:
            # The fault of this schedule, not of the database: its data cannot be read, or cannot be sent.
            if is_rejected(error):
                raise UsageError(f"data: {error}") from error
            raise

    def _fire(
        self, schedule: Schedule, due: datetime, id: UUID
    ) -> Operation[tuple[bool, UUID | None, float]]:
        tick = self._context.bind("fire_tick", queue=schedule.queue, key=schedule.key, due=due, id=id)
        rows = read_first((yield Batch((tick,))))
        if not rows:
            return False, None, 0.0
        ours, early, data, options = rows[0]
        if not ours:
            return False, None, early
        # The row of the tick has the id of the job, so that each can be found by the other.
        try:
            job = NewJob.from_options(data, options | {"id": id})
        except TypeError as error:
            raise UsageError(f"options: {error}") from error
        return True, (yield from SendOperations(self._context).send(schedule.queue, job, own=False)), 0.0


def _check_key(key: object) -> str:
    """The key of a schedule: empty, or like a name."""
    return "" if key == "" else check_name("key", key)


def send_options(job: NewJob) -> dict[str, Any]:
    """The options each job of the schedule is sent with, as JSON keeps them."""
    options = {name: value for name, value in attrs.asdict(job).items() if value is not None}
    for name in ("id", "start_after"):
        if name in options:
            raise UsageError(f"{name}: the schedule decides this for each job")
    return options
