"""The verb of the runtime: settle what has ended and lease what is wanted, in one round trip."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias
from uuid import UUID

import attrs

from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Claim, ClaimRequest, SettledAndClaimed, Settlements
from trioboss.model.states import JobState
from trioboss.postgres.operation import Batch, InParallel, Operation
from trioboss.postgres.results import PGresult, read_row, read_rows
from trioboss.postgres.verdicts import unique_is_violated
from trioboss.postgres.wire import BoundStatement
from trioboss.store.claiming import ClaimOperations
from trioboss.store.context import Context
from trioboss.store.parameters import fence
from trioboss.store.settling import SettleOperations

__all__ = ["SettleAndClaimOperations"]

# Spelt once: a function inside another is annotated at each call.
_Exchange: TypeAlias = Operation[SettledAndClaimed]
_CROWD = 100  # jobs from which on two connections are faster than one


@attrs.frozen
class SettleAndClaimOperations:
    """Settle and claim together."""

    _context: Context

    def exchange(
        self,
        name: str,
        settlements: Settlements,
        wanted: ClaimRequest | None,
        *,
        ripen: bool = True,
        asleep: bool | None = None,
        say: str | None = None,
    ) -> Operation[SettledAndClaimed]:
        """Settle, then claim. ``asleep`` sets or removes the worker's mark first; None leaves it as it is.
        ``say`` goes out on the channel.

        Where a queue is not keyed, settling and claiming are one transaction, with one wait for the disk. A
        keyed queue gets two, because the lock that decides whose turn it is must not wait for the disk. Many that
        ended well and many that are wanted have nothing to do with each other: they go at the same time.
        """

        def trade(queue: Queue) -> _Exchange:
            keyed = queue.policy.is_keyed
            mark = self._marking(queue, wanted, asleep)
            settle, tell = self._settling(queue, settlements)
            together = not (keyed or mark) and _is_crowd(settlements, wanted)
            # What is settled has to be on disk when it is answered; what is claimed has not.
            lazy = keyed or together or not settle
            claim = self._claiming(queue, wanted, ripen=ripen or keyed, lazy=lazy)
            if say is not None:
                tell.append(self._context.step("announce", message=say))
            done, follow_up = tuple(settle.values()), tuple(tell)
            request: Batch | InParallel = Batch(mark, (*done, *claim), follow_up=follow_up, patient=not claim)
            if keyed and claim:
                request = Batch(mark, done, claim, follow_up=follow_up)
            elif together:
                request = InParallel((Batch(done, follow_up=follow_up), Batch(claim)))
            results = [result for transaction in (yield request) for result in transaction][len(mark) :]
            answers = dict(zip(settle, results, strict=False))
            settled = (yield from self._read_settled(queue, settlements, answers)) if answers else {}
            claimed = results[len(settle) : len(settle) + len(claim)]
            if wanted is None:
                return SettledAndClaimed(settled, None)
            return SettledAndClaimed(settled, (yield from self._read_claim(queue, wanted, claimed)))

        try:
            return (yield from self._context.on_queue(name, trade))
        except Exception as error:
            if not unique_is_violated(error):
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
        self, queue: Queue, wanted: ClaimRequest | None, *, ripen: bool, lazy: bool
    ) -> tuple[BoundStatement, ...]:
        if wanted is None:
            return ()
        verbs = ClaimOperations(self._context)
        return (*(verbs.preparing(queue, wanted) if ripen else ()), *verbs.claiming(queue, wanted, lazy=lazy))

    def _read_claim(
        self, queue: Queue, wanted: ClaimRequest, results: Sequence[PGresult]
    ) -> Operation[Claim]:
        verbs = ClaimOperations(self._context)
        claim = verbs.read(queue, wanted, results)
        return (yield from verbs.look_again(queue, wanted, claim, patient=False))

    def _marking(
        self, queue: Queue, wanted: ClaimRequest | None, asleep: bool | None
    ) -> tuple[BoundStatement, ...]:
        if asleep is None or wanted is None:
            return ()
        name = "mark_asleep" if asleep else "mark_awake"
        return (self._context.step(name, queue=queue.name, worker=wanted.worker),)

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


def _is_crowd(settlements: Settlements, wanted: ClaimRequest | None) -> bool:
    """Whether two connections are worth it. Who failed or was released may be wanted again: that has to come first."""
    only_completed = not (settlements.failed or settlements.released)
    return only_completed and wanted is not None and min(len(settlements.completed), wanted.limit) >= _CROWD


def _read_completed(result: PGresult, settlements: Settlements) -> tuple[list[UUID], bool]:
    """The ids that were completed, and whether the queue wants completion jobs. Nearly always it is all of them."""
    if not result.ntuples:
        return [], False
    first, on_complete = read_row(result, 0)[:2]
    if first is not None and result.ntuples == len(settlements.completed):
        return [lease.id for lease, _ in settlements.completed], on_complete
    return [row[0] for row in read_rows(result) if row[0] is not None], on_complete
