"""Operations of maintenance: leases that ran out, and warnings.

Retention is in retention.py, samples are in statistics.py.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal
from uuid import UUID

import attrs

from trioboss.errors import UnknownQueue
from trioboss.model.described_error import describe_error
from trioboss.model.job import Lease
from trioboss.model.polling import Rescue
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_rejected
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.settling import SettleOperations

__all__ = ["MaintenanceOperations"]

_Outcome = Literal["expired", "lost", "released"]
_CHUNK = 1000  # leases that rescue_leases.sql returns at most

_ERRORS: dict[str, str | None] = {
    "expired": describe_error("the job expired"),
    "lost": describe_error("its worker is gone, or its heartbeats stopped"),
}


@attrs.frozen
class MaintenanceOperations:
    """The operations of the leader, for all jobs."""

    _context: Context

    def rescue_leases(
        self, grace: float, margin: float, *, warnings: bool, certain: bool = True, queue: str | None = None
    ) -> Operation[Rescue]:
        """End the leases, of one queue or of all, that have expired, are lost, or were left by a worker that has
        stopped: rescue_leases.sql defines them. With ``warnings`` find problems for operators.

        Not ``certain``: this boss itself is connected for a shorter time than the grace. Then no worker that is gone
        counts as dead, and no heartbeat as missed; leases that have expired, or whose worker has stopped or has no row,
        end all the same.
        """
        # Raises UnknownQueue: the statement itself finds no lease in a queue that does not exist.
        if queue is not None:
            yield from self._context.reload(queue)
        examine = self._context.bind("rescue_leases", grace=grace, margin=margin, certain=certain)
        rejected: dict[UUID, str] = {}
        ended: list[tuple[str, _Outcome, tuple[UUID, ...]]] = []
        # A worker that dies may leave thousands of leases. They are ended in chunks, until there is none left, or no
        # further one can be ended.
        while True:
            rows: dict[str, list[Any]] = defaultdict(list)
            for kind, *rest in (yield from self._examine_leases(examine, rejected)):
                rows[kind].append(rest)
            ended_now = yield from self._end(
                [row for row in rows["ended"] if queue in (None, row[0])], rejected
            )
            ended += ended_now
            if len(rows["ended"]) < _CHUNK or not ended_now:
                break
        # The jobs of a dead worker first, then its row: if the connection is lost in between, the next round finds it.
        if dead := [row[1] for row in rows["dead"]]:
            yield Batch((self._context.bind("drop_workers", dead=uuid_array(dead)),))
        active, next_expiry = (rows["active"][0][2], rows["active"][0][5]) if rows["active"] else (0, None)
        found: list[tuple[str | None, str, str]] = []
        if warnings:
            warned = read_first((yield Batch((self._context.bind("find_warnings"),))))
            found = [_describe_warning(*row) for row in warned]
        found += [(None, "quarantined", f"job {id}: {reason}") for id, reason in rejected.items()]
        return Rescue(ended, active - sum(len(ids) for _, _, ids in ended_now), next_expiry, found)

    def find_long_queues(self) -> Operation[list[tuple[str | None, str, str]] | None]:
        """Queues with more queued jobs than their warning_queue_size; None if no queue has one."""
        rows = read_first((yield Batch((self._context.bind("find_long_queues"),))))
        if not rows[0][0]:
            return None
        return [_describe_warning(*row[1:]) for row in rows if row[1] is not None]

    def _examine_leases(
        self, examine: BoundStatement, rejected: dict[UUID, str]
    ) -> Operation[list[tuple[Any, ...]]]:
        try:
            return read_first((yield Batch((examine,))))
        except Exception as error:
            if not is_rejected(error):
                raise
        # One lease with values that cannot be computed with: without it the others are rescued.
        rejected |= yield from self.quarantine_unsound()
        return read_first((yield Batch((examine,))))

    def quarantine_unsound(self) -> Operation[dict[UUID, str]]:
        """Fail the jobs of all queues that statements over many jobs cannot compute with; return why."""
        found: dict[UUID, str] = {}
        for name, *_ in read_first((yield Batch((self._context.bind("get_queues"),)))):
            with suppress(UnknownQueue):
                found |= yield from SettleOperations(self._context).quarantine_unsound(name)
        return found

    def _end(
        self, rows: Iterable[Any], rejected: dict[UUID, str]
    ) -> Operation[list[tuple[str, _Outcome, tuple[UUID, ...]]]]:
        attempts: dict[tuple[str, _Outcome], list[Lease]] = defaultdict(list)
        for name, id, attempt, started_on, outcome, _ in rows:
            attempts[name, outcome].append(Lease(id, attempt, started_on))
        ended: list[tuple[str, _Outcome, tuple[UUID, ...]]] = []
        for (name, outcome), leases in attempts.items():
            # Fenced: an attempt that its worker settled since it was examined is left alone.
            states: dict[UUID, JobState] = {}
            with suppress(UnknownQueue):  # deleted since, and its jobs with it
                # Those that have to wait for another transaction are examined again in the next round.
                settlements = _settle_as(outcome, leases)
                settling = SettleOperations(self._context)
                states, _ = yield from settling.settle_unlocked(name, settlements, rejected)
            if states:
                ended.append((name, outcome, tuple(states)))
        return ended


def _settle_as(outcome: _Outcome, leases: Sequence[Lease]) -> Settlements:
    if outcome == "released":
        return Settlements(released=leases)
    failure = Failure(_ERRORS[outcome], outcome=outcome)
    return Settlements(failed=[(lease, failure) for lease in leases])


def _describe_warning(
    queue: str | None, kind: str, pid: int | None, since: object, number: float
) -> tuple[str | None, str, str]:
    texts = {
        "queue_size": f"more than {number:.0f} jobs wait",
        "oldest_age": f"a job waits for {number:.0f} s, and no worker takes it",
        "old_snapshot": f"the transaction of backend {pid} is open for {number:.0f} s: nothing can be vacuumed",
        "late_days": (
            f"{number / 1e6:.0f} MB of history are in archive_default, because no maintenance ran in time: at a quiet "
            "time, SET history.scan_limit = '100GB' and SELECT add_days(current_date, 7) in the schema"
        ),
        "notify_queue": f"the server's notification queue is {number:.0%} full: some session does not read",
    }
    return queue, kind, texts[kind]
