"""The actions of the buttons: each is one transaction, with the row of the audit in it."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import attrs

from trioboss.api.sync import SyncBoss
from trioboss.errors import JobNotFound, UsageError
from trioboss.postgres.blocking import BlockingConnection, execute_blocking
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import read_rows
from trioboss.store import Store
from trioboss.store.context import uuid_array
from trioboss.store.rows import read_first

__all__ = [
    "JOB_ACTIONS",
    "Change",
    "RedriveChunk",
    "change_jobs",
    "change_queue",
    "pause_schedule",
    "redrive",
    "send",
]

JOB_ACTIONS: Mapping[str, str] = {
    "retry": "failed jobs get one more attempt",
    "cancel": "queued and active jobs end as cancelled",
    "resume": "cancelled jobs are queued again",
    "run-now": "deferred jobs need not wait any longer",
    "priority": "queued jobs get another priority",
    "redrive": "dead letters are sent again to the queues they came from, if these accept them",
    "delete": "jobs are removed, in any state, and cannot be brought back",
}
"""The actions on jobs, and their functions."""


@attrs.frozen
class Change:
    """The person and the action, for the audit. Chunks of one change share its row."""

    who: str
    action: str
    queue: str | None
    filter: Any = None
    id: UUID | None = None


@contextmanager
def _transaction(boss: SyncBoss, store: Store) -> Iterator[BlockingConnection]:
    """A transaction that neither waits for locks nor runs for long."""
    with boss.transaction() as conn:
        execute_blocking(conn, _run(store.context.bind("limit_action")), conn)
        yield conn


def change_jobs(
    store: Store, change: Change, ids: Sequence[UUID], priority: int | None
) -> Callable[[SyncBoss], tuple[UUID, int]]:
    """Do something to jobs; the id of the audit row, and how many jobs were changed."""

    def run(boss: SyncBoss) -> tuple[UUID, int]:
        queue = str(change.queue)
        with _transaction(boss, store) as conn:
            try:
                affected = _change(boss, store, conn, change.action, queue, ids, priority) if ids else 0
            except JobNotFound:
                affected = 0
            return _audit(store, conn, change, len(ids), affected), affected

    return run


def _change(
    boss: SyncBoss,
    store: Store,
    conn: BlockingConnection,
    action: str,
    queue: str,
    ids: Sequence[UUID],
    priority: int | None,
) -> int:
    methods = {"retry": boss.retry, "cancel": boss.cancel, "resume": boss.resume, "delete": boss.delete_job}
    if action in methods:
        return methods[action](queue, list(ids), conn=conn).affected
    if action == "redrive":
        return execute_blocking(conn, store.redriving.move_selected(queue, ids), conn).moved
    if action not in JOB_ACTIONS:
        raise UsageError(f"action: {action[:50]!r} is not one of {', '.join(JOB_ACTIONS)}")
    reschedule = _reschedule(store, queue, ids, run_now=action == "run-now", priority=priority)
    return execute_blocking(conn, reschedule, conn)


def _reschedule(
    store: Store, name: str, ids: Sequence[UUID], *, run_now: bool, priority: int | None
) -> Operation[int]:
    queue = yield from store.context.reload(name)
    values = {"queue": name, "ids": uuid_array(ids), "run_now": run_now, "priority": priority}
    reschedule = store.context.bind("reschedule", queue.table_name, **values)
    results = yield Batch((reschedule, store.context.bind("notify_queue", queue=name)))
    return len(read_rows(results[0][0]))


def change_queue(store: Store, change: Change, *, paused: bool) -> Callable[[SyncBoss], None]:
    """Pause or unpause a queue."""

    def run(boss: SyncBoss) -> None:
        with _transaction(boss, store) as conn:
            (boss.pause if paused else boss.resume_queue)(str(change.queue), conn=conn)
            _audit(store, conn, change, 1, 1)

    return run


def pause_schedule(store: Store, change: Change, key: str, *, paused: bool) -> Callable[[SyncBoss], bool]:
    """Pause or unpause a schedule; whether there is one."""

    def run(boss: SyncBoss) -> bool:
        with _transaction(boss, store) as conn:
            pause = store.context.bind("pause_schedule", queue=change.queue, key=key, paused=paused)
            found = execute_blocking(conn, _run(pause), conn)
            if found:
                _audit(store, conn, change, 1, 1)
            return bool(found)

    return run


def send(
    store: Store, change: Change, data: Any, options: Mapping[str, Any]
) -> Callable[[SyncBoss], UUID | None]:
    """Send a job; its id, or None if the policy refused it."""

    def run(boss: SyncBoss) -> UUID | None:
        with _transaction(boss, store) as conn:
            id = boss.send(str(change.queue), data, conn=conn, **options)
            recorded = {**(change.filter or {}), "job": None if id is None else str(id)}
            _audit(store, conn, attrs.evolve(change, filter=recorded), 1, int(id is not None))
            return id

    return run


# -- redriving


@attrs.frozen
class RedriveChunk:
    """One chunk of dead letters that were sent again."""

    audit: UUID
    affected: int
    end: UUID | None
    """The id after which the next chunk begins; None if there are no more."""


def redrive(
    store: Store, change: Change, source: str | None, after: UUID | None, committed: str, limit: int
) -> Callable[[SyncBoss], RedriveChunk]:
    """Send dead letters to the queues they came from again: those after an id, of a count."""

    def run(boss: SyncBoss) -> RedriveChunk:
        with _transaction(boss, store) as conn:
            move = store.redriving.move(
                str(change.queue), None, source, after, None, limit, committed=committed
            )
            moved, end = execute_blocking(conn, move, conn)
            requested = moved.moved + moved.unroutable + moved.refused + moved.duplicates
            return RedriveChunk(_audit(store, conn, change, requested, moved.moved), moved.moved, end)

    return run


def _run(statement: Any) -> Operation[list[tuple[Any, ...]]]:
    return read_first((yield Batch((statement,))))


def _audit(store: Store, conn: BlockingConnection, change: Change, requested: int, affected: int) -> UUID:
    values = {
        "id": change.id,
        "who": change.who,
        "action": change.action,
        "queue": change.queue,
        "filter": None if change.filter is None else json.dumps(change.filter, default=str),
        "requested": requested,
        "affected": affected,
    }
    rows = execute_blocking(conn, _run(store.context.bind("keep_audit", **values)), conn)
    if not rows:  # raised in the transaction of the change, which is rolled back
        raise UsageError("audit: this is not the row of this action")
    return rows[0][0]  # type: ignore[no-any-return]
