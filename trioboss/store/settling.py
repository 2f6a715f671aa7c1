"""Operations that end attempts: completed, failed or released. The statements that settle are built only here."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

import attrs

from trioboss.model.described_error import describe_error, error_line
from trioboss.model.handed_job import HandedJob
from trioboss.model.job import Lease, Settled
from trioboss.model.payload import encode
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_rejected, is_unique_violation
from trioboss.postgres.operation import Batch, InSavepoint, Operation
from trioboss.postgres.wire.results import PGresult, read_row, read_rows
from trioboss.store.context import Context
from trioboss.store.parameters import lease_arrays, text_array, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.targets import Targets, parse_targets

__all__ = ["SettleOperations", "SettlePlan", "once_more_if_taken", "plan_settling"]

T = TypeVar("T")

_NO_REASON = "failed by its handler"
_UNWRITABLE = (
    '{"message": "its '  # how the errors begin that stand for an output or an error which was rejected
)


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


def plan_settling(context: Context, queue: Queue, settlements: Settlements) -> SettlePlan:
    """How to settle these attempts on a connection of our own."""
    if not settlements:
        return SettlePlan(queue, settlements, (), ())
    statements: list[BoundStatement] = []
    ended: list[UUID] = []
    if settlements.completed:
        outputs = {lease.id: output for lease, output in settlements.completed}
        leases = [lease for lease, _ in settlements.completed]
        statements.append(_complete(context, queue, leases, (), outputs))
        ended += outputs
    if settlements.failed:
        failures = {lease.id: failure for lease, failure in settlements.failed}
        statements += _fail(context, queue, [lease for lease, _ in settlements.failed], (), failures)
        ended += failures
    if settlements.released:
        statements.append(_release(context, queue, settlements.released))
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


def _complete(
    context: Context,
    queue: Queue,
    leases: Iterable[Lease],
    unfenced: Iterable[UUID],
    outputs: dict[UUID, str],
    elsewhere: Sequence[UUID] = (),
) -> BoundStatement:
    # Most handlers return nothing: without outputs the statement has no document to search.
    given = [f'"{id}":{output}' for id, output in outputs.items() if output != "null"]
    return context.bind(
        "complete_with_copy" if queue.on_complete else "complete",
        queue.table_name,
        queue=queue.name,
        outputs="{" + ",".join(given) + "}" if given else None,
        elsewhere=uuid_array(elsewhere) if elsewhere else None,
        **lease_arrays(leases, unfenced),
    )


def _fail(
    context: Context,
    queue: Queue,
    leases: Iterable[Lease],
    unfenced: Iterable[UUID],
    failures: dict[UUID, Failure],
    elsewhere: Sequence[UUID] = (),
) -> list[BoundStatement]:
    # Two statements with the same parameters, in one transaction: the second ends the jobs that the first left.
    given = ",".join(f'"{id}":[{failure.as_json()}]' for id, failure in failures.items())
    values = lease_arrays(leases, unfenced) | {"queue": queue.name, "failures": "{" + given + "}"}
    if elsewhere:
        values["elsewhere"] = uuid_array(elsewhere)
    return [context.bind(name, queue.table_name, **values) for name in ("retry_failed", "fail")]


def _release(context: Context, queue: Queue, leases: Iterable[Lease]) -> BoundStatement:
    return context.bind("release", queue.table_name, queue=queue.name, **lease_arrays(leases))


def _read_completed(result: PGresult, settlements: Settlements) -> tuple[list[UUID], bool]:
    """The ids that were completed, and whether the queue wants completion jobs."""
    if not result.ntuples:
        return [], False
    first, on_complete = read_row(result, 0)[:2]
    if first is not None and result.ntuples == len(settlements.completed):
        return [
            lease.id for lease, _ in settlements.completed
        ], on_complete  # nearly always; no need to read the rows
    return [row[0] for row in read_rows(result) if row[0] is not None], on_complete


def _describe_quarantine(reason: str) -> str | None:
    return describe_error(f"quarantined: {reason}")


def once_more_if_taken(
    context: Context, name: str, operation: Callable[[Queue], Operation[T]]
) -> Operation[T]:
    """Run an operation that queues jobs again; once more if one of them finds its slot taken.

    Another transaction took the slot, and committed after our statement had checked it. Now the check sees that.
    """
    try:
        return (yield from context.on_queue(name, operation, may_miss=True))
    except Exception as error:
        if not is_unique_violation(error):
            raise
    return (yield from context.on_queue(name, operation, may_miss=True))


@attrs.frozen
class SettleOperations:
    """End attempts. ``own`` says whether the transaction is ours or the caller's."""

    _context: Context

    # -- for callers: one or many, answered by Settled

    def complete(
        self,
        name: str,
        targets: Targets,
        output: object,
        *,
        own: bool,
        handled: Sequence[HandedJob] = (),
    ) -> Operation[Settled]:
        """Complete active jobs. ``handled``: the jobs whose handler calls this, which may name them by their ids."""

        def end(queue: Queue) -> Operation[set[UUID]]:
            outputs = dict.fromkeys(asked.ids, text)
            statement = _complete(
                self._context, queue, asked.leases, asked.unfenced, outputs, asked.elsewhere
            )
            rows = read_first((yield self._ending(queue, (statement,), asked.ids, own=own)))
            if rows and rows[0][1] and not queue.on_complete:
                # The queue wants completion jobs since it was cached; nothing was completed.
                return (yield from end((yield from self._context.reload(name))))
            return {row[0] for row in rows if row[0] is not None}

        asked = parse_targets(name, targets, handled)
        text = "null" if output is None else encode(output, "output", self._context.max_bytes)
        done = yield from self._context.on_queue(name, end, may_miss=True)
        asked.report(dict.fromkeys(done, JobState.COMPLETED), own=own)
        return asked.answer(done, "active")

    def fail(
        self,
        name: str,
        targets: Targets,
        error: object,
        *,
        own: bool,
        handled: Sequence[HandedJob] = (),
    ) -> Operation[Settled]:
        """Fail active attempts. ``handled`` as in `complete`."""

        def end(queue: Queue) -> Operation[dict[UUID, JobState]]:
            failures = dict.fromkeys(asked.ids, failure)
            leases, unfenced, elsewhere = asked.leases, asked.unfenced, asked.elsewhere
            statements = tuple(_fail(self._context, queue, leases, unfenced, failures, elsewhere))
            # A slot that is taken meanwhile aborts the statements, but must not abort the caller's transaction.
            batch = self._ending(queue, statements, asked.ids, own=own, frees=True)
            results = yield batch if own else InSavepoint(batch)
            rows = [row for result in results[0][:2] for row in read_rows(result)]
            return {row[0]: JobState(row[1]) for row in rows}

        asked = parse_targets(name, targets, handled)
        failure = Failure(describe_error(error, self._context.redact))
        states = yield from once_more_if_taken(self._context, name, end)
        asked.report(states, error_line(_NO_REASON if error is None else error), own=own)
        return asked.answer(set(states), "active")

    def touch(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Renew the leases of active jobs."""

        def renew(queue: Queue) -> Operation[set[UUID]]:
            values = lease_arrays(asked.leases, asked.unfenced) | {"queues": text_array([name])}
            touch = self._context.bind("touch", queue.table_name, async_commit=own, **values)
            return {row[0] for row in read_first((yield Batch((touch,))))}

        asked = parse_targets(name, targets)
        done = yield from self._context.on_queue(name, renew, may_miss=True)
        return asked.answer(done, "active")

    # -- for the runtime: many at once, fenced, answered by the new states

    def settle(
        self, name: str, settlements: Settlements, rejected: dict[UUID, str] | None = None
    ) -> Operation[dict[UUID, JobState]]:
        """Settle attempts; return the new states of the jobs whose lease was still held.

        A job for which the database accepts no other end fails; ``rejected`` gets its id, and why. It never keeps the
        others from being settled.
        """
        reasons = {} if rejected is None else rejected
        try:
            return (yield from self._settle_all(name, settlements))
        except Exception as error:
            if not is_rejected(error):
                raise
            reason = error_line(error)
        if len(settlements) == 1:
            return (yield from self._settle_alone(name, settlements, reason, reasons))
        states: dict[UUID, JobState] = {}
        for half in settlements.halves():
            states |= yield from self.settle(name, half, reasons)
        return states

    def _settle_all(self, name: str, settlements: Settlements) -> Operation[dict[UUID, JobState]]:

        def run(queue: Queue) -> Operation[dict[UUID, JobState]]:
            plan = plan_settling(self._context, queue, settlements)
            results = yield Batch(plan.statements, plan.notifications)
            settled, declined = plan.read(results[0])
            if declined:
                again = Settlements(settlements.completed)
                plan = plan_settling(self._context, (yield from self._context.reload(name)), again)
                settled |= plan.read((yield Batch(plan.statements, plan.notifications))[0])[0]
            return settled

        return (yield from once_more_if_taken(self._context, name, run)) if settlements else {}

    def _settle_alone(
        self, name: str, settlements: Settlements, reason: str, rejected: dict[UUID, str]
    ) -> Operation[dict[UUID, JobState]]:
        """Settle one attempt whose end the database has rejected: a completed one fails instead, one that cannot even
        fail is quarantined.
        """
        for lease, _ in settlements.completed:
            rejected[lease.id] = reason
            failure = Failure(describe_error(f"its output cannot be written: {reason}"))
            return (yield from self.settle(name, Settlements(failed=[(lease, failure)]), rejected))
        (lease,) = (*(lease for lease, _ in settlements.failed), *settlements.released)
        rejected[lease.id] = reason
        for _, failure in settlements.failed:
            text = describe_error(f"its error cannot be written: {reason}")
            if failure.error != text and not (failure.error or "").startswith(_UNWRITABLE):
                plain = attrs.evolve(failure, error=text)
                return (yield from self.settle(name, Settlements(failed=[(lease, plain)]), rejected))
        return (yield from self._quarantine(name, lease, reason))

    def _quarantine(self, name: str, lease: Lease, reason: str) -> Operation[dict[UUID, JobState]]:
        """Fail a job without evaluating what it carries. If that is rejected, too, its lease is left to expire."""

        def end(queue: Queue) -> Operation[dict[UUID, JobState]]:
            values = lease_arrays([lease]) | {"queue": name, "reason": _describe_quarantine(reason)}
            results = yield Batch((self._context.bind("quarantine", queue.table_name, **values),))
            return {row[0]: JobState.FAILED for row in read_first(results)}

        try:
            return (yield from self._context.on_queue(name, end, may_miss=True))
        except Exception as error:
            if not is_rejected(error):
                raise
        return {}

    def quarantine_unsound(self, name: str) -> Operation[dict[UUID, str]]:
        """After a statement over many jobs of a queue was rejected: fail the jobs that can be the reason; return what
        is wrong with each.
        """

        def end(queue: Queue) -> Operation[dict[UUID, str]]:
            values = {"queue": name, "reason": _describe_quarantine("a value of the job is out of range")}
            results = yield Batch((self._context.bind("quarantine_unsound", queue.table_name, **values),))
            return {row[0]: row[1] for row in read_first(results)}

        return (yield from self._context.on_queue(name, end))

    def complete_leases(self, name: str, completed: Sequence[tuple[Lease, str]]) -> Operation[set[UUID]]:
        """Complete attempts; return the ids of those whose lease was still held."""
        return set((yield from self.settle(name, Settlements(completed=completed))))

    def fail_leases(
        self,
        name: str,
        failed: Sequence[tuple[Lease, Failure]],
        rejected: dict[UUID, str] | None = None,
    ) -> Operation[dict[UUID, JobState]]:
        """Fail attempts; return the new states of the jobs whose lease was still held."""
        return (yield from self.settle(name, Settlements(failed=failed), rejected))

    def release_leases(self, name: str, leases: Sequence[Lease]) -> Operation[None]:
        """Queue the jobs again, with no retry spent."""
        yield from self.settle(name, Settlements(released=leases))

    def _ending(
        self,
        queue: Queue,
        statements: tuple[BoundStatement, ...],
        ids: Iterable[UUID],
        *,
        own: bool,
        frees: bool = False,
    ) -> Batch:
        """Statements that end jobs, and the notification of the waiters. ``frees``: jobs may run again."""
        array = uuid_array(ids)
        wakes = frees or queue.policy.is_keyed
        if own:
            notify = (self._context.notify_idle(queue.name),) if wakes else ()
            return Batch(statements, (self._context.bind("notify_waiters", ids=array), *notify))
        notify = (self._context.bind("notify_queue", queue=queue.name),) if wakes else ()
        return Batch((*statements, self._context.bind("notify_ended", ids=array), *notify))
