"""The statements that complete, fail and release attempts, and how to read their results. For callers and for
dispatchers they are built here; settling.py and settle_and_claim.py execute them.
"""

from collections.abc import Iterable, Sequence
from uuid import UUID

import attrs

from trioboss.model.job import Lease
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.wire import PGresult, read_row, read_rows
from trioboss.store.context import Context, lease_arrays, uuid_array

__all__ = ["LOCK_WAIT", "SettlePlan", "bind_complete", "bind_fail", "plan_settling"]

LOCK_WAIT = "200ms"
"""How long a dispatcher waits for what another transaction has changed: longer than a busy one takes."""


@attrs.frozen
class SettlePlan:
    """The statements that settle attempts of one queue, and how to read their results."""

    queue: Queue
    settlements: Settlements
    statements: tuple[BoundStatement, ...]
    """For one transaction, in the order completed, failed, released."""
    notifications: tuple[BoundStatement, ...]
    """Statements that notify the waiters for an end, and idle dispatchers if jobs may run now; for a transaction after
    it, which a caller may await or not.
    """

    def read(self, results: Sequence[PGresult]) -> tuple[dict[UUID, JobState], bool]:
        """The new states of the jobs that were settled; and whether complete.sql declined, because the queue wants
        completion jobs and the cached one did not.
        """
        rest = list(results)
        settled: dict[UUID, JobState] = {}
        declined = False
        if self.settlements.completed:
            done, on_complete = _read_completed(rest.pop(0), self.settlements)
            settled |= dict.fromkeys(done, JobState.COMPLETED)
            declined = on_complete and not self.queue.on_complete
        if self.settlements.failed:
            for _ in range(2):  # retry_failed.sql and fail.sql
                settled |= {row[0]: JobState(row[1]) for row in read_rows(rest.pop(0))}
        if self.settlements.released:
            settled |= {row[0]: JobState.RETRY for row in read_rows(rest.pop(0))}
        return settled, declined


def plan_settling(
    context: Context, queue: Queue, settlements: Settlements, lock_wait: str | None = None
) -> SettlePlan:
    """How to settle these attempts on a connection of our own, and how long to wait for other transactions."""
    if not settlements:
        return SettlePlan(queue, settlements, (), ())
    statements: list[BoundStatement] = []
    ended: list[UUID] = []
    if settlements.completed:
        outputs = {lease.id: output for lease, output in settlements.completed}
        leases = [lease for lease, _ in settlements.completed]
        statements.append(bind_complete(context, queue, leases, (), outputs, lock_wait=lock_wait))
        ended += outputs
    if settlements.failed:
        failures = {lease.id: failure for lease, failure in settlements.failed}
        leases = [lease for lease, _ in settlements.failed]
        statements += bind_fail(context, queue, leases, (), failures, lock_wait=lock_wait)
        ended += failures
    if settlements.released:
        released = lease_arrays(settlements.released)
        statements.append(
            context.bind("release", queue.table_name, queue=queue.name, lock_wait=lock_wait, **released)
        )
    # A failed or released job may be claimed at once by another dispatcher. A completed one only lets others run if
    # it owned a key, and then this dispatcher may have claimed them along with it: notify_leftover.sql checks that.
    notifications: list[BoundStatement] = []
    if ended:
        notifications.append(context.bind("notify_waiters", ids=uuid_array(ended)))
    if settlements.failed or settlements.released:
        notifications.append(context.notify_idle(queue.name))
    elif queue.policy.is_keyed:
        notifications.append(context.bind("notify_leftover", queue.table_name, queue=queue.name))
    return SettlePlan(queue, settlements, tuple(statements), tuple(notifications))


def bind_complete(
    context: Context,
    queue: Queue,
    leases: Iterable[Lease],
    unfenced: Iterable[UUID],
    outputs: dict[UUID, str],
    elsewhere: Sequence[UUID] = (),
    lock_wait: str | None = None,
) -> BoundStatement:
    """The statement that completes these jobs."""
    # Most handlers return nothing: without outputs the statement has no document to search.
    given = [f'"{id}":{output}' for id, output in outputs.items() if output != "null"]
    return context.bind(
        "complete_with_copy" if queue.on_complete else "complete",
        queue.table_name,
        queue=queue.name,
        outputs="{" + ",".join(given) + "}" if given else None,
        elsewhere=uuid_array(elsewhere) if elsewhere else None,
        lock_wait=lock_wait,
        **lease_arrays(leases, unfenced),
    )


def bind_fail(
    context: Context,
    queue: Queue,
    leases: Iterable[Lease],
    unfenced: Iterable[UUID],
    failures: dict[UUID, Failure],
    elsewhere: Sequence[UUID] = (),
    lock_wait: str | None = None,
) -> list[BoundStatement]:
    """The statements that fail these attempts."""
    # Two statements with the same parameters, in one transaction: the second ends the jobs that the first left.
    given = ",".join(f'"{id}":[{failure.as_json()}]' for id, failure in failures.items())
    values = lease_arrays(leases, unfenced) | {"queue": queue.name, "failures": "{" + given + "}"}
    if elsewhere:
        values["elsewhere"] = uuid_array(elsewhere)
    if lock_wait:
        values["lock_wait"] = lock_wait
    return [context.bind(name, queue.table_name, **values) for name in ("retry_failed", "fail")]


def _read_completed(result: PGresult, settlements: Settlements) -> tuple[list[UUID], bool]:
    """The ids that were completed, and whether the queue wants completion jobs."""
    if not result.ntuples:
        return [], False
    first, on_complete = read_row(result, 0)[:2]
    if first is not None and result.ntuples == len(settlements.completed):
        # Nearly always all of them were completed, and the rows need not be read.
        return [lease.id for lease, _ in settlements.completed], on_complete
    return [row[0] for row in read_rows(result) if row[0] is not None], on_complete
