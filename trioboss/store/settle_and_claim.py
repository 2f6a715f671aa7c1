"""The operation of the dispatchers: settle finished attempts and claim further jobs, in one round trip."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

import attrs

from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Claim, ClaimRequest, SettledAndClaimed, Settlements
from trioboss.model.states import JobState
from trioboss.postgres.errors import is_unique_violation
from trioboss.postgres.operation import Batch, InParallel, Operation
from trioboss.postgres.wire import BoundStatement
from trioboss.postgres.wire.results import PGresult, read_row, read_rows
from trioboss.store.claiming import ClaimOperations
from trioboss.store.context import Context
from trioboss.store.parameters import fence
from trioboss.store.settling import SettleOperations

__all__ = ["SettleAndClaimOperations"]

# Spelt once: a function inside another is annotated at each call.
_SettleAndClaim: TypeAlias = Operation[SettledAndClaimed]
_CROWD = 100  # jobs from which on two connections are faster than one


@attrs.frozen
class SettleAndClaimOperations:
    """Settle and claim together."""

    _context: Context

    def settle_and_claim(
        self,
        name: str,
        settlements: Settlements,
        request: ClaimRequest | None,
        *,
        promote_due: bool = True,
        idle: bool | None = None,
        notify: str | None = None,
    ) -> Operation[SettledAndClaimed]:
        """Settle, then claim. ``idle`` sets or removes the worker's idle marker first; None leaves it as it is.
        ``notify`` is sent on the channel.

        Where a queue is not keyed, settling and claiming are one transaction, with one wait for the disk. A keyed
        queue gets two, because the key lock must not be held while the disk is written. Many completed jobs and a
        claim of many jobs do not depend on each other: they are executed in parallel.
        """

        def execute(queue: Queue) -> _SettleAndClaim:
            keyed = queue.policy.is_keyed
            mark = self._marking(queue, request, idle)
            settle, tell = self._settling(queue, settlements)
            together = not (keyed or mark) and _is_crowd(settlements, request)
            # What is settled has to be on disk when it is answered; what is claimed has not.
            lazy = keyed or together or not settle
            claim = self._claiming(queue, request, promote_due=promote_due or keyed, lazy=lazy)
            if notify is not None:
                tell.append(self._context.step("announce", message=notify))
            done, follow_up = tuple(settle.values()), tuple(tell)
            batch: Batch | InParallel = Batch(
                mark, (*done, *claim), follow_up=follow_up, await_follow_up=not claim
            )
            if keyed and claim:
                batch = Batch(mark, done, claim, follow_up=follow_up)
            elif together:
                batch = InParallel((Batch(done, follow_up=follow_up), Batch(claim)))
            results = [result for transaction in (yield batch) for result in transaction][len(mark) :]
            answers = dict(zip(settle, results, strict=False))
            settled = (yield from self._read_settled(queue, settlements, answers)) if answers else {}
            claimed = results[len(settle) : len(settle) + len(claim)]
            if request is None:
                return SettledAndClaimed(settled, None)
            return SettledAndClaimed(settled, (yield from self._read_claim(queue, request, claimed)))

        try:
            return (yield from self._context.on_queue(name, execute))
        except Exception as error:
            if not is_unique_violation(error):
                raise
        return SettledAndClaimed((yield from self._one_by_one(name, settlements)), None)

    def _settling(
        self, queue: Queue, settlements: Settlements
    ) -> tuple[dict[str, BoundStatement], list[BoundStatement]]:
        """The steps that settle, by kind, and those that tell who waits for an end, or for jobs to run again."""
        steps: dict[str, BoundStatement] = {}
        tell: list[BoundStatement] = []
        if not settlements:
            return steps, tell
        complete = "complete_and_tell" if queue.on_complete else "complete"
        failed = [(lease, failure.as_json()) for lease, failure in settlements.failed]
        released = [(lease, "null") for lease in settlements.released]
        for kind, statement, entries in (
            ("complete", complete, settlements.completed),
            ("fail", "fail", failed),
            ("release", "release", released),
        ):
            if entries:
                values = fence((lease.id, lease.attempt, lease.started_on, rest) for lease, rest in entries)
                steps[kind] = self._context.step(statement, queue.table_name, queue=queue.name, **values)
                if kind != "release":
                    tell.append(self._context.step("tell_watchers", ids=values["ids"]))
        if failed or released:
            tell.append(self._context.wake(queue.name))
        elif steps and queue.policy.is_keyed:
            tell.append(self._context.step("pass_on", queue.table_name, queue=queue.name))
        return steps, tell

    def _claiming(
        self, queue: Queue, request: ClaimRequest | None, *, promote_due: bool, lazy: bool
    ) -> tuple[BoundStatement, ...]:
        if request is None:
            return ()
        verbs = ClaimOperations(self._context)
        return (
            *(verbs.preparing(queue, request) if promote_due else ()),
            *verbs.claiming(queue, request, lazy=lazy),
        )

    def _read_claim(
        self, queue: Queue, request: ClaimRequest, results: Sequence[PGresult]
    ) -> Operation[Claim]:
        verbs = ClaimOperations(self._context)
        claim = verbs.read(queue, request, results)
        return (yield from verbs.look_again(queue, request, claim, patient=False))

    def _marking(
        self, queue: Queue, request: ClaimRequest | None, idle: bool | None
    ) -> tuple[BoundStatement, ...]:
        if idle is None or request is None:
            return ()
        name = "mark_asleep" if idle else "mark_awake"
        return (self._context.step(name, queue=queue.name, worker=request.worker),)

    def _read_settled(
        self, queue: Queue, settlements: Settlements, results: Mapping[str, PGresult]
    ) -> Operation[dict[UUID, JobState]]:
        """The states of what was settled, after settling what the statements declined although it is ours."""
        settled: dict[UUID, JobState] = {}
        if "complete" in results:
            done, on_complete = _read_completed(results["complete"], settlements)
            settled |= dict.fromkeys(done, JobState.COMPLETED)
            if on_complete and not queue.on_complete:
                self._context.forget(queue.name)
                settled |= yield from self._one_by_one(queue.name, Settlements(settlements.completed))
        if "fail" in results:
            settled |= {row[0]: JobState(row[1]) for row in read_rows(results["fail"])}
        if "release" in results:
            settled |= {row[0]: JobState.RETRY for row in read_rows(results["release"])}
            if left := [lease for lease in settlements.released if lease.id not in settled]:
                yield from SettleOperations(self._context).release_leases(queue.name, left)
        return settled

    def _one_by_one(self, name: str, settlements: Settlements) -> Operation[dict[UUID, JobState]]:
        """Each kind in a transaction of its own, where the one for all was refused."""
        verbs = SettleOperations(self._context)
        settled: dict[UUID, JobState] = {}
        if settlements.completed:
            done = yield from verbs.complete_leases(name, settlements.completed)
            settled |= dict.fromkeys(done, JobState.COMPLETED)
        if settlements.failed:
            settled |= yield from verbs.fail_leases(name, settlements.failed)
        if settlements.released:
            yield from verbs.release_leases(name, settlements.released)
            settled |= dict.fromkeys((lease.id for lease in settlements.released), JobState.RETRY)
        return settled


def _is_crowd(settlements: Settlements, request: ClaimRequest | None) -> bool:
    """Whether two connections are faster. A failed or released job may be claimed again: it is settled first."""
    only_completed = not (settlements.failed or settlements.released)
    return only_completed and request is not None and min(len(settlements.completed), request.limit) >= _CROWD


def _read_completed(result: PGresult, settlements: Settlements) -> tuple[list[UUID], bool]:
    """The ids that were completed, and whether the queue wants completion jobs. Nearly always it is all of them."""
    if not result.ntuples:
        return [], False
    first, on_complete = read_row(result, 0)[:2]
    if first is not None and result.ntuples == len(settlements.completed):
        return [lease.id for lease, _ in settlements.completed], on_complete
    return [row[0] for row in read_rows(result) if row[0] is not None], on_complete
