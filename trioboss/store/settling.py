"""The statements that end attempts as completed, failed or released, how to read their results, and operations that
end attempts for actors. The dispatchers settle by settle_and_claim.py, callers by manual.py.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from typing import TypeVar
from uuid import UUID

import attrs

from trioboss.model.described_error import describe_error, error_line
from trioboss.model.job import Lease
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_lock_not_available, is_rejected, is_unique_violation
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import PGresult, read_row, read_rows
from trioboss.store.context import Context, lease_arrays, uuid_array
from trioboss.store.rows import read_first

__all__ = [
    "LOCK_WAIT",
    "CallerTerms",
    "SettleOperations",
    "SettlePlan",
    "once_more_if_taken",
    "plan_settling",
]

T = TypeVar("T")

LOCK_WAIT = "200ms"
"""How long a dispatcher waits for what another transaction has changed: longer than a busy one takes."""
# How long settlements wait for a lock of another transaction, after one has waited for `LOCK_WAIT` in vain: that
# transaction is then probably idle and will not end soon.
_SHORT_LOCK_WAIT = "20ms"
# After so many settlements that waited in vain, all that are left are postponed without another try.
_MOST_WAITS = 10
# How many attempts one statement fails or releases. Its joins compare each with each, because the planner cannot
# estimate how many there are: the 4,000 of a worker that was killed, or stops, took half a minute at once, and 1 s in
# pieces.
_PIECE = 100
# The beginning of the errors that `_settle_alone` writes in the place of an output or error that was rejected.
_UNWRITABLE = '{"message": "its '


# -- statements


@attrs.frozen
class CallerTerms:
    """The terms of a call. The defaults are those of a worker, which settles its own leases on its own connection."""

    unfenced: Set[UUID] = frozenset()
    """Jobs of which any active attempt is settled."""
    handlers_to_cancel: Sequence[UUID] = ()
    """Jobs whose handler is another one than the caller: their workers are notified."""
    own: bool = True
    """False: the transaction is the caller's, and everything is done within it."""


_WORKER = CallerTerms()


@attrs.frozen
class SettlePlan:
    """The statements that settle attempts of one queue, and how to read their results."""

    queue: Queue
    settlements: Settlements
    statements: tuple[BoundStatement, ...]
    """For one transaction, in the order completed, failed, released."""
    notifications: tuple[BoundStatement, ...]
    """Statements that notify the waiters for an end, and idle dispatchers if jobs may run now; for a transaction after
    it, which a caller may await or not; or for the same transaction, if that is the caller's.
    """

    def read(self, results: Sequence[PGresult]) -> tuple[dict[UUID, JobState], bool]:
        """The new states of the jobs that were settled; and whether completing was declined: the queue is not as it was
        cached, it gets completion jobs now, or keeps its completed jobs.
        """
        rest = list(results[: len(self.statements)])
        settled: dict[UUID, JobState] = {}
        declined = False
        if self.settlements.completed:
            done, declined = _read_completed(rest.pop(0), self.settlements)
            settled |= dict.fromkeys(done, JobState.COMPLETED)
        if self.settlements.failed:
            for _ in range(2 * len(_split(self.settlements.failed))):  # retry_failed.sql and fail.sql
                settled |= {row[0]: JobState(row[1]) for row in read_rows(rest.pop(0))}
        for result in rest:
            settled |= {row[0]: JobState.RETRY for row in read_rows(result)}
        return settled, declined


def plan_settling(
    context: Context,
    queue: Queue,
    settlements: Settlements,
    lock_wait: str | None = None,
    caller: CallerTerms = _WORKER,
) -> SettlePlan:
    """How to settle these attempts, and how long to wait for other transactions."""
    if not settlements:
        return SettlePlan(queue, settlements, (), ())
    statements: list[BoundStatement] = []
    ended: list[UUID] = []
    if settlements.completed:
        # Most handlers return nothing: without outputs the statement has no document to search.
        outputs = {lease.id: output for lease, output in settlements.completed if output != "null"}
        leases = [lease for lease, _ in settlements.completed]
        statements.append(_bind_complete(context, queue, leases, outputs, lock_wait, caller))
        ended += [lease.id for lease in leases]
    if settlements.failed:
        failures = {lease.id: failure for lease, failure in settlements.failed}
        leases = [lease for lease, _ in settlements.failed]
        statements += _bind_fail(context, queue, leases, failures, lock_wait, caller)
        ended += failures
    # In the order of the ids, as in all statements that lock several jobs.
    values = {"queue": queue.name, "lock_wait": lock_wait}
    for piece in _split(_in_order(settlements.released)):
        statements.append(context.bind("release", queue.table_name, **values, **lease_arrays(piece)))
    frees = bool(settlements.failed or settlements.released)
    notifications = _notifications(context, queue, ended, frees=frees, own=caller.own)
    return SettlePlan(queue, settlements, tuple(statements), notifications)


def _notifications(
    context: Context, queue: Queue, ended: Sequence[UUID], *, frees: bool, own: bool
) -> tuple[BoundStatement, ...]:
    """The statements that notify of these ends. ``frees``: a job may be queued again."""
    notify_waiters = "notify_waiters" if own else "notify_changed"
    found = [context.bind(notify_waiters, ids=uuid_array(ended))] if ended else []
    if not own:
        # Sent if and when the caller commits: only then can others claim what this frees.
        wakes = frees or queue.policy.is_keyed
        found += [context.bind("notify_queue", queue=queue.name)] if wakes else []
    elif frees:
        # Another dispatcher may claim a failed or released job at once.
        found.append(context.notify_idle(queue.name))
    elif queue.policy.is_keyed:
        # A completed job lets others run only if it owned a key, and then the dispatcher that settles it may have
        # claimed them along with it: the statement checks that.
        found.append(context.bind("notify_leftover", queue.table_name, queue=queue.name))
    return tuple(found)


def _complete_statement(queue: Queue) -> str:
    # Each but complete_with_copy.sql declines if the queue is not as it was cached.
    if queue.on_complete:
        return "complete_with_copy"
    return "complete" if queue.keep_completed else "complete_unkept"


def _bind_complete(
    context: Context,
    queue: Queue,
    leases: Iterable[Lease],
    outputs: dict[UUID, str],
    lock_wait: str | None,
    caller: CallerTerms,
) -> BoundStatement:
    given = [f'"{id}":{output}' for id, output in outputs.items()]
    cancel = caller.handlers_to_cancel
    return context.bind(
        _complete_statement(queue),
        queue.table_name,
        queue=queue.name,
        outputs="{" + ",".join(given) + "}" if given else None,
        handlers_to_cancel=uuid_array(cancel) if cancel else None,
        lock_wait=lock_wait,
        **lease_arrays(leases, caller.unfenced),
    )


def _bind_fail(
    context: Context,
    queue: Queue,
    leases: Iterable[Lease],
    failures: dict[UUID, Failure],
    lock_wait: str | None,
    caller: CallerTerms,
) -> list[BoundStatement]:
    values: dict[str, object] = {"queue": queue.name, "lock_wait": lock_wait}
    if caller.handlers_to_cancel:
        values["handlers_to_cancel"] = uuid_array(caller.handlers_to_cancel)
    statements = []
    for piece in _split(_in_order(leases)):
        unfenced = [lease.id for lease in piece if lease.id in caller.unfenced]
        given = ",".join(f'"{lease.id}":[{failures[lease.id].as_json()}]' for lease in piece)
        terms = lease_arrays(piece, unfenced) | values | {"failures": "{" + given + "}"}
        # Two statements with the same parameters, in one transaction: the second ends the jobs that the first left.
        statements += [context.bind(name, queue.table_name, **terms) for name in ("retry_failed", "fail")]
    return statements


def _in_order(leases: Iterable[Lease]) -> list[Lease]:
    """In the order in which one statement locks them, so that two transactions do not wait for each other."""
    return sorted(leases, key=lambda lease: lease.id)


def _split(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + _PIECE] for start in range(0, len(items), _PIECE)]


def _read_completed(result: PGresult, settlements: Settlements) -> tuple[list[UUID], bool]:
    """The ids that were completed, and whether the statement declined."""
    if not result.ntuples:
        return [], False
    first, declined = read_row(result, 0)[:2]
    if first is not None and result.ntuples == len(settlements.completed):
        # Nearly always all of them were completed, and the rows need not be read.
        return [lease.id for lease, _ in settlements.completed], declined
    return [row[0] for row in read_rows(result) if row[0] is not None], declined


# -- operations


def _describe_quarantine(reason: str) -> str | None:
    return describe_error(f"quarantined: {reason}")


def once_more_if_taken(
    context: Context, name: str, operation: Callable[[Queue], Operation[T]]
) -> Operation[T]:
    """Run an operation that queues jobs again; once more if one of them finds its policy slot taken.

    Another transaction took it, and committed after our statement had checked it. Now the check sees that.
    """
    try:
        return (yield from context.on_queue(name, operation, may_miss=True))
    except Exception as error:
        if not is_unique_violation(error):
            raise
    # Once is enough: the check of the second statement is newer than the commit that it met.
    return (yield from context.on_queue(name, operation, may_miss=True))


@attrs.frozen
class SettleOperations:
    """End attempts, many at once, fenced; the answer is the new states."""

    _context: Context

    def settle(
        self,
        name: str,
        settlements: Settlements,
        rejected: dict[UUID, str] | None = None,
        postponed: set[UUID] | None = None,
    ) -> Operation[dict[UUID, JobState]]:
        """Settle attempts; return the new states of the jobs whose lease was still held.

        A job for which the database accepts no other end fails; ``rejected`` gets its id, and why. ``postponed`` gets
        the ids of those that would have to wait for another transaction; without it they wait. Neither keeps the
        others from being settled.
        """
        reasons = {} if rejected is None else rejected
        try:
            return (yield from self._settle_all(name, settlements, waits=postponed is None))
        except Exception as error:
            if postponed is not None and is_lock_not_available(error):
                if len(settlements) == 1 or len(postponed) >= _MOST_WAITS:
                    postponed |= {lease.id for lease in settlements.leases}
                    return {}
            elif not is_rejected(error):
                raise
            elif len(settlements) == 1:
                settle = partial(self.settle, name, rejected=reasons, postponed=postponed)
                return (yield from self._settle_alone(name, settlements, error_line(error), settle, reasons))
        states: dict[UUID, JobState] = {}
        # Some are rejected, or locked, and the error does not say which: halving finds one among n in log2(n) rounds.
        for half in settlements.halves():
            states |= yield from self.settle(name, half, reasons, postponed)
        return states

    def settle_unlocked(
        self, name: str, settlements: Settlements, rejected: dict[UUID, str]
    ) -> Operation[tuple[dict[UUID, JobState], set[UUID]]]:
        """Settle attempts as `settle` does, but wait for no other transaction; return the new states, and the ids of
        the jobs that are not settled, because one has changed them, or what they need, and is open.
        """

        def find_locked(queue: Queue) -> Operation[set[UUID]]:
            values = lease_arrays(settlements.leases) | {"queue": name}
            locked = self._context.bind("find_locked_leases", queue.table_name, **values)
            return {id for (id,) in read_first((yield Batch((locked,))))}

        postponed = yield from self._context.on_queue(name, find_locked)
        # Others may be locked since, and a job that is queued again may need a policy slot that a transaction took.
        states = yield from self.settle(name, settlements.without(postponed), rejected, postponed)
        return states, postponed

    def _settle_all(
        self, name: str, settlements: Settlements, *, waits: bool
    ) -> Operation[dict[UUID, JobState]]:
        lock_wait = None if waits else _SHORT_LOCK_WAIT

        def run(queue: Queue) -> Operation[dict[UUID, JobState]]:
            settled, declined = yield from settle(queue, settlements)
            if declined:
                self._context.forget(name)
                settled |= yield from self._context.on_queue(name, complete_again)
            return settled

        def complete_again(queue: Queue) -> Operation[dict[UUID, JobState]]:
            return (yield from settle(queue, Settlements(settlements.completed)))[0]

        def settle(queue: Queue, some: Settlements) -> Operation[tuple[dict[UUID, JobState], bool]]:
            plan = plan_settling(self._context, queue, some, lock_wait)
            results = yield Batch(plan.statements, plan.notifications)
            return plan.read(results[0])

        return (yield from once_more_if_taken(self._context, name, run)) if settlements else {}

    def _settle_alone(
        self,
        name: str,
        settlements: Settlements,
        reason: str,
        settle: Callable[[Settlements], Operation[dict[UUID, JobState]]],
        rejected: dict[UUID, str],
    ) -> Operation[dict[UUID, JobState]]:
        """Settle one attempt whose end the database has rejected: a completed one fails instead, one that cannot even
        fail is quarantined.
        """
        for lease, _ in settlements.completed:
            rejected[lease.id] = reason
            failure = Failure(describe_error(f"its output cannot be written: {reason}"))
            return (yield from settle(Settlements(failed=[(lease, failure)])))
        (lease,) = (*(lease for lease, _ in settlements.failed), *settlements.released)
        rejected[lease.id] = reason
        for _, failure in settlements.failed:
            text = describe_error(f"its error cannot be written: {reason}")
            if failure.error != text and not (failure.error or "").startswith(_UNWRITABLE):
                plain = attrs.evolve(failure, error=text)
                return (yield from settle(Settlements(failed=[(lease, plain)])))
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
            if not (is_rejected(error) or is_lock_not_available(error)):
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
