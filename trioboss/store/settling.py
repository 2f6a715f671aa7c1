"""Verbs that end, cancel, revive and delete jobs."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar
from uuid import UUID

import attrs

from trioboss.errors import JobNotFound
from trioboss.model.check import check_name
from trioboss.model.job import Lease, Settled
from trioboss.model.payload import describe_error, encode, error_line
from trioboss.model.queue import Queue
from trioboss.model.settle_and_claim import Failure
from trioboss.model.states import JobState
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_unique_violation
from trioboss.postgres.operation import Batch, InSavepoint, Operation
from trioboss.store.context import Context
from trioboss.store.parameters import fence, text_array, uuid_array
from trioboss.store.rows import read_first, read_jobs
from trioboss.store.targets import Entry, Targets, ids_of, lease_entries, parse_targets

__all__ = ["SettleOperations"]

T = TypeVar("T")

_ALL_JOBS = ("delete_active_jobs", "delete_queued_jobs", "delete_stored_jobs")
_NO_REASON = "failed by its handler"
_CHUNK = 10_000  # rows a statement deletes, so that it never holds locks for long


@attrs.frozen
class SettleOperations:
    """End jobs and undo it. ``own`` says whether the transaction is ours or the caller's."""

    _context: Context

    # -- for callers: one or many, answered by Settled

    def complete(self, name: str, targets: Targets, output: object, *, own: bool) -> Operation[Settled]:
        """End active jobs well."""
        asked = parse_targets(name, targets)
        text = "null" if output is None else encode(output, "output", self._context.max_bytes)
        done = yield from self._complete(name, asked.entries(text), own=own)
        asked.tell(dict.fromkeys(done, JobState.COMPLETED), own=own)
        return asked.judge(done, "active")

    def fail(self, name: str, targets: Targets, error: object, *, own: bool) -> Operation[Settled]:
        """End active attempts badly."""
        asked = parse_targets(name, targets)
        failure = Failure(describe_error(error))
        states = yield from self._fail(name, asked.entries(failure.as_json()), own=own)
        asked.tell(states, error_line(_NO_REASON if error is None else error), own=own)
        return asked.judge(set(states), "active")

    def touch(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Renew the leases of active jobs."""

        def renew(queue: Queue) -> Operation[set[UUID]]:
            step = self._context.step("touch", queue.table_name, lazy=own, **values)
            return {row[0] for row in read_first((yield Batch((step,))))}

        asked = parse_targets(name, targets)
        values = fence(asked.entries("null")) | {"queues": text_array([name])}
        done = yield from self._context.on_queue(name, renew, may_miss=True)
        return asked.judge(done, "active")

    def cancel(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Take queued or active jobs out."""
        return (yield from self._by_id("cancel", name, targets, "queued or active", own=own, ends=True))

    def resume(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Queue cancelled jobs again."""
        return (yield from self._by_id("resume", name, targets, "cancelled", own=own))

    def retry(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Give failed jobs one more try."""
        return (yield from self._by_id("retry", name, targets, "failed", own=own))

    def delete(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Remove jobs in any state."""
        return (
            yield from self._by_id("delete_job", name, targets, "such", own=own, ends=True, anywhere=True)
        )

    def delete_many(self, name: str, statements: Sequence[str], *, own: bool) -> Operation[int]:
        """Remove a queue's queued or stored jobs, in chunks; return how many."""
        check_name("queue", name)
        queue = yield from self._context.look(name)
        total = 0
        for statement in statements:
            while True:
                step = self._context.step(statement, queue.table_name, queue=name, limit=_CHUNK)
                ((count,),) = read_first((yield Batch((step,))))
                total += count
                if count == 0:
                    break
        if after := self._after(queue, own=own):
            yield Batch(tuple(after))
        return total

    def delete_all(self, name: str | None, *, own: bool) -> Operation[int]:
        """Remove all jobs of a queue, or of all queues; return how many."""
        names = [name] if name is not None else [row[0] for row in read_first((yield self._all_names()))]
        total = 0
        for each in names:
            total += yield from self.delete_many(each, _ALL_JOBS, own=own)
        return total

    def _all_names(self) -> Batch:
        return Batch((self._context.step("get_queues"),))

    def clear_storage(self) -> Operation[None]:
        """Remove all jobs of all queues."""
        yield Batch((self._context.step("clear_storage"),))

    # -- for the runtime: many at once, fenced, told what became of each

    def complete_leases(self, name: str, completed: Iterable[tuple[Lease, str]]) -> Operation[set[UUID]]:
        """End attempts well; return the ids of those that were still theirs to end."""
        return (yield from self._complete(name, lease_entries(completed), own=True))

    def fail_leases(
        self, name: str, failed: Iterable[tuple[Lease, Failure]]
    ) -> Operation[dict[UUID, JobState]]:
        """End attempts badly; return what became of those that were still theirs to end."""
        entries = lease_entries((lease, failure.as_json()) for lease, failure in failed)
        return (yield from self._fail(name, entries, own=True))

    def release_leases(self, name: str, leases: Iterable[Lease]) -> Operation[None]:
        """Queue the jobs again, no attempt spent. Who finds no room to wait (see fail.sql) fails."""

        def release(queue: Queue) -> Operation[set[UUID]]:
            step = self._context.step("release", queue.table_name, queue=name, **fence(entries))
            after = tuple(self._after(queue, own=True, always=True))
            return {row[0] for row in read_first((yield Batch((step,), after)))}

        held = {lease.id: lease for lease in leases}
        entries = lease_entries((lease, "null") for lease in held.values())
        released = yield from self._finding_room(name, release)
        if left := [lease for id, lease in held.items() if id not in released]:
            failure = Failure(describe_error("released, but the place to wait for a retry is taken"))
            yield from self.fail_leases(name, [(lease, failure) for lease in left])

    # -- how

    def _complete(self, name: str, entries: Sequence[Entry], *, own: bool) -> Operation[set[UUID]]:
        def end(queue: Queue) -> Operation[set[UUID]]:
            statement = "complete_and_tell" if queue.on_complete else "complete"
            step = self._context.step(statement, queue.table_name, queue=name, **fence(entries))
            rows = read_first((yield self._settling(queue, step, ids_of(entries), own=own)))
            if rows and rows[0][1] and not queue.on_complete:
                self._context.forget(name)
                return (yield from end((yield from self._context.know(name))))
            return {row[0] for row in rows if row[0] is not None}

        return (yield from self._context.on_queue(name, end, may_miss=True))

    def _fail(self, name: str, entries: Sequence[Entry], *, own: bool) -> Operation[dict[UUID, JobState]]:
        def end(queue: Queue) -> Operation[dict[UUID, JobState]]:
            step = self._context.step("fail", queue.table_name, queue=name, **fence(entries))
            flush = self._settling(queue, step, ids_of(entries), own=own, frees=True)
            rows = read_first((yield flush if own else InSavepoint(flush)))
            return {row[0]: JobState(row[1]) for row in rows}

        return (yield from self._finding_room(name, end))

    def _finding_room(self, name: str, verb: Callable[[Queue], Operation[T]]) -> Operation[T]:
        """Run a verb that queues jobs again; once more if one of them finds its place taken."""
        try:
            return (yield from self._context.on_queue(name, verb, may_miss=True))
        except Exception as error:
            # Somebody put a job into the place where one of ours wanted to wait, and committed after we
            # had looked. Now we see it, and the rule for a second retry applies.
            if not is_unique_violation(error):
                raise
        return (yield from self._context.on_queue(name, verb, may_miss=True))

    def _by_id(
        self,
        statement: str,
        name: str,
        targets: Targets,
        wanted: str,
        *,
        own: bool,
        ends: bool = False,
        anywhere: bool = False,
    ) -> Operation[Settled]:
        def change(queue: Queue) -> Operation[set[UUID]]:
            done = yield from change_once(queue, ids)
            missed = [id for id in ids if id not in done] if anywhere else []
            if missed:
                # One that ended while we waited for its row is in the archive now: only a new snapshot sees it there.
                done |= yield from change_once(queue, missed)
            return done

        def change_once(queue: Queue, ids: Sequence[UUID]) -> Operation[set[UUID]]:
            step = self._context.step(statement, queue.table_name, queue=name, ids=uuid_array(ids))
            if ends:
                flush = self._settling(queue, step, ids, own=own)
            else:
                after = tuple(self._after(queue, own=own, always=True))
                flush = Batch((step,), after) if own else Batch((step, *after))
            return {row[0] for row in read_first((yield flush if own or ends else InSavepoint(flush)))}

        ids = parse_targets(name, targets).ids
        done: set[UUID] = yield from self._finding_room(name, change)
        if ids and not done:
            # One that is as it was wanted and yet was not taken: only its place can have been missing.
            found = read_jobs((yield Batch((self._context.step("get_job", queue=name, id=ids[0]),))))
            raise JobNotFound(name, ids, wanted, taken=bool(found) and found[0].state == wanted)
        return Settled(len(ids), len(done), tuple(sorted(done)))

    def _settling(
        self, queue: Queue, step: BoundStatement, ids: Iterable[UUID], *, own: bool, frees: bool = False
    ) -> Batch:
        """A step that ends jobs, and the word to those who wait for that. ``frees``: jobs may run again."""
        array = uuid_array(ids)
        after = self._after(queue, own=own, always=frees)
        if own:
            return Batch((step,), (self._context.step("tell_watchers", ids=array), *after))
        return Batch((step, self._context.step("tell_ended", ids=array), *after))

    def _after(self, queue: Queue, *, own: bool, always: bool = False) -> list[BoundStatement]:
        """The word to the workers, where what was done may let another job run."""
        if not always and not queue.policy.is_keyed:
            return []
        return [self._context.wake(queue.name) if own else self._context.step("ring", queue=queue.name)]
