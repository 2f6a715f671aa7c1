"""The operation that sends jobs of a dead letter queue back."""

from collections import Counter

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_count, check_name
from trioboss.model.job import Redriven
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context
from trioboss.store.rows import read_first

__all__ = ["RedriveOperations"]

_CHUNK = 1000  # jobs of one transaction


@attrs.frozen
class RedriveOperations:
    """Send jobs of a dead letter queue back."""

    _context: Context

    def redrive(
        self, name: str, to: str | None, source: str | None, limit: int | None, *, dry_run: bool
    ) -> Operation[Redriven]:
        """Send them to the queues in which they failed, or to one queue; or count them."""
        check_name("queue", name)
        if limit is not None:
            check_count("limit", limit, low=1)
        if source is not None:
            check_name("source", source)
        queue = yield from self._context.reload(name)
        if to is not None:
            if to == name:
                raise UsageError(f"to: {to!r} is the dead letter queue itself")
            yield from self._context.reload(check_name("to", to))
        values = {"queue": name, "to": to, "source": source}
        if dry_run:
            preview = self._context.bind("preview_redrive", queue.table_name, limit=limit, **values)
            counts = dict(read_first((yield Batch((preview,)))))
            unroutable = int(counts.pop(None, 0))
            return Redriven(sum(counts.values()), counts, unroutable, 0)
        return (yield from self._move(queue.table_name, values, limit))

    def _move(self, table: str, values: dict[str, str | None], limit: int | None) -> Operation[Redriven]:
        moved: Counter[str] = Counter()
        unroutable = refused = after = done = 0
        while limit is None or done < limit:
            size = _CHUNK if limit is None else min(_CHUNK, limit - done)
            redrive = self._context.bind("redrive", table, after=after, limit=size, **values)
            rows = read_first((yield Batch((redrive,))))
            for seq, destination, sent in rows:
                after = seq
                moved[destination] += sent
                unroutable += destination is None
                refused += destination is not None and not sent
            done += len(rows)
            if len(rows) < size:
                break
        destinations = {name: count for name, count in moved.items() if count}
        return Redriven(sum(destinations.values()), destinations, unroutable, refused)
