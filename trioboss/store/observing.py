"""Operations for operators: what happens now, and what happened to a job."""

from collections.abc import Sequence
from uuid import UUID

import attrs

from trioboss.model.check import check_key, check_name, check_uuid
from trioboss.model.observation import (
    Attempt,
    BacklogJob,
    BlockedBacklog,
    BlockedKey,
    FailureView,
    Observation,
    QueueView,
    RunningView,
    WorkerView,
)
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import read_rows
from trioboss.sql.grants import Right
from trioboss.store.context import Context, text_array
from trioboss.store.rows import read_first

__all__ = ["ObserveOperations"]


@attrs.frozen
class ObserveOperations:
    """Read what an operator wants to see."""

    _context: Context

    def get_workers(self) -> Operation[list[WorkerView]]:
        """All workers."""
        rows = read_first((yield Batch((self._context.bind("get_workers"),))))
        return [WorkerView(*row) for row in rows]

    def get_attempts(self, name: str, id: object) -> Operation[list[Attempt]]:
        """The attempts of a job that did not end well, in order."""
        check_name("queue", name)
        get = self._context.bind("get_attempts", queue=name, id=check_uuid("id", id))
        return [Attempt(*row) for row in read_first((yield Batch((get,))))]

    def get_backlog(self, name: str, key: str, limit: int) -> Operation[list[BacklogJob]]:
        """The owner of a key, and the jobs behind it, in the order in which they will run."""
        check_name("queue", name)
        # Read again: with the table of a queue that was created anew since, the backlog would look empty.
        queue = yield from self._context.reload(name)
        values = {"queue": name, "key": check_key("key", key), "limit": limit}
        get = self._context.bind("get_backlog", queue.table_name, **values)
        return [BacklogJob(*row) for row in read_first((yield Batch((get,))))]

    def list_blocked(self, name: str | None, limit: int) -> Operation[list[BlockedBacklog]]:
        """The keys that failed jobs block, of one queue or of all."""
        if name is not None:
            queue = yield from self._context.reload(check_name("queue", name))
            queue.require_strict_fifo()
        found = self._context.bind("list_blocked_keys", queue=name, limit=limit)
        return [BlockedBacklog(*row) for row in read_first((yield Batch((found,))))]

    def find_missing_rights(self, needed: Sequence[Right]) -> Operation[list[Right]]:
        """Those of the rights that the current role lacks."""
        examine = self._context.bind(
            "examine_rights",
            kinds=text_array([each.kind for each in needed]),
            names=text_array([each.name for each in needed]),
            columns=text_array([each.column for each in needed]),
            rights=text_array([each.right for each in needed]),
        )
        return [needed[position - 1] for (position,) in read_first((yield Batch((examine,))))]

    def observe(self, since: UUID, until: UUID, limit: int) -> Operation[Observation]:
        """Everything that happens now; jobs with ids between ``since`` and ``until`` count as sent meanwhile."""
        bind = self._context.bind
        statements = (
            bind("observe_queues", since=since, until=until),
            bind("observe_running", limit=limit),
            bind("observe_failures", limit=limit),
            bind("observe_blocked", limit=limit),
            bind("get_workers"),
        )
        # One transaction, but READ COMMITTED: a job may move between two of the views. A screen that
        # is drawn again each second needs no snapshot.
        queues, running, failures, blocked, workers = map(read_rows, (yield Batch(statements))[0])
        return Observation(
            tuple(QueueView(*row) for row in queues),
            tuple(RunningView(*row) for row in running),
            tuple(FailureView(*row) for row in failures),
            tuple(BlockedKey(*row) for row in blocked),
            tuple(WorkerView(*row) for row in workers),
        )
