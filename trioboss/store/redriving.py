"""Operations that send jobs of a dead letter queue back."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.answers import Redriven
from trioboss.model.check import check_count, check_name
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context, uuid_array
from trioboss.store.rows import read_first

__all__ = ["DeadLetterGroup", "RedriveOperations"]

_CHUNK = 1000  # jobs of one transaction
_NOTHING = Redriven(0, {}, 0, 0)


@attrs.frozen
class DeadLetterGroup:
    """Queued jobs of a dead letter queue that failed in one queue by one kind of error."""

    source: str | None
    """The queue in which they failed; None if they did not come from any."""
    destination: str | None
    """The queue that redrive would send them to; None if it would leave them."""
    error: str | None
    count: int
    duplicate: bool = False
    """Whether the jobs that they are copies of block their keys, were retried, or have completed since: redrive leaves
    them.
    """
    size: int = 0
    """Bytes of their notes, which have their errors."""


@attrs.frozen
class RedriveOperations:
    """Send jobs of a dead letter queue back."""

    _context: Context

    def redrive(
        self,
        name: str,
        to: str | None,
        source: str | None,
        limit: int | None,
        *,
        dry_run: bool,
        force: bool = False,
    ) -> Operation[Redriven]:
        """Send them to the queues in which they failed, or to one queue; or count them. ``force``: also
        duplicates.
        """
        if limit is not None:
            check_count("limit", limit, low=1)
        if dry_run:
            result = _summarize((yield from self.preview(name, to, source, limit, force=force)))
        else:
            result = yield from self._move_all(name, to, source, limit, force=force)
        if source is not None and result == _NOTHING:
            # A deleted queue can be the source of jobs that are still here. Without any the name may be misspelt.
            yield from self._context.reload(source)
        return result

    def _move_all(
        self, name: str, to: str | None, source: str | None, limit: int | None, *, force: bool
    ) -> Operation[Redriven]:
        """Send up to ``limit`` of them, in chunks."""
        result, left = _NOTHING, limit
        after: UUID | None = None
        while left is None or left > 0:
            size = _CHUNK if left is None else min(_CHUNK, left)
            chunk, end = yield from self.move(name, to, source, after, None, size, force=force)
            result = _add(result, chunk)
            if end is None:
                break
            # By ids, and not from the beginning: jobs that stay would be read again by each chunk.
            after, left = end, None if left is None else left - size
        return result

    def preview(
        self,
        name: str,
        to: str | None,
        source: str | None,
        limit: int | None,
        *,
        force: bool = False,
        most_bytes: int | None = None,
        committed: str | None = None,
    ) -> Operation[list[DeadLetterGroup]]:
        """The jobs that redrive would send, or leave, in groups: the oldest, up to a number of them and to so many
        bytes of their notes; with ``committed``, a pg_snapshot, only those that were there then.
        """
        table, values = yield from self._check(name, to, source)
        values |= {"limit": limit, "force": force, "bytes": most_bytes, "committed": committed}
        preview = self._context.bind("preview_redrive", table, **values)
        return [DeadLetterGroup(*row) for row in read_first((yield Batch((preview,))))]

    def move(
        self,
        name: str,
        to: str | None,
        source: str | None,
        after: UUID | None,
        last: UUID | None,
        limit: int,
        *,
        ids: Sequence[UUID] | None = None,
        force: bool = False,
        committed: str | None = None,
    ) -> Operation[tuple[Redriven, UUID | None]]:
        """Send one chunk of them: those after the id ``after`` and up to ``last``; with ``committed``, a pg_snapshot,
        only those that were there then. Also returns the id after which the next chunk begins, or None if there are no
        more.
        """
        table, values = yield from self._check(name, to, source)
        values |= {"after": after, "last": last, "ids": None if ids is None else uuid_array(ids)}
        values |= {"committed": committed}
        redrive = self._context.bind("redrive", table, limit=limit, force=force, **values)
        rows = read_first((yield Batch((redrive,))))
        moved = Counter(destination for _, destination, sent, _ in rows if sent)
        duplicates = sum(duplicate for *_, duplicate in rows)
        unroutable = sum(destination is None and not duplicate for _, destination, _, duplicate in rows)
        # The statement does not say which policy refused a job: it is what remains.
        refused = len(rows) - moved.total() - unroutable - duplicates
        return Redriven(moved.total(), dict(moved), unroutable, refused, duplicates), (
            rows[-1][0] if len(rows) == limit else None
        )

    def move_selected(self, name: str, ids: Sequence[UUID]) -> Operation[Redriven]:
        """Send the jobs of these ids to the queues in which they failed."""
        # `after` excludes its own id: that of the first job, less one.
        before = UUID(int=max(0, min(ids).int - 1))
        moved, _ = yield from self.move(name, None, None, before, max(ids), len(ids), ids=ids)
        return moved

    def _check(
        self, name: str, to: str | None, source: str | None
    ) -> Operation[tuple[str, dict[str, object]]]:
        """The table of the queue, and the parameters of the statements."""
        check_name("queue", name)
        if source is not None:
            check_name("source", source)
        queue = yield from self._context.reload(name)
        if to is not None:
            if to == name:
                raise UsageError(f"to: {to!r} is the dead letter queue itself")
            yield from self._context.reload(check_name("to", to))
        return queue.table_name, {"queue": name, "to": to, "source": source}


def _summarize(groups: list[DeadLetterGroup]) -> Redriven:
    counts: Counter[str] = Counter()
    for group in groups:
        if group.destination is not None:
            counts[group.destination] += group.count
    unroutable = sum(group.count for group in groups if group.destination is None and not group.duplicate)
    duplicates = sum(group.count for group in groups if group.duplicate)
    return Redriven(counts.total(), dict(counts), unroutable, 0, duplicates)


def _add(one: Redriven, other: Redriven) -> Redriven:
    return Redriven(
        one.moved + other.moved,
        dict(Counter(one.destinations) + Counter(other.destinations)),
        one.unroutable + other.unroutable,
        one.refused + other.refused,
        one.duplicates + other.duplicates,
    )
