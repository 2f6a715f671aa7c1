"""Operations that cancel, resume, retry, update and delete jobs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

import attrs

from trioboss.errors import JobNotFound, UnknownQueue, UsageError
from trioboss.model.answers import Settled
from trioboss.model.check import check_key, check_name, check_uuid, shown
from trioboss.model.job import NewJob, UpdateOptions
from trioboss.model.option_names import check_known
from trioboss.model.payload import encode
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.operation import Batch, InSavepoint, Operation
from trioboss.postgres.wire import BinaryParameter
from trioboss.store.context import Context, uuid_array
from trioboss.store.rows import read_first, read_jobs
from trioboss.store.sending import overrides, start
from trioboss.store.settling import once_more_if_taken
from trioboss.store.targets import Targets, parse_targets

__all__ = ["ChangeOperations", "check_changes"]

# Active jobs first: a worker that completed one of them in between would move it to the archive, which comes last.
_ALL_JOBS = ("delete_active_jobs", "delete_queued_jobs", "delete_stored_jobs")
_CHUNK = 10_000  # rows a statement deletes, so that it never holds locks for long


@attrs.frozen
class ChangeOperations:
    """Change jobs by id, or many at once. ``own`` says whether the transaction is ours or the caller's."""

    _context: Context

    def cancel(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Cancel queued or active jobs."""
        return (yield from self._by_id("cancel", name, targets, "queued or active", own=own, ends=True))

    def resume(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Queue cancelled jobs again."""
        return (yield from self._by_id("resume", name, targets, "cancelled", own=own))

    def retry(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Give failed jobs one more attempt."""
        return (yield from self._by_id("retry", name, targets, "failed", own=own))

    def delete(self, name: str, targets: Targets, *, own: bool) -> Operation[Settled]:
        """Remove jobs in any state."""
        return (
            yield from self._by_id("delete_job", name, targets, "such", own=own, ends=True, anywhere=True)
        )

    def update(
        self, name: str, id: object, key: object, match: object, changes: Mapping[str, Any], *, own: bool
    ) -> Operation[Settled]:
        """Change queued jobs: one by its id, or those of a key."""
        done = yield from self.find_and_update(name, id, key, match, changes, own=own)
        if not done:
            wanted = [] if id is None else [check_uuid("id", id)]
            raise JobNotFound(name, wanted, "queued", key=key)
        return Settled(len(done), len(done), tuple(sorted(done)))

    def find_and_update(
        self, name: str, id: object, key: object, match: object, changes: Mapping[str, Any], *, own: bool
    ) -> Operation[list[UUID]]:
        """Change queued jobs, if there are any; return their ids."""
        check_name("queue", name)
        values = _check_choice(id, key, match)
        job = check_changes(changes)
        if job.dead_letter is not None:
            yield from self._context.reload(job.dead_letter)
        values |= start(job) | {"queue": name, "priority": job.priority, "options": overrides(job)}
        if "data" in changes:
            data = None if job.data is None else encode(job.data, "data", self._context.max_bytes)
            values |= {"with_data": True, "data": data}

        def update(queue: Queue) -> Operation[list[UUID]]:
            bound = self._context.bind("update_jobs", queue.table_name, **values)
            # A job may run earlier now, or let another one of its key run.
            notify = self._notify(queue, own=own)
            batch = Batch((bound,), (notify,)) if own else Batch((bound, notify))
            return [row[0] for row in read_first((yield batch))]

        return (yield from self._context.on_queue(name, update, may_miss=True))

    def delete_many(self, name: str, statements: Sequence[str], *, own: bool) -> Operation[int]:
        """Remove a queue's queued or stored jobs, in chunks; return how many."""
        check_name("queue", name)
        queue = yield from self._context.reload(name)
        total = 0
        for statement in statements:
            while count := (yield from self._context.on_queue(name, partial(self._delete_chunk, statement))):
                total += count
        if queue.policy.is_keyed:
            # A deleted job may have owned its key, or blocked it: the next job of the key can run now.
            yield Batch((self._notify(queue, own=own),))
        return total

    def _delete_chunk(self, statement: str, queue: Queue) -> Operation[int]:
        delete = self._context.bind(statement, queue.table_name, queue=queue.name, limit=_CHUNK)
        ((count,),) = read_first((yield Batch((delete,))))
        return int(count)

    def delete_all(self, name: str | None, *, own: bool) -> Operation[int]:
        """Remove all jobs of a queue, or of all queues; return how many."""
        if name is not None:
            return (yield from self.delete_many(name, _ALL_JOBS, own=own))
        return (yield from self._delete_everywhere(_ALL_JOBS, own=own))

    def delete_all_queued(self, *, own: bool) -> Operation[int]:
        """Remove the queued jobs of all queues; return how many."""
        return (yield from self._delete_everywhere(("delete_queued_jobs",), own=own))

    def _delete_everywhere(self, statements: Sequence[str], *, own: bool) -> Operation[int]:
        # Queue by queue, in chunks: one statement for all would lock all live jobs until its end.
        names = [row[0] for row in read_first((yield Batch((self._context.bind("get_queues"),))))]
        total = 0
        for each in names:
            with suppress(UnknownQueue):  # it was deleted meanwhile
                total += yield from self.delete_many(each, statements, own=own)
        return total

    def clear_storage(self) -> Operation[None]:
        """Remove all jobs of all queues."""
        # Workers check their leases then, and cancel the handlers of the jobs that are gone.
        yield Batch((self._context.bind("clear_storage"), self._context.bind("notify", payload="*leases")))

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
                # A job that ended while the statement waited for its row is in the archive now: only a new snapshot
                # sees it there.
                done |= yield from change_once(queue, missed)
            return done

        def change_once(queue: Queue, ids: Sequence[UUID]) -> Operation[set[UUID]]:
            # In the caller's transaction a statement that queues jobs again runs in a savepoint: it may find a policy
            # slot taken, and the transaction has to survive that.
            array = uuid_array(ids)
            bound = self._context.bind(statement, queue.table_name, queue=name, ids=array)
            batch = self._with_notifications(queue, bound, array, own=own, ends=ends)
            return {row[0] for row in read_first((yield batch if own or ends else InSavepoint(batch)))}

        ids = parse_targets(name, targets).ids
        done: set[UUID] = yield from once_more_if_taken(self._context, name, change)
        if ids and not done:
            # A job that is in the wanted state and was not changed: only its policy slot can have been taken.
            found = read_jobs((yield Batch((self._context.bind("get_job", queue=name, id=ids[0]),)))[0][0])
            raise JobNotFound(name, ids, wanted, taken=bool(found) and found[0].state == wanted)
        return Settled(len(ids), len(done), tuple(sorted(done)))

    def _with_notifications(
        self, queue: Queue, statement: BoundStatement, ids: BinaryParameter, *, own: bool, ends: bool
    ) -> Batch:
        """The statement, and after it the notifications: of the waiters for an end, and of the workers."""
        # On a connection of ours they follow the commit (a NOTIFY inside would hold a lock of the whole database until
        # the commit is on disk); the caller's transaction has no later statement, so they are part of it. Only the
        # notification that cancels the handler of an active job is part of the statement itself (cancel.sql and
        # delete_job.sql): few jobs are cancelled while they run.
        notifications: list[BoundStatement] = []
        if ends:
            notifications.append(self._context.bind("notify_waiters" if own else "notify_changed", ids=ids))
        if not ends or queue.policy.is_keyed:
            notifications.append(self._notify(queue, own=own))
        return Batch((statement,), tuple(notifications)) if own else Batch((statement, *notifications))

    def _notify(self, queue: Queue, *, own: bool) -> BoundStatement:
        """The notification of the workers, where a change may let another job run."""
        return (
            self._context.notify_idle(queue.name)
            if own
            else self._context.bind("notify_queue", queue=queue.name)
        )


def check_changes(changes: Mapping[str, Any]) -> NewJob:
    """The changes of `update_job`, checked as the options of a job."""
    check_known("update_job", changes, UpdateOptions.__annotations__, ("id", "key", "match", "conn"))
    if not changes:
        raise UsageError("update_job: nothing to change: give data, priority, start_after or an option")
    return NewJob(**changes)


def _check_choice(id: object, key: object, match: object) -> dict[str, object]:
    """The jobs to change, as parameters of update_jobs.sql."""
    if (id is None) == (key is None):
        raise UsageError("update_job: give the id of the job, or the key of some, and not both")
    if match not in ("newest", "oldest", "all"):
        raise UsageError(f"match: {shown(match)} is not one of newest, oldest, all")
    if key is None:
        return {"ids": uuid_array([check_uuid("id", id)])}
    limit = None if match == "all" else 1
    return {"key": check_key("key", key), "newest": match == "newest", "limit": limit}
