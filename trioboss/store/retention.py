"""Operations of retention: delete old jobs and history, in short statements, and make the tables of coming days."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import attrs

from trioboss.postgres.errors import is_rejected, is_table_gone
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context
from trioboss.store.maintenance import MaintenanceOperations
from trioboss.store.rows import read_first

__all__ = ["RetentionOperations"]

_CHUNK = 10_000  # rows a statement deletes
_PAGES = (
    4_000  # pages that a statement reads, 32 MB: a statement that read a whole table would hold back vacuum
)


@attrs.frozen
class RetentionOperations:
    """Delete jobs that waited too long, and history that is old enough."""

    _context: Context

    def prune(self, name: str | None = None) -> Operation[None]:
        """Delete everything that has outlived its time, or the jobs of one queue that have."""
        yield from self._prune_all() if name is None else self._prune_queue(name)

    def _prune_all(self) -> Operation[None]:
        """A table that somebody is reading is left for the next round: to wait for its lock would make everybody else
        wait, too.
        """
        failures: list[Exception] = []
        # First of all the tables of coming days: without them new history goes to the default tables.
        yield from self._try(self._prune_small_tables(), failures)
        yield from self._try(self._purge_orphans(), failures)
        yield from self._try(self._purge_queued(), failures)
        days: dict[date, list[str]] = {}
        for history, day in read_first((yield Batch((self._context.bind("list_days"),)))):
            days.setdefault(day, []).append(history)
        for day, histories in days.items():
            yield from self._try(self._prune_day(day, histories), failures)
        if failures:
            raise failures[0]

    def _prune_queue(self, name: str) -> Operation[None]:
        """Queued jobs and ended ones."""
        queue = yield from self._context.reload(name)
        for table, pages in (yield from self._count_pages("live_job")):
            if table == queue.table_name:
                for part in _parts(pages):
                    yield from self._purge_part(table, part)
        days = read_first((yield Batch((self._context.bind("list_days"),))))
        for day in sorted({day for history, day in days if history == "archive"}):
            ((over, *_),) = read_first((yield Batch((self._context.bind("examine_day", day=day),))))
            if name in over:
                yield from self._repeat("purge_ended", day=day, queue=name)

    def _try(self, part: Operation[None], failures: list[Exception]) -> Operation[None]:
        """Run a part of retention. A row that the database cannot compute with stops no other part."""
        try:
            yield from part
        except Exception as error:
            if not is_rejected(error):
                raise
            # Raised at the end, so that it is reported; the other parts have run by then.
            failures.append(error)

    def _prune_small_tables(self) -> Operation[None]:
        yield Batch((self._context.bind("prune"),))

    def _prune_day(self, day: date, histories: list[str]) -> Operation[None]:
        """Drop a day of history, or, if some of it has to stay for longer, delete the rest."""
        ((over, has_others, is_exported, is_read),) = read_first(
            (yield Batch((self._context.bind("examine_day", day=day),)))
        )
        if is_read:  # the reader refuses to go on if a table of its snapshot is gone or was rewritten
            return
        if is_exported and not has_others:
            for history in histories:
                yield Batch((self._context.bind("drop_day", history=history, day=day),))
            return
        for queue in (*over, None):  # None: jobs that override the delete_after of their queue
            yield from self._repeat("purge_ended", day=day, queue=queue)

    def _purge_orphans(self) -> Operation[None]:
        yield from self._repeat("purge_orphans")

    def _purge_queued(self) -> Operation[None]:
        for table, pages in (yield from self._count_pages("live_job")):
            try:
                for part in _parts(pages):
                    yield from self._purge_part(table, part)
            except Exception as error:
                if not is_table_gone(error):  # with its queue
                    raise

    def _purge_part(self, table: str, part: dict[str, str]) -> Operation[None]:
        purge = self._context.bind("purge_queued", table, **part)
        try:
            yield Batch((purge,))
        except Exception as error:
            # One job with values that cannot be computed with: the others are purged without it.
            if not is_rejected(error) or not (
                yield from MaintenanceOperations(self._context).quarantine_unsound()
            ):
                raise
            yield Batch((purge,))

    def _repeat(self, statement: str, **values: object) -> Operation[None]:
        """Run a statement that deletes a chunk until there is nothing left."""
        count = _CHUNK
        while count == _CHUNK:
            delete = self._context.bind(statement, limit=_CHUNK, **values)
            ((count,),) = read_first((yield Batch((delete,))))

    def _count_pages(self, table: str) -> Operation[list[tuple[Any, ...]]]:
        return read_first((yield Batch((self._context.bind("count_pages", table=table),))))


def _parts(pages: int) -> Iterator[dict[str, str]]:
    for first in range(0, pages, _PAGES):
        yield {"first": f"({first},0)", "after": f"({first + _PAGES},0)"}
