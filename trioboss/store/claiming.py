"""Verbs that lease jobs, and that keep or give back leases."""

from collections.abc import Sequence
from uuid import UUID

import attrs

from trioboss.errors import LeaseLost, UnknownQueue, UsageError
from trioboss.model.check import check_count, check_duration, check_flag, check_name, check_priority
from trioboss.model.job import Job, Lease
from trioboss.model.payload import Json, encode
from trioboss.model.queue import Queue
from trioboss.postgres import Results, Step
from trioboss.postgres.conversation import Aside, Conversation, Flush
from trioboss.postgres.results import read_rows
from trioboss.store.context import Context
from trioboss.store.parameters import fence, text_array, uuid_array
from trioboss.store.rows import Claim, read_claim, read_first

__all__ = ["ClaimVerbs", "Wanted"]

_RETRY_PLACING = 0.05  # seconds until a key is tried again whose next job somebody was just changing


@attrs.frozen
class Wanted:
    """Which jobs a claim is for, and for whom."""

    limit: int = 1
    worker: UUID | None = None
    by_priority: bool = True
    min_priority: int | None = None
    max_priority: int | None = None


@attrs.frozen
class ClaimVerbs:
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
    ) -> Conversation[list[Job]]:
        """Take jobs by hand."""
        check_name("queue", name)
        check_flag("ignore_start_after", ignore_start_after)
        wanted = Wanted(
            limit=check_count("batch_size", batch_size, low=1),
            by_priority=check_flag("priority", priority),
            min_priority=None if min_priority is None else check_priority("min_priority", min_priority),
            max_priority=None if max_priority is None else check_priority("max_priority", max_priority),
        )
        claim = yield from self.claim(name, wanted, own=own)
        missing = wanted.limit - len(claim.jobs)
        if not ignore_start_after or not missing:
            return claim.jobs
        queue = yield from self._context.know(name)
        more = attrs.evolve(wanted, limit=missing)
        yield Flush((self._context.step("undefer", queue.table_name, queue=name, **_criteria(more)),))
        return claim.jobs + (yield from self.claim(name, more, own=own)).jobs

    def claim(self, name: str, wanted: Wanted, *, own: bool = True) -> Conversation[Claim]:
        """Make ready what can be ready, and lease what is wanted, in one round trip."""

        def take(queue: Queue) -> Conversation[Claim]:
            prepare = self.preparing(queue)
            step = self.claiming(queue, wanted, lazy=own)
            if own or not queue.policy.is_keyed:
                results = yield Flush((*prepare, step))
            else:
                # The right to decide whose turn it is must not stay with the caller until they commit.
                yield Aside(Flush(tuple(prepare)))
                results = yield Flush((step,))
            return self.read(queue, results)

        claim: Claim = yield from self._context.on_queue(name, take)
        if claim.policy is None:
            self._context.forget(name)
            raise UnknownQueue(name)
        return claim

    def preparing(self, queue: Queue) -> list[Step]:
        """The steps that make jobs ready whose time or turn has come."""
        names = ("lock_key_order", "place") if queue.policy.is_keyed else ("ripen",)
        return [self._context.step(name, queue.table_name, queue=queue.name) for name in names]

    def claiming(self, queue: Queue, wanted: Wanted, *, lazy: bool) -> Step:
        """The step that leases ready jobs."""
        name = "claim" if wanted.by_priority else "claim_in_order"
        values = _criteria(wanted) | {"queue": queue.name, "worker": wanted.worker, "lazy": lazy}
        return self._context.step(name, queue.table_name, **values)

    def read(self, queue: Queue, results: Results) -> Claim:
        """The claim in the results of its transaction, which began with the preparing steps if any."""
        claim = read_claim(results)
        if claim.policy != queue.policy:
            self._context.forget(queue.name)
        if len(results[-1]) == 3 and read_rows(results[-1][1])[0][0]:
            claim = attrs.evolve(claim, next_due=min(claim.next_due or _RETRY_PLACING, _RETRY_PLACING))
        return claim

    def touch(self, queues: Sequence[Queue], leases: Sequence[Lease]) -> Conversation[set[UUID]]:
        """Renew leases of queues that share a table; return the ids of those still held."""
        held = {lease.id: (lease.attempt, lease.started_on) for lease in leases}
        step = self._context.step(
            "touch",
            queues[0].table_name,
            queues=text_array(queue.name for queue in queues),
            ids=uuid_array(held),
            leases=fence(held, dict.fromkeys(held, "null")),
            lazy=True,
        )
        return {row[0] for row in read_first((yield Flush((step,))))}

    def extend(self, name: str, lease: Lease, seconds: object) -> Conversation[float]:
        """Let a lease expire later; return how long it is now."""
        more = check_duration("seconds", seconds, above=True)
        rows = yield from self._on_lease("extend", name, lease, seconds=more)
        if rows[0][0] is None:
            raise UsageError(f"extend: the lease of job {lease.id} was extended max_lease_extensions times")
        return float(rows[0][0])

    def report_progress(self, name: str, lease: Lease, value: Json) -> Conversation[None]:
        """Note how far a job has come."""
        text = encode(value, "progress", self._context.max_bytes)
        yield from self._on_lease("progress", name, lease, progress=text)

    def _on_lease(
        self, statement: str, name: str, lease: Lease, **values: object
    ) -> Conversation[list[tuple[float | None]]]:
        queue = yield from self._context.know(name)
        step = self._context.step(
            statement,
            queue.table_name,
            queue=name,
            id=lease.id,
            attempt=lease.attempt,
            started_on=lease.started_on,
            **values,
        )
        rows = read_first((yield Flush((step,))))
        if not rows:
            raise LeaseLost(name, [lease.id])
        return rows


def _criteria(wanted: Wanted) -> dict[str, object]:
    return {"limit": wanted.limit, "min_priority": wanted.min_priority, "max_priority": wanted.max_priority}
