"""Verbs that end, cancel, revive and delete jobs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

import attrs

from trioboss.errors import JobNotFound, LeaseLost, UsageError
from trioboss.model.check import check_name, check_uuid
from trioboss.model.job import Job, Lease, Settled
from trioboss.model.payload import describe_error, encode
from trioboss.model.queue import Queue
from trioboss.model.states import JobState
from trioboss.postgres import Step
from trioboss.postgres.conversation import Conversation, Flush
from trioboss.postgres.verdicts import unique_is_violated
from trioboss.store.context import Context
from trioboss.store.parameters import fence, uuid_array
from trioboss.store.rows import read_first

__all__ = ["Ended", "Failure", "SettleVerbs", "Target", "Targets"]

Target = Job | UUID | str
Targets = Target | Iterable[Target]

_Fences = dict[UUID, tuple[int | None, datetime | None]]
_ALL_JOBS = ("delete_active_jobs", "delete_queued_jobs", "delete_stored_jobs")
_CHUNK = 10_000  # rows a statement deletes, so that it never holds locks for long


@attrs.frozen
class Failure:
    """How an attempt ended badly. The error is JSON text."""

    error: str | None = None
    delay: float | None = None
    """Seconds until the next try, instead of the job's own retry delay."""
    dead: bool = False
    """Skip the retries."""
    outcome: str = "failed"
    """What the history calls it: failed, expired or lost."""

    def as_json(self) -> str:
        """The part of the fence that fail.sql reads."""
        rest = json.dumps([self.delay, self.dead, self.outcome])[1:-1]
        return f"{self.error or 'null'},{rest}"


@attrs.frozen
class Ended:
    """What became of the attempts that were settled: the states of the jobs, by id."""

    states: dict[UUID, JobState]


def _parse(targets: Targets) -> list[Target]:
    if isinstance(targets, Job | UUID | str):
        return [targets]
    return list(targets)


def _fences(targets: Sequence[Target]) -> _Fences:
    """Fence each job object by its lease, a plain id not at all. In order, so that no two calls deadlock."""
    fences: _Fences = {}
    for target in targets:
        if isinstance(target, Job):
            # A job that was not active when it was read has no lease, and never matches.
            lease = target.lease
            fences[target.id] = (target.attempt if lease else -1, target.started_on or target.created_on)
        else:
            fences[check_uuid("id", target)] = (None, None)
    return dict(sorted(fences.items()))


def _judge(name: str, targets: Sequence[Target], done: set[UUID], wanted: str) -> Settled:
    """Turn what was asked and what was done into the answer, or the error, that the caller gets."""
    stale = [t.id for t in targets if isinstance(t, Job) and t.id not in done]
    if stale:
        raise LeaseLost(name, stale)
    asked = [check_uuid("id", t) for t in targets if not isinstance(t, Job)]
    if asked and not done:
        raise JobNotFound(name, asked, wanted)
    return Settled(len(targets), len(done), tuple(sorted(done)))


@attrs.frozen
class SettleVerbs:
    """End jobs and undo it. ``own`` says whether the transaction is ours or the caller's."""

    _context: Context

    # -- for callers: one or many, answered by Settled

    def complete(self, name: str, targets: Targets, output: object, *, own: bool) -> Conversation[Settled]:
        """End active jobs well."""
        asked = self._check(name, targets)
        text = "null" if output is None else encode(output, "output", self._context.max_bytes)
        fences = _fences(asked)
        done = yield from self.complete_leases(name, fences, dict.fromkeys(fences, text), own=own)
        return _judge(name, asked, done, "active")

    def fail(self, name: str, targets: Targets, error: object, *, own: bool) -> Conversation[Settled]:
        """End active attempts badly."""
        asked = self._check(name, targets)
        fences = _fences(asked)
        failure = Failure(describe_error(error))
        ended = yield from self.fail_leases(name, fences, dict.fromkeys(fences, failure), own=own)
        return _judge(name, asked, set(ended.states), "active")

    def touch(self, name: str, targets: Targets, *, own: bool) -> Conversation[Settled]:
        """Renew the leases of active jobs."""
        asked = self._check(name, targets)
        fences = _fences(asked)
        values = {"queues": "{" + name + "}", "ids": uuid_array(fences)}
        values["leases"] = fence(fences, dict.fromkeys(fences, "null"))
        queue = yield from self._context.know(name)
        step = self._context.step("touch", queue.table_name, lazy=own, **values)
        return _judge(name, asked, {row[0] for row in read_first((yield Flush((step,))))}, "active")

    def cancel(self, name: str, targets: Targets, *, own: bool) -> Conversation[Settled]:
        """Take queued or active jobs out."""
        return (yield from self._by_id("cancel", name, targets, "queued or active", own=own, ends=True))

    def resume(self, name: str, targets: Targets, *, own: bool) -> Conversation[Settled]:
        """Queue cancelled jobs again."""
        return (yield from self._by_id("resume", name, targets, "cancelled", own=own))

    def retry(self, name: str, targets: Targets, *, own: bool) -> Conversation[Settled]:
        """Give failed jobs one more try."""
        return (yield from self._by_id("retry", name, targets, "failed", own=own))

    def delete(self, name: str, targets: Targets, *, own: bool) -> Conversation[Settled]:
        """Remove jobs in any state."""
        return (yield from self._by_id("delete_job", name, targets, "such", own=own, ends=True))

    def delete_many(self, name: str, statements: Sequence[str], *, own: bool) -> Conversation[int]:
        """Remove a queue's queued or stored jobs, in chunks; return how many."""
        check_name("queue", name)
        queue = yield from self._context.know(name)
        total = 0
        for statement in statements:
            while True:
                step = self._context.step(statement, queue.table_name, queue=name, limit=_CHUNK)
                ((count,),) = read_first((yield Flush((step,))))
                total += count
                if count == 0:
                    break
        if after := self._after(queue, own=own):
            yield Flush(tuple(after))
        return total

    def delete_all(self, name: str | None, *, own: bool) -> Conversation[int]:
        """Remove all jobs of a queue, or of all queues; return how many."""
        names = [name] if name is not None else [row[0] for row in read_first((yield self._all_names()))]
        total = 0
        for each in names:
            total += yield from self.delete_many(each, _ALL_JOBS, own=own)
        return total

    def _all_names(self) -> Flush:
        return Flush((self._context.step("get_queues"),))

    def clear_storage(self) -> Conversation[None]:
        """Remove all jobs of all queues."""
        yield Flush((self._context.step("clear_storage"),))

    # -- for the runtime: many at once, fenced, told what became of each

    def complete_leases(
        self, name: str, fences: _Fences, outputs: Mapping[UUID, str], *, own: bool
    ) -> Conversation[set[UUID]]:
        """End attempts well; return the ids of those that were still theirs to end."""

        def end(queue: Queue) -> Conversation[set[UUID]]:
            values = {"queue": name, "ids": uuid_array(fences), "leases": fence(fences, outputs)}
            statement = "complete_and_tell" if queue.on_complete else "complete"
            step = self._context.step(statement, queue.table_name, **values)
            results = yield self._settling(queue, step, fences, own=own)
            rows = read_first(results)
            if rows and rows[0][1] and not queue.on_complete:
                self._context.forget(name)
                return (yield from end((yield from self._context.know(name))))
            return {row[0] for row in rows if row[0] is not None}

        return (yield from self._context.on_queue(name, end))

    def fail_leases(
        self, name: str, fences: _Fences, failures: Mapping[UUID, Failure], *, own: bool
    ) -> Conversation[Ended]:
        """End attempts badly; return what became of those that were still theirs to end."""

        def end(queue: Queue) -> Conversation[Ended]:
            rest = {id: failures[id].as_json() for id in fences}
            values = {"queue": name, "ids": uuid_array(fences), "leases": fence(fences, rest)}
            step = self._context.step("fail", queue.table_name, **values)
            rows = read_first((yield self._settling(queue, step, fences, own=own)))
            return Ended({row[0]: JobState(row[1]) for row in rows})

        try:
            return (yield from self._context.on_queue(name, end))
        except Exception as error:
            # Somebody put a job into the place where one of ours wanted to retry, and committed after we
            # had looked. Now we see it, and the rule for a second retry applies.
            if not unique_is_violated(error) or not own:
                raise
        return (yield from self._context.on_queue(name, end))

    def release_leases(self, name: str, leases: Iterable[Lease], *, own: bool = True) -> Conversation[None]:
        """Queue the jobs again, no attempt spent. Who finds no room (see fail.sql) fails."""

        def release(queue: Queue) -> Conversation[set[UUID]]:
            values = {"queue": name, "ids": uuid_array(fences)}
            values["leases"] = fence(fences, dict.fromkeys(fences, "null"))
            step = self._context.step("release", queue.table_name, **values)
            rows = read_first((yield Flush((step,), tuple(self._after(queue, own=own, always=True)))))
            return {row[0] for row in rows}

        fences: _Fences = {lease.id: (lease.attempt, lease.started_on) for lease in leases}
        released = yield from self._context.on_queue(name, release)
        if left := {id: lease for id, lease in sorted(fences.items()) if id not in released}:
            failure = Failure(describe_error("released, but the place to wait for a retry is taken"))
            yield from self.fail_leases(name, left, dict.fromkeys(left, failure), own=own)

    # -- how

    def _check(self, name: str, targets: Targets) -> list[Target]:
        check_name("queue", name)
        asked = _parse(targets)
        for target in asked:
            if isinstance(target, Job) and target.queue != name:
                raise UsageError(f"queue: job {target.id} is of queue {target.queue!r}, not {name!r}")
        return asked

    def _by_id(
        self, statement: str, name: str, targets: Targets, wanted: str, *, own: bool, ends: bool = False
    ) -> Conversation[Settled]:
        def change(queue: Queue) -> Conversation[set[UUID]]:
            step = self._context.step(statement, queue.table_name, queue=name, ids=uuid_array(ids))
            if ends:
                flush = self._settling(queue, step, ids, own=own)
            else:
                after = tuple(self._after(queue, own=own, always=True))
                flush = Flush((step,), after) if own else Flush((step, *after))
            return {row[0] for row in read_first((yield flush))}

        asked = self._check(name, targets)
        ids = sorted({t.id if isinstance(t, Job) else check_uuid("id", t) for t in asked})
        done: set[UUID] = yield from self._context.on_queue(name, change)
        if ids and not done:
            raise JobNotFound(name, ids, wanted)
        return Settled(len(ids), len(done), tuple(sorted(done)))

    def _settling(self, queue: Queue, step: Step, ids: Iterable[UUID], *, own: bool) -> Flush:
        """A step that ends jobs, and the word to those who wait for that."""
        array = uuid_array(ids)
        if own:
            tell = self._context.step("tell_watchers", ids=array)
            return Flush((step,), (tell, *self._after(queue, own=True)))
        tell = self._context.step("tell_ended", ids=array)
        return Flush((step, tell, *self._after(queue, own=False)))

    def _after(self, queue: Queue, *, own: bool, always: bool = False) -> list[Step]:
        """The word to the workers, where what was done may let another job run."""
        if not always and not queue.policy.is_keyed:
            return []
        return [self._context.step("wake" if own else "ring", queue=queue.name)]
