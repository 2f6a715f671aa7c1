"""Registers reads of history in the database (table `reader`), for two reasons.

All tasks of one query use the snapshot that the first of them registers, so that they read the table as it was at one
instant, although they run at different times and in different sessions. And retention keeps days that are being read.
"""

import json
import time
from uuid import UUID, uuid5

import attrs
from pyspark import TaskContext

from trioboss.errors import DatabaseUnavailable
from trioboss.pipeline.database import Database
from trioboss.pipeline.days import Days
from trioboss.pipeline.planning import DayTable
from trioboss.postgres.errors import is_permission_denied

__all__ = ["Agreement", "ReadRegistration", "execution_of_task"]

_SECONDS = 90.0  # that a registration lasts unless it is renewed


@attrs.frozen
class Agreement:
    """The rows that all tasks of a query read: those that a snapshot shows, of these tables."""

    snapshot: str
    files: dict[str, int]
    """The tables of the history, with the numbers of their files."""

    @property
    def newest(self) -> int:
        """The first transaction of which the snapshot shows nothing, and of the later ones neither."""
        return int(self.snapshot.split(":")[1])

    def check(self, tables: list[DayTable], days: Days) -> None:
        """Raise DatabaseUnavailable if a table is gone or was rewritten since the agreement.

        Other tasks may have read it in its former state, so a row would be missing or be there twice.
        """
        present = {table.relation: table.file for table in tables}
        for relation, file in self.files.items():
            if days.touch(relation) and present.get(relation) != file:
                raise DatabaseUnavailable(
                    f"{relation} was dropped or rewritten while it was being read: read again"
                )


@attrs.define
class ReadRegistration:
    """The registration of one query, in one task."""

    _database: Database
    _table: str
    _days: Days
    _id: UUID
    _snapshot: str | None
    """The snapshot that the user asked for; None: that of the first task."""
    _renew_on: float = 0.0

    def register(self) -> Agreement:
        """Register the query, or join its registration, and return what its tasks agree on."""
        ((snapshot, files),) = self._write()
        return Agreement(snapshot, json.loads(files))

    def can_register(self) -> bool:
        """Register the query, and return whether the role and the server (it may be a standby) can write that."""
        try:
            self._write()
        except Exception as error:
            if not is_permission_denied(error):
                raise
            return False
        return True

    def observe(self) -> Agreement:
        """The same for a task that is alone and need not agree with others: nothing is written."""
        ((snapshot,),) = self._database.run("read_snapshot")
        return Agreement(self._snapshot or snapshot, {})

    def renew(self) -> None:
        """Renew the registration if it is time to. Tasks call it between chunks, when no transaction is open."""
        if self._renew_on and time.monotonic() > self._renew_on:
            self._write()

    def _write(self) -> list[tuple[str, str]]:
        rows = self._database.run(
            "register_read",
            id=self._id,
            history=self._table,
            first_day=self._days.first,
            last_day=self._days.last,
            seconds=_SECONDS,
            snapshot=self._snapshot,
        )
        self._renew_on = time.monotonic() + _SECONDS / 3
        return rows


def execution_of_task(plan: UUID) -> UUID:
    """An id that all tasks of one query have in common, of those that a DataFrame's plan is used for.

    Spark numbers the executions of queries, and tells tasks the number.
    """
    task = TaskContext.get()
    if task is None:
        return plan
    number = task.getLocalProperty("spark.sql.execution.id") or f"stage {task.stageId()}"
    return uuid5(plan, number)
