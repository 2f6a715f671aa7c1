"""Operations that end attempts: completed, failed or released."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar
from uuid import UUID

import attrs

from trioboss.model.check import check_flag
from trioboss.model.described_error import describe_error, error_line
from trioboss.model.handed_job import HandedJob
from trioboss.model.job import Lease, Settled
from trioboss.model.payload import encode
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Failure, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_lock_not_available, is_rejected, is_unique_violation
from trioboss.postgres.operation import Batch, InSavepoint, Operation
from trioboss.postgres.wire import read_rows
from trioboss.store.context import Context, lease_arrays, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.settle_plan import bind_complete, bind_fail, plan_settling
from trioboss.store.targets import Targets, parse_targets

__all__ = ["SettleOperations", "once_more_if_taken"]

T = TypeVar("T")

# How long settlements wait for a lock of another transaction, after one has waited for `LOCK_WAIT` in vain: that
# transaction is then probably idle and will not end soon.
_SHORT_LOCK_WAIT = "20ms"
# After so many settlements that waited in vain, all that are left are postponed without another try.
_MOST_WAITS = 10
_NO_REASON = "failed by its handler"
# The beginning of the errors that `_settle_alone` writes in the place of an output or error that was rejected.
_UNWRITABLE = '{"message": "its '


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
        include_queued: bool = False,
    ) -> Operation[Settled]:
        """Complete active jobs. ``handled``: the jobs whose handler calls this, which may name them by their ids.
        ``include_queued``: also jobs that are queued, given by id, or as they were read while they were queued.
        """

        def end(queue: Queue) -> Operation[set[UUID]]:
            outputs = dict.fromkeys(asked.ids, text)
            statement = bind_complete(
                self._context, queue, asked.leases, asked.unfenced, outputs, asked.elsewhere
            )
            # Queued jobs first: one that is claimed in between is active then, and completed as such.
            statements = (*waiting(queue), statement)
            results = (yield self._ending(queue, statements, asked.ids, own=own))[0]
            done = {row[0] for result in results[: len(statements) - 1] for row in read_rows(result)}
            rows = read_rows(results[len(statements) - 1])
            if rows and rows[0][1] and not queue.on_complete:
                # The queue wants completion jobs since it was cached; no active job was completed.
                return done | (yield from end((yield from self._context.reload(name))))
            return done | {row[0] for row in rows if row[0] is not None}

        def waiting(queue: Queue) -> tuple[BoundStatement, ...]:
            if not include_queued:
                return ()
            outputs = "{" + ",".join(f'"{id}":{text}' for id in asked.unleased) + "}"
            values = {"queue": name, "ids": uuid_array(asked.unleased), "outputs": outputs}
            return (self._context.bind("complete_queued", queue.table_name, **values),)

        check_flag("include_queued", include_queued)

        asked = parse_targets(name, targets, handled)
        text = "null" if output is None else encode(output, "output", self._context.max_bytes)
        done = yield from self._context.on_queue(name, end, may_miss=True)
        asked.report(dict.fromkeys(done, JobState.COMPLETED), own=own)
        return asked.answer(done, "queued or active" if include_queued else "active")

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
            statements = tuple(bind_fail(self._context, queue, leases, unfenced, failures, elsewhere))
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

    # -- for the runtime: many at once, fenced, answered by the new states

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
        # Others may be locked since, and a job that is queued again may need a slot that a transaction has taken.
        states = yield from self.settle(name, settlements.without(postponed), rejected, postponed)
        return states, postponed

    def _settle_all(
        self, name: str, settlements: Settlements, *, waits: bool
    ) -> Operation[dict[UUID, JobState]]:
        lock_wait = None if waits else _SHORT_LOCK_WAIT

        def run(queue: Queue) -> Operation[dict[UUID, JobState]]:
            plan = plan_settling(self._context, queue, settlements, lock_wait)
            results = yield Batch(plan.statements, plan.notifications)
            settled, declined = plan.read(results[0])
            if declined:
                again = Settlements(settlements.completed)
                reloaded = yield from self._context.reload(name)
                plan = plan_settling(self._context, reloaded, again, lock_wait)
                settled |= plan.read((yield Batch(plan.statements, plan.notifications))[0])[0]
            return settled

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
        return Batch((*statements, self._context.bind("notify_changed", ids=array), *notify))
