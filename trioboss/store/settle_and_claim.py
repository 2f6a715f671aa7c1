"""The operation of the dispatchers: settle finished attempts and claim further jobs, in one round trip."""

from typing import TypeAlias
from uuid import UUID

import attrs

from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import ClaimRequest, SettledAndClaimed, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_lock_not_available, is_rejected
from trioboss.postgres.operation import Batch, InParallel, Operation
from trioboss.postgres.wire import PGresult
from trioboss.store.claiming import ClaimOperations, ClaimPlan
from trioboss.store.context import Context
from trioboss.store.settling import LOCK_WAIT, SettleOperations, SettlePlan, plan_settling

__all__ = ["SettleAndClaimOperations"]

# Written once: a function inside another is annotated at each call.
_SettleAndClaim: TypeAlias = Operation[SettledAndClaimed]
_BULK = 100  # jobs from which on two connections are faster than one


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
        notify: str | None = None,
    ) -> Operation[SettledAndClaimed]:
        """Settle, then claim; without a request only settle. ``notify`` is sent on the channel."""

        def run(queue: Queue) -> _SettleAndClaim:
            settling = plan_settling(self._context, queue, settlements, LOCK_WAIT)
            if notify is not None:
                payload = self._context.bind("notify", payload=notify)
                settling = attrs.evolve(settling, notifications=(*settling.notifications, payload))
            if request is None:
                return (yield from self._settle_only(settling))
            # The idle marker is committed before the claim reads: either the claim sees a new job, or its sender sees
            # the marker.
            marker = self._marker(queue, request)
            claims = ClaimOperations(self._context)
            claiming, batch = self._batch(claims, settling, request, marker)
            answers = [result for transaction in (yield batch) for result in transaction][len(marker) :]
            settled = len(settling.statements)
            states = yield from self._read_settled(settling, answers[:settled])
            claim = claiming.read(self._context, answers[settled:])
            # Before the jobs reach a handler: they carry the options that their attempt runs with.
            claim = yield from claims.refresh_options(queue, claim)
            # The dispatcher claims again at once if there are more: it only must not wait while there are some.
            claim = yield from claims.claim_again(queue, request, claim, fill=False)
            return SettledAndClaimed(states, claim)

        if settlements.postponed:
            return (yield from self._settle_unlocked(name, settlements))
        try:
            return (yield from self._context.on_queue(name, run))
        except Exception as error:
            return (yield from self._settle_after(error, name, settlements, request))

    def _settle_only(self, settling: SettlePlan) -> _SettleAndClaim:
        # A caller that claims nothing more may close the connection: its notifications have to be out by then.
        results = yield Batch(settling.statements, follow_up=settling.notifications, await_follow_up=True)
        states = yield from self._read_settled(settling, results[0] if results else [])
        return SettledAndClaimed(states, None)

    def _settle_after(
        self, error: Exception, name: str, settlements: Settlements, request: ClaimRequest | None
    ) -> _SettleAndClaim:
        """Settle what can be settled after the statements for all have failed; or raise the error again."""
        is_bulk = request is not None and _is_bulk(settlements, request)
        if settlements and is_lock_not_available(error):
            queue = yield from self._context.find(name)
            if request is None or not (queue.policy.is_keyed or is_bulk):
                return (yield from self._settle_unlocked(name, settlements))
            # Settling and claiming were two transactions here, and the error does not show which of them failed. It is
            # raised: the dispatcher then sends the outcomes again, and recovers leases that it may have.
        if is_rejected(error) and not is_bulk:
            return (yield from self._settle_despite(name, settlements, request, error))
        raise error

    def _settle_unlocked(self, name: str, settlements: Settlements) -> _SettleAndClaim:
        rejected: dict[UUID, str] = {}
        settling = SettleOperations(self._context)
        settled, postponed = yield from settling.settle_unlocked(name, settlements, rejected)
        return SettledAndClaimed(settled, None, rejected, postponed)

    def _settle_despite(
        self, name: str, settlements: Settlements, request: ClaimRequest | None, error: Exception
    ) -> Operation[SettledAndClaimed]:
        """Settle one after the other, after the statements for all of them together with the claim were rejected: for
        an outcome that cannot be written, a policy slot that was just taken, or a job that cannot be claimed.
        """
        # In halves, until the one that is rejected is alone: two statements for each halving.
        settling = SettleOperations(self._context)
        rejected: dict[UUID, str] = {}
        settled = yield from settling.settle(name, settlements, rejected)
        if not settlements:
            # Only the claim is left: without the jobs that it cannot take the next one succeeds.
            rejected = yield from settling.quarantine_unsound(name)
            if not rejected:
                raise error
        # The claim of a keyed queue was a transaction of its own, and may have leased jobs: nobody has read its answer.
        return SettledAndClaimed(settled, None, rejected)

    def _batch(
        self,
        claims: ClaimOperations,
        settling: SettlePlan,
        request: ClaimRequest,
        marker: tuple[BoundStatement, ...],
    ) -> tuple[ClaimPlan, Batch | InParallel]:
        """How to settle and claim at once.

        Where a queue is not keyed, both are one transaction, with one wait for the disk. A keyed queue gets two,
        because the admission lock must not be held while the disk is written. Many completed jobs and a claim of
        many jobs do not depend on each other: they are executed in parallel.
        """
        queue, settlements = settling.queue, settling.settlements
        keyed = queue.policy.is_keyed
        parallel = not (keyed or marker) and _is_bulk(settlements, request)
        # The end of a job has to be on disk when it is answered; a claim has not.
        async_commit = keyed or parallel or not settling.statements
        claiming = claims.plan(queue, request, promote_due=request.promote_due, async_commit=async_commit)
        if parallel:
            settle = Batch(settling.statements, follow_up=settling.notifications)
            return claiming, InParallel((settle, Batch(*claiming.transactions)))
        if keyed:
            transactions = (settling.statements, *claiming.transactions)
        else:
            transactions = ((*settling.statements, *claiming.transactions[0]),)
        return claiming, Batch(marker, *transactions, follow_up=settling.notifications)

    def _read_settled(self, settling: SettlePlan, results: list[PGresult]) -> Operation[dict[UUID, JobState]]:
        if not settling.statements:
            return {}
        settled, declined = settling.read(results)
        if declined:
            # No job was completed, because the queue is not as it was cached: settle again as it is.
            self._context.forget(settling.queue.name)
            completed = Settlements(settling.settlements.completed)
            settled |= yield from SettleOperations(self._context).settle(settling.queue.name, completed)
        return settled

    def _marker(self, queue: Queue, request: ClaimRequest) -> tuple[BoundStatement, ...]:
        if request.idle is None:
            return ()
        name = "set_idle_marker" if request.idle else "clear_idle_marker"
        return (self._context.bind(name, queue=queue.name, worker=request.worker),)


def _is_bulk(settlements: Settlements, request: ClaimRequest) -> bool:
    """Whether two connections are faster. A failed or released job may be claimed again: it is settled first."""
    only_completed = not (settlements.failed or settlements.released)
    return only_completed and min(len(settlements.completed), request.limit) >= _BULK
