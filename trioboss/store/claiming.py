"""Verbs that lease jobs, and that keep or give back leases."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import attrs

from trioboss.errors import LeaseLost, PayloadError, UnknownQueue, UsageError
from trioboss.model.check import check_count, check_duration, check_flag, check_name, check_priority
from trioboss.model.job import Job, Lease
from trioboss.model.payload import Json, Unreadable, describe_error, encode
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Claim, ClaimRequest, Failure
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_table_gone
from trioboss.postgres.operation import Batch, OnOwnConnection, Operation
from trioboss.postgres.wire.results import PGresult, read_rows
from trioboss.store.context import Context
from trioboss.store.parameters import fence, text_array
from trioboss.store.rows import read_claim, read_due, read_first
from trioboss.store.settling import SettleOperations

__all__ = ["ClaimOperations"]

_RETRY_PLACING = 0.05  # seconds until a key is tried again whose next job somebody was just changing


@attrs.frozen
class ClaimOperations:
    """Take jobs, keep them, give them back."""

    _context: Context

    def fetch(
        self,
        name: str,
        *,
        own: bool,
        batch_size: int,
        priority: bool,
        ignore_start_after: bool,
        min_priority: int | None,
        max_priority: int | None,
    ) -> Operation[list[Job]]:
        """Take jobs by hand."""
        check_name("queue", name)
        check_flag("ignore_start_after", ignore_start_after)
        wanted = ClaimRequest(
            limit=check_count("batch_size", batch_size, low=1),
            by_priority=check_flag("priority", priority),
            min_priority=None if min_priority is None else check_priority("min_priority", min_priority),
            max_priority=None if max_priority is None else check_priority("max_priority", max_priority),
            find_next_due=False,
        )
        claim = yield from self.claim(name, wanted, own=own)
        if not claim.jobs and (yield from self._context.has_moved((yield from self._context.know(name)))):
            claim = yield from self.claim(name, wanted, own=own)
        jobs = list(claim.jobs)
        if ignore_start_after and len(jobs) < wanted.limit:
            rest = attrs.evolve(wanted, limit=wanted.limit - len(jobs))
            jobs = jobs + (yield from self._claim_early(name, rest, own=own))
        yield from self._fail_unreadable(name, jobs)
        return [job for job in jobs if not isinstance(job.data, Unreadable)]

    def claim(self, name: str, wanted: ClaimRequest, *, own: bool = True) -> Operation[Claim]:
        """Make ready what can be ready, and lease what is wanted, in one round trip if that is enough."""

        def take(queue: Queue) -> Operation[Claim]:
            first = yield from self._take(queue, wanted, own)
            claim = yield from self.look_again(queue, wanted, first, own=own)
            if claim.jobs or claim.policy in (None, queue.policy):
                return claim
            # It was made anew, with another policy: what we made ready was not what had to be.
            queue = yield from self._context.look(name)
            return (
                yield from self.look_again(
                    queue, wanted, (yield from self._take(queue, wanted, own)), own=own
                )
            )

        claim: Claim = yield from self._context.on_queue(name, take)
        if claim.policy is None:
            self._context.forget(name)
            raise UnknownQueue(name)
        return claim

    def look_again(
        self, queue: Queue, wanted: ClaimRequest, claim: Claim, *, own: bool = True, patient: bool = True
    ) -> Operation[Claim]:
        """Add to a claim what was not ready at once; unless ``patient``, only if there is no job at all in it.

        What is due, or has arrived, is made ready in bites, so that nobody holds the right to decide for long.
        """
        while claim.more and len(claim.jobs) < (wanted.limit if patient else 1):
            rest = attrs.evolve(wanted, limit=wanted.limit - len(claim.jobs))
            found = yield from self._take(queue, rest, own)
            claim = attrs.evolve(found, jobs=[*claim.jobs, *found.jobs])
        return claim

    def _take(self, queue: Queue, wanted: ClaimRequest, own: bool) -> Operation[Claim]:
        prepare = self.preparing(queue, wanted)
        steps = self.claiming(queue, wanted, lazy=own)
        if own:
            return self.read(queue, wanted, (yield Batch((*prepare, *steps)))[-1])
        # Neither the right to decide whose turn it is, nor jobs that are due and not among those
        # claimed, must stay with the caller until they commit.
        prepared = yield OnOwnConnection(Batch(tuple(prepare)))
        results = yield Batch(steps)
        return self.read(queue, wanted, [*prepared[-1], *results[-1]])

    def _fail_unreadable(self, name: str, jobs: Iterable[Job]) -> Operation[None]:
        """Fail for good what nobody can work on, now or later."""
        failed: list[tuple[Lease, Failure]] = []
        for job in jobs:
            data: object = job.data
            if isinstance(data, Unreadable) and job.lease is not None:
                error = describe_error(PayloadError("data", data.problem))
                failed.append((job.lease, Failure(error, dead=True)))
        if failed:
            yield from SettleOperations(self._context).fail_leases(name, failed)

    def _claim_early(self, name: str, wanted: ClaimRequest, *, own: bool) -> Operation[list[Job]]:
        """Lease deferred jobs. Those it does not get stay deferred."""

        def take(queue: Queue) -> Operation[list[Job]]:
            keyed = queue.policy.is_keyed
            if keyed and not own:
                raise UsageError(
                    "ignore_start_after: jobs that take turns cannot be moved up in a transaction"
                )
            values = _criteria(wanted) | {"queue": name, "worker": wanted.worker, "lazy": own}
            step = self._context.step("claim_early", queue.table_name, **values)
            prepare = self.preparing(queue, wanted) if keyed else ()
            return list(read_claim((yield Batch((*prepare, step)))[-1][-1]).jobs)

        return (yield from self._context.on_queue(name, take))

    def preparing(self, queue: Queue, wanted: ClaimRequest) -> list[BoundStatement]:
        """The steps that make jobs ready whose time or turn has come."""

        def step(name: str, **values: object) -> BoundStatement:
            return self._context.step(name, queue.table_name, queue=queue.name, **values)

        if not queue.policy.is_keyed:
            return [step("ripen", limit=wanted.limit)]
        by_rank = queue.policy is not Policy.KEY_STRICT_FIFO
        limits = {"limit": wanted.limit, "max_priority": wanted.max_priority if by_rank else None}
        aside = [] if limits["max_priority"] is None else [step("step_aside", **limits)]
        after = self._context.places.get(queue.name)
        return [step("lock_key_order"), *aside, step("place", **limits, after=after)]

    def claiming(self, queue: Queue, wanted: ClaimRequest, *, lazy: bool) -> tuple[BoundStatement, ...]:
        """The steps that lease ready jobs and, if wanted, find what is due. A dispatcher at rest wants the same each
        time: its last ones are kept.
        """
        kept = self._context.claims.get(queue.name)
        terms = (queue.table_name, wanted, lazy, self._context.now)
        if kept is not None and kept[0] == terms:
            return kept[1]
        name = "claim" if wanted.by_priority else "claim_in_order"
        values = _criteria(wanted) | {"queue": queue.name, "worker": wanted.worker, "lazy": lazy}
        steps: tuple[BoundStatement, ...] = (self._context.step(name, queue.table_name, **values),)
        if _looks(queue, wanted):
            steps += (self._context.step("find_due", queue.table_name, queue=queue.name),)
        self._context.claims[queue.name] = (terms, steps)
        return steps

    def read(self, queue: Queue, wanted: ClaimRequest, results: Sequence[PGresult]) -> Claim:
        """The claim in the results of its transaction, which began with the preparing steps if any."""
        next_due = None
        if _looks(queue, wanted):
            *results, due = results
            next_due = read_due(due)
        claim = read_claim(results[-1])
        if claim.next_due is None and next_due is not None:
            claim = attrs.evolve(claim, next_due=next_due)
        if claim.policy != queue.policy:
            self._context.forget(queue.name)
            if claim.policy is not None:
                # It was made anew: neither what was made ready nor what was looked for was what had to be.
                claim = attrs.evolve(claim, next_due=0.0)
        if len(results) < 2:
            return claim
        ((again, more, place),) = read_rows(results[-2])
        self._context.places.pop(queue.name, None)
        if place is not None:
            self._context.places[queue.name] = place
        if again:
            claim = attrs.evolve(claim, next_due=min(claim.next_due or _RETRY_PLACING, _RETRY_PLACING))
        return attrs.evolve(claim, more=more) if more else claim

    def renew(self, leases: Mapping[str, Sequence[Lease]]) -> Operation[set[UUID]]:
        """Renew leases, given by queue. Return the ids of those still held."""
        return (yield from self._on_leases("touch", leases))

    def check(self, leases: Mapping[str, Sequence[Lease]]) -> Operation[set[UUID]]:
        """The ids of those leases, given by queue, that are still held."""
        return (yield from self._on_leases("check_leases", leases))

    def _on_leases(self, statement: str, leases: Mapping[str, Sequence[Lease]]) -> Operation[set[UUID]]:
        """One statement for each job table."""
        try:
            return (yield from self._on_tables(statement, leases))
        except Exception as error:
            if not is_table_gone(error):
                raise
            for name in leases:
                self._context.forget(name)
        return (yield from self._on_tables(statement, leases))

    def _on_tables(self, statement: str, leases: Mapping[str, Sequence[Lease]]) -> Operation[set[UUID]]:
        steps = []
        for table, names in (yield from self._find_tables(leases)).items():
            entries = [lease for name in names for lease in leases[name]]
            values = fence((lease.id, lease.attempt, lease.started_on, "null") for lease in entries)
            step = self._context.step(statement, table, queues=text_array(names), lazy=True, **values)
            steps.append((step,))
        results = (yield Batch(*steps)) if steps else []
        return {row[0] for transaction in results for row in read_rows(transaction[0])}

    def _find_tables(self, names: Iterable[str]) -> Operation[dict[str, list[str]]]:
        tables: dict[str, list[str]] = {}
        for name in names:
            try:
                queue = yield from self._context.know(name)
            except UnknownQueue:
                continue  # its jobs are gone with it
            tables.setdefault(queue.table_name, []).append(name)
        return tables

    def extend(self, name: str, lease: Lease, seconds: object) -> Operation[float]:
        """Let a lease expire later; return how long it is now."""
        more = check_duration("seconds", seconds, above=True)
        rows = yield from self._on_lease("extend", name, lease, seconds=more)
        if rows[0][0] is None:
            raise UsageError(f"extend: the lease of job {lease.id} was extended max_lease_extensions times")
        return float(rows[0][0])

    def report_progress(self, name: str, lease: Lease, value: Json) -> Operation[None]:
        """Note how far a job has come."""
        text = encode(value, "progress", self._context.max_bytes)
        yield from self._on_lease("progress", name, lease, progress=text)

    def _on_lease(
        self, statement: str, name: str, lease: Lease, **values: object
    ) -> Operation[list[tuple[float | None]]]:
        def change(queue: Queue) -> Operation[list[tuple[float | None]]]:
            own = {"queue": name, "id": lease.id, "attempt": lease.attempt, "started_on": lease.started_on}
            step = self._context.step(statement, queue.table_name, **own, **values)
            return read_first((yield Batch((step,))))

        rows = yield from self._context.on_queue(name, change, may_miss=True)
        if not rows:
            raise LeaseLost(name, [lease.id])
        return rows


def _looks(queue: Queue, wanted: ClaimRequest) -> bool:
    """Whether a claim finds what is due. Where jobs take turns, that may change with each of them."""
    return wanted.find_next_due or queue.policy.is_keyed


def _criteria(wanted: ClaimRequest) -> dict[str, object]:
    return {"limit": wanted.limit, "min_priority": wanted.min_priority, "max_priority": wanted.max_priority}
