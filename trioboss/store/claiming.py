"""The statements that lease jobs, and operations that lease jobs. The dispatchers claim by
settle_and_claim.py, callers by manual.py.
"""

from collections.abc import Sequence

import attrs

from trioboss.errors import UnknownQueue
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import ClaimRequest, ClaimResult
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_rejected
from trioboss.postgres.operation import Batch, OnOwnConnection, Operation
from trioboss.postgres.wire import PGresult, read_row
from trioboss.store.claimed_jobs import ClaimAnswer, read_claim, read_next_due, with_options
from trioboss.store.context import Context
from trioboss.store.settling import SettleOperations

__all__ = ["ClaimOperations", "ClaimPlan", "admission", "criteria"]

_RETRY_ADMISSION = 0.05  # seconds until a backlog is tried again whose first job somebody was just changing
_CHECKS = 20  # backlog checks that a claim reads at least
_MOST_CHECKS = 5_000  # at most: about 10 ms under the admission lock
# Claims of a queue whose statements are kept. A worker with one job at a time alternates between two: with and without
# the question for the next due time. To bind the statements takes ten times as long as to find them.
_MOST_KEPT = 8


# -- statements


@attrs.frozen
class ClaimPlan:
    """The transactions of one claim, and how to read their results."""

    queue: Queue
    request: ClaimRequest
    promote: tuple[BoundStatement, ...]
    """Promotes due jobs. For a keyed queue in a transaction of its own, which joins their backlogs before the claim."""
    claim: tuple[BoundStatement, ...]
    checks: int

    @property
    def transactions(self) -> tuple[tuple[BoundStatement, ...], ...]:
        """In order. A keyed queue's claim holds the admission lock, and is as short as possible."""
        if self.queue.policy.is_keyed:
            return tuple(filter(None, (self.promote, self.claim)))
        return ((*self.promote, *self.claim),)

    def read(self, context: Context, results: Sequence[PGresult]) -> ClaimResult:
        """The claim in the results of its statements."""
        # The results are those of promote, then of lock_admission and admit where they ran, then of the statement that
        # leases, then of find_next_due.
        promoted = results[: len(self.promote)]
        more_due = any(read_row(result, 0)[0] for result in promoted)
        rest = list(results[len(self.promote) :])
        next_due = read_next_due(rest.pop()) if self.request.find_next_due else None
        answer = read_claim(rest[-1])
        admitted = read_row(rest[-2], 0) if len(rest) == 3 else (False, None)  # admit.sql, if it ran
        if answer.again or admitted[0]:
            # Without an admission lock the job may be claimed at once; else it is locked for a moment longer.
            delay = _RETRY_ADMISSION if self.queue.policy.is_keyed else 0.0
            next_due = delay if next_due is None else min(delay, next_due)
        claim = _check_revision(context, self.queue, self.request, answer, next_due, timed=len(rest) < 3)
        return _with_more(claim, admitted[1] if answer.more_after is None else answer.more_after, more_due)


def _with_more(claim: ClaimResult, more_after: str | None, more_due: bool) -> ClaimResult:
    """The claim, and whether another one at once may find more: backlogs after a position, or jobs that are due."""
    if more_after is not None:
        return attrs.evolve(claim, more=True, more_after=more_after)
    return attrs.evolve(claim, more=True) if more_due else claim


def _check_revision(
    context: Context,
    queue: Queue,
    request: ClaimRequest,
    answer: ClaimAnswer,
    next_due: float | None,
    *,
    timed: bool = False,
) -> ClaimResult:
    jobs = answer.jobs(queue, request.worker)
    if answer.revision == queue.revision:
        took = answer.took if timed and request.by_priority else 0.0
        return ClaimResult(jobs, next_due, queue.policy, took=took, left_seq=answer.left_seq)
    context.forget(queue.name)
    if answer.revision is None:
        return ClaimResult(jobs, next_due, None)
    # The queue was changed, or created again, perhaps with another policy: the statements may have been the wrong ones.
    return ClaimResult(jobs, 0.0, queue.policy, outdated=True)


@attrs.frozen
class ClaimOperations:
    """Lease jobs."""

    _context: Context

    def claim(self, name: str, request: ClaimRequest, *, own: bool = True) -> Operation[ClaimResult]:
        """Lease as many jobs as requested, or all there are; fewer if their data is more than 4 MB, at least one. One
        round trip is enough, unless due jobs or backlogs have to be worked off first.
        """

        def take(queue: Queue) -> Operation[ClaimResult]:
            claim = yield from self._claim_once(queue, request, own)
            if claim.outdated and not claim.jobs:
                return (yield from self._context.on_queue(name, take_what_there_is))
            return (yield from self.claim_again(queue, request, claim, own=own))

        def take_what_there_is(queue: Queue) -> Operation[ClaimResult]:
            claim = yield from self._claim_once(queue, request, own)
            return (yield from self.claim_again(queue, request, claim, own=own))

        try:
            claim: ClaimResult = yield from self._context.on_queue(name, take)
        except Exception as error:
            # A job that cannot be leased keeps nobody from the others. In the caller's transaction all is over anyway.
            if not own or not is_rejected(error):
                raise
            if not (yield from SettleOperations(self._context).quarantine_unsound(name)):
                raise
            claim = yield from self._context.on_queue(name, take)
        if claim.policy is None:
            self._context.forget(name)
            raise UnknownQueue(name)
        return claim

    def claim_again(
        self, queue: Queue, request: ClaimRequest, claim: ClaimResult, *, own: bool = True, fill: bool = True
    ) -> Operation[ClaimResult]:
        """Add the jobs to a claim that one round did not reach; unless ``fill``, only if it has no job at all.

        Each round promotes a chunk of due jobs and answers a chunk of backlog checks, so that no claim holds the
        admission lock for long. A round begins after the last check that the one before has read, and reads ten times
        as many. Checks of backlogs whose first job is just being changed stay; the loop ends nevertheless, because no
        round reads a check a second time.
        """
        checks = _CHECKS
        soonest = claim.next_due
        while claim.more and len(claim.jobs) < (request.limit if fill else 1):
            checks = min(10 * checks, _MOST_CHECKS)
            # The rounds together may bring no more than the worker can hold.
            rest = attrs.evolve(request, limit=request.limit - len(claim.jobs))
            found = yield from self._claim_once(queue, rest, own, checks=checks, after=claim.more_after)
            claim = attrs.evolve(found, jobs=[*claim.jobs, *found.jobs])
            # A first job that was being changed in an earlier round has to be tried again, too.
            if soonest is not None and soonest <= _RETRY_ADMISSION:
                claim = attrs.evolve(claim, next_due=min(soonest, claim.next_due or soonest))
            soonest = claim.next_due
        return claim

    def refresh_options(self, queue: Queue, claim: ClaimResult) -> Operation[ClaimResult]:
        """The same claim, with the options of the queue as it is now, if it was changed since it was cached.

        The leases have the terms of now already: a worker that took the old ones would let its jobs expire.
        """
        # Nearly always: a queue changes less often than it is claimed from.
        if not claim.outdated or not claim.jobs:
            return claim
        try:
            now = yield from self._context.reload(queue.name)
        except UnknownQueue:
            return claim  # the jobs are gone with it
        return attrs.evolve(claim, jobs=with_options(claim.jobs, now))

    def plan(
        self,
        queue: Queue,
        request: ClaimRequest,
        *,
        promote_due: bool,
        async_commit: bool,
        checks: int = _CHECKS,
        after: str = "",
    ) -> ClaimPlan:
        """The statements of a claim. A dispatcher repeats the same request: its last statements are kept."""
        promote: tuple[BoundStatement, ...] = ()
        if promote_due:
            promote = (
                self._context.bind("promote_due", queue.table_name, queue=queue.name, limit=request.limit),
            )
        # Under load a dispatcher claims thousands of times a second, always with the same parameters.
        kept = self._context.claims.setdefault(queue.name, {})
        terms = (queue.table_name, queue.policy, request, async_commit, checks, after, self._context.now)
        if (claim := kept.get(terms)) is None:
            if len(kept) == _MOST_KEPT:
                kept.clear()
            values = admission(request, checks, after)
            claim = self._claim_statements(queue, request, values, async_commit=async_commit)
            kept[terms] = claim
        return ClaimPlan(queue, request, promote, claim, checks)

    def _claim_statements(
        self, queue: Queue, request: ClaimRequest, admitting: dict[str, object], *, async_commit: bool
    ) -> tuple[BoundStatement, ...]:
        values = admitting | {"queue": queue.name, "worker": request.worker, "async_commit": async_commit}

        def bind(*names: str) -> tuple[BoundStatement, ...]:
            return tuple(self._context.bind(name, queue.table_name, **values) for name in names)

        claim = "claim" if request.by_priority else "claim_in_order"
        bounded = request.min_priority is not None or request.max_priority is not None
        if not queue.policy.is_keyed:
            statements = bind(claim if request.after is None else "claim_onward")
        elif bounded or not request.by_priority:
            # admit_and_claim.sql supports neither bounds of priority nor the order of sending: admit first, and claim
            # what is ready.
            statements = bind("lock_admission", "admit", claim)
        else:
            statements = bind("lock_admission", "admit_and_claim")
        return statements + (bind("find_next_due") if request.find_next_due else ())

    def _claim_once(
        self, queue: Queue, request: ClaimRequest, own: bool, *, checks: int = _CHECKS, after: str = ""
    ) -> Operation[ClaimResult]:
        if own:
            plan = self.plan(queue, request, promote_due=True, async_commit=True, checks=checks, after=after)
            results = yield Batch(*plan.transactions)
            claim = plan.read(self._context, [result for transaction in results for result in transaction])
            return (yield from self.refresh_options(queue, claim))
        # Neither the admission lock, nor jobs that are due and not among those claimed, must stay with the caller
        # until they commit: promotion and admission are done on a connection of our own.
        limit = {"queue": queue.name, "limit": request.limit}
        promote = self._context.bind("promote_due", queue.table_name, **limit)
        prepare: list[tuple[BoundStatement, ...]] = [(promote,)]
        if queue.policy.is_keyed:
            values = admission(request, checks, after) | {"queue": queue.name}
            lock = self._context.bind("lock_admission", queue=queue.name)
            prepare.append((lock, self._context.bind("admit", queue.table_name, **values)))
        prepared = yield OnOwnConnection(Batch(*prepare))
        name = "claim" if request.by_priority else "claim_in_order"
        values = criteria(request) | {"queue": queue.name, "worker": request.worker, "async_commit": False}
        results = yield Batch((self._context.bind(name, queue.table_name, **values),))
        answer = read_claim(results[0][0])
        claim = _check_revision(self._context, queue, request, answer, 0.0 if answer.again else None)
        claim = yield from self.refresh_options(queue, claim)
        more_after = read_row(prepared[1][1], 0)[1] if len(prepared) > 1 else None
        return _with_more(claim, more_after, read_row(prepared[0][0], 0)[0])


def criteria(request: ClaimRequest) -> dict[str, object]:
    """The parameters that say which jobs a claim may take."""
    return {
        "limit": request.limit,
        "min_priority": request.min_priority,
        "max_priority": request.max_priority,
    }


def admission(request: ClaimRequest, checks: int = _CHECKS, after: str = "") -> dict[str, object]:
    """The parameters of admission: which checks to read, after which position."""
    values = criteria(request) | {"by_priority": request.by_priority, "checks": max(checks, request.limit)}
    if not request.by_priority:
        values["checks"] = max(_MOST_CHECKS, request.limit)  # checks are in the order of priorities
    if (position := request.after) is not None:
        values["after_priority"], values["after_left"] = position.priority, position.left_seq
        values["after_rank"], values["after_seq"] = -position.priority, position.seq
    if after:
        values["after_rank"], values["after_seq"] = after.split()
    return values
