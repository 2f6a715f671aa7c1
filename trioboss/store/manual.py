"""Operations of callers that have no worker: fetch jobs, and complete or fail them."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from uuid import UUID

import attrs

from trioboss.errors import PayloadError, UnknownQueue, UsageError
from trioboss.machines.maintenance import BUSY
from trioboss.model.answers import Settled
from trioboss.model.check import check_count, check_flag, check_name, check_priority
from trioboss.model.described_error import describe_error, error_line
from trioboss.model.handed_job import HandedJob
from trioboss.model.job import Job, Lease
from trioboss.model.payload import Unreadable, encode
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import ClaimRequest, Failure, Settlements
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.operation import Batch, InSavepoint, Operation
from trioboss.postgres.wire import read_rows
from trioboss.store.claimed_jobs import read_claim
from trioboss.store.claiming import ClaimOperations, admission, criteria
from trioboss.store.context import Context, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.settling import (
    CallerTerms,
    SettleOperations,
    SettlePlan,
    once_more_if_taken,
    plan_settling,
)
from trioboss.store.targets import Targets, TargetSet, parse_targets

__all__ = ["ManualOperations"]

_NO_REASON = "failed by its handler"


@attrs.frozen
class ManualOperations:
    """Fetch jobs, and settle them. ``own`` says whether the transaction is ours or the caller's."""

    _context: Context

    # -- fetch

    def fetch(
        self,
        name: str,
        *,
        own: bool,
        now: float,
        batch_size: int,
        priority: bool,
        ignore_start_after: bool,
        min_priority: int | None,
        max_priority: int | None,
    ) -> Operation[list[Job]]:
        """Lease jobs manually. ``own``: in a transaction of ours, not the caller's. ``name``: or a pattern with *.
        ``now``: the time of the clock by which this boss counts when it last notified the leader of jobs.
        """
        check_name("queue", name.replace("*", "_") if isinstance(name, str) else name)
        check_flag("ignore_start_after", ignore_start_after)
        request = ClaimRequest(
            limit=check_count("batch_size", batch_size, low=1),
            by_priority=check_flag("priority", priority),
            min_priority=None if min_priority is None else check_priority("min_priority", min_priority),
            max_priority=None if max_priority is None else check_priority("max_priority", max_priority),
            find_next_due=False,
        )
        fetch = self._fetch_matching if "*" in name else self._fetch
        return (yield from fetch(name, request, now, ignore_start_after, own=own))

    def _fetch_matching(
        self, pattern: str, request: ClaimRequest, now: float, ignore_start_after: bool, *, own: bool
    ) -> Operation[list[Job]]:
        """Lease jobs of the queues that match a pattern, queue by queue."""
        # A name of a queue may have an underscore, which is a wildcard of LIKE; it has no % and no backslash.
        like = pattern.replace("_", r"\_").replace("*", "%")
        names = read_first((yield Batch((self._context.bind("find_queues_with_jobs", pattern=like),))))
        jobs: list[Job] = []
        for (name,) in names:
            rest = attrs.evolve(request, limit=request.limit - len(jobs))
            with suppress(UnknownQueue):  # it was deleted meanwhile
                jobs += yield from self._fetch(name, rest, now, ignore_start_after, own=own)
            if len(jobs) >= request.limit:
                break
        return jobs

    def _fetch(
        self, name: str, request: ClaimRequest, now: float, ignore_start_after: bool, *, own: bool
    ) -> Operation[list[Job]]:
        # A job whose data cannot be read is failed and not handed out; the rest of the claim is.
        while jobs := (yield from self._fetch_once(name, request, now, ignore_start_after, own=own)):
            if readable := [job for job in jobs if not isinstance(job.data, Unreadable)]:
                return readable
            # An empty answer would mean that there are no jobs. Each round fails at least one, so this ends.
        return []

    def _fetch_once(
        self, name: str, request: ClaimRequest, now: float, ignore_start_after: bool, *, own: bool
    ) -> Operation[list[Job]]:
        claim = yield from ClaimOperations(self._context).claim(name, request, own=own)
        # A table that is empty may be the old one of a queue that was created again: nothing in the answer tells.
        if not claim.jobs and (yield from self._context.has_moved((yield from self._context.find(name)))):
            claim = yield from ClaimOperations(self._context).claim(name, request, own=own)
        jobs = list(claim.jobs)
        if ignore_start_after and len(jobs) < request.limit:
            rest = attrs.evolve(request, limit=request.limit - len(jobs))
            jobs = jobs + (yield from self._claim_early(name, rest, own=own))
        if jobs:
            yield from self._notify_busy(now, own=own)
        yield from self._fail_unreadable(name, jobs)
        return jobs

    def _notify_busy(self, now: float, *, own: bool) -> Operation[None]:
        """The leader rescues leases that expire: it has to be notified that there are some. In the caller's
        transaction this is done each time: a notification is sent when the transaction commits, perhaps much later.
        """
        if not own:
            yield Batch((self._context.bind("notify_queue", queue=BUSY),))
        elif (message := self._context.busy.due_notification(now)) is not None:
            yield Batch(follow_up=(self._context.bind("notify_queue", queue=message),))

    def _claim_early(self, name: str, request: ClaimRequest, *, own: bool) -> Operation[list[Job]]:
        """Lease deferred jobs. Those it does not get stay deferred."""

        def take(queue: Queue) -> Operation[list[Job]]:
            keyed = queue.policy.is_keyed
            # It leases from the backlog under the admission lock, which must not stay with the caller.
            if keyed and not own:
                raise UsageError(
                    "ignore_start_after: jobs of a keyed queue cannot be started early in a transaction"
                )
            values = criteria(request) | {"queue": name, "worker": request.worker, "async_commit": own}
            claim = self._context.bind("claim_early", queue.table_name, **values)
            prepare: tuple[BoundStatement, ...] = ()
            if keyed:
                values = admission(request) | {"queue": name}
                prepare = (
                    self._context.bind("lock_admission", queue=name),
                    self._context.bind("admit", queue.table_name, **values),
                )
            results = yield Batch((*prepare, claim))
            return list(read_claim(results[-1][-1]).jobs(queue, request.worker))

        return (yield from self._context.on_queue(name, take))

    def _fail_unreadable(self, name: str, jobs: Iterable[Job]) -> Operation[None]:
        """Fail for good jobs whose data Python cannot represent: no attempt would ever succeed."""
        failed: list[tuple[Lease, Failure]] = []
        for job in jobs:
            data: object = job.data
            if isinstance(data, Unreadable) and job.lease is not None:
                error = describe_error(PayloadError("data", data.problem))
                failed.append((job.lease, Failure(error, dead=True)))
        if failed:
            yield from SettleOperations(self._context).fail_leases(name, failed)

    # -- settle: one or many, answered by Settled

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
            settlements = Settlements(completed=[(lease, text) for lease in asked.all_leases])
            plan = plan_settling(self._context, queue, settlements, caller=_terms(asked, own=own))
            # Queued jobs first: one that is claimed in between is active then, and completed as such.
            before = waiting(queue)
            answers = yield _batch(plan, before, own=own)
            results = answers[0] if answers else []
            done = {row[0] for result in results[: len(before)] for row in read_rows(result)}
            states, declined = plan.read(results[len(before) :])
            if declined:
                # The queue was changed since it was cached, and no active job was completed.
                self._context.forget(name)
                return done | (yield from self._context.on_queue(name, end))
            return done | set(states)

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
            settlements = Settlements(failed=[(lease, failure) for lease in asked.all_leases])
            plan = plan_settling(self._context, queue, settlements, caller=_terms(asked, own=own))
            batch = _batch(plan, own=own)
            # A policy slot that is taken meanwhile aborts the statements, but must not abort the caller's transaction.
            results = yield batch if own else InSavepoint(batch)
            return plan.read(results[0])[0] if results else {}

        asked = parse_targets(name, targets, handled)
        failure = Failure(describe_error(error, self._context.redact))
        states = yield from once_more_if_taken(self._context, name, end)
        asked.report(states, error_line(_NO_REASON if error is None else error), own=own)
        return asked.answer(set(states), "active")


def _terms(asked: TargetSet, *, own: bool) -> CallerTerms:
    return CallerTerms(frozenset(asked.unfenced), asked.handlers_to_cancel, own)


def _batch(plan: SettlePlan, before: tuple[BoundStatement, ...] = (), *, own: bool) -> Batch:
    """The transaction of a plan: our own, with its notifications after it; or the caller's, with them in it."""
    statements = (*before, *plan.statements)
    return Batch(statements, plan.notifications) if own else Batch((*statements, *plan.notifications))
