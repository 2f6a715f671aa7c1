"""The context that all operations share: the statements of one schema, a cache of its queues, and Python values as
parameters of statements.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import attrs

from trioboss.errors import QueueChanged, UnknownQueue
from trioboss.model.described_error import Redact
from trioboss.model.job import Lease
from trioboss.model.payload import MAX_BYTES
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_table_gone, is_transaction_aborted
from trioboss.postgres.operation import Batch, Operation
from trioboss.sql import COMMON_LEAF, Catalog, Statement
from trioboss.store.rows import read_queues

__all__ = ["Context", "bind", "lease_arrays", "text_array", "uuid_array"]

T = TypeVar("T")

_BUSY_INTERVAL = 10.0  # seconds; a leader counts a boss as busy for 15
_MOST_MOVES = 5  # times that a queue may get another table while one operation is under way


@attrs.define(eq=False)
class Context:
    """The statements of a schema, a cache of its queues, and the time if it is not the database's."""

    catalog: Catalog
    max_bytes: int = MAX_BYTES
    redact: Redact | None = None
    """Changes the description of each error before it is stored."""
    queue_defaults: Mapping[str, Any] = attrs.field(factory=dict)
    """Options of new queues that `create_queue` does not name."""
    now: datetime | None = None
    """For tests: the time that statements use. None: the clock of the database."""
    claims: dict[str, tuple[object, tuple[BoundStatement, ...]]] = attrs.field(factory=dict, init=False)
    """The statements of the last claim of each queue, with the request they were made for."""
    _notifications: dict[tuple[str, bool], BoundStatement] = attrs.field(factory=dict, init=False)
    _queues: dict[str, Queue] = attrs.field(factory=dict, init=False)
    _busy_at: float = attrs.field(default=-math.inf, init=False)

    def bind(self, name: str, leaf: str = COMMON_LEAF, /, **values: object) -> BoundStatement:
        """The named statement with these parameters, addressed to one table of live jobs."""
        # Statements without this parameter ignore it; null lets the others read the clock of the database.
        values["now"] = self.now
        return bind(self.catalog.get(name, leaf), values)

    def notify_idle(self, name: str, *, ready: bool = False) -> BoundStatement:
        """The statement that notifies idle dispatchers; for a transaction of its own. It is the same each time, and
        kept. ``ready``: only about jobs that can run now.
        """
        key = (name, ready)
        return self._notifications.get(key) or self._notifications.setdefault(
            key, self.bind("notify_idle", queue=name, ready=ready)
        )

    def busy_notification(self, *, own: bool) -> BoundStatement | None:
        """The statement that tells the leader of leases that were taken manually. On our own connections now and then:
        the leader watches for longer than that. In the caller's transaction always: nobody knows when it commits.
        """
        now = time.monotonic()
        if own and now - self._busy_at < _BUSY_INTERVAL:
            return None
        if own:
            self._busy_at = now
        return self.bind("notify_queue", queue="*busy")

    # -- queues

    def cached(self, name: str) -> Queue | None:
        """The queue as it was last read, if it was."""
        return self._queues.get(name)

    def find(self, name: str) -> Operation[Queue]:
        """The queue of that name. It may be outdated: each statement checks the options that it depends on."""
        queue = self._queues.get(name)
        return queue if queue is not None else (yield from self.reload(name))

    def reload(self, name: str) -> Operation[Queue]:
        """The queue of that name, as it is now."""
        found = read_queues((yield Batch((self.bind("get_queues", queue=name),))))
        self.forget(name)
        if not found:
            raise UnknownQueue(name)
        self.remember(found)
        return found[0]

    def remember(self, queues: list[Queue]) -> None:
        """Cache queues that were just read."""
        self._queues.update((queue.name, queue) for queue in queues)

    def forget(self, name: str | None = None) -> None:
        """Read a queue, or all of them, again at their next use."""
        if name is None:
            self._queues.clear()
            self.claims.clear()
            self._notifications.clear()
        else:
            # Bound statements name the table of the queue: they are as outdated as the queue itself.
            self._queues.pop(name, None)
            self.claims.pop(name, None)
            self._notifications.pop((name, False), None)
            self._notifications.pop((name, True), None)

    def on_queue(
        self, name: str, operation: Callable[[Queue], Operation[T]], *, may_miss: bool = False
    ) -> Operation[T]:
        """Run an operation on a queue; once more if the queue has another table by now.

        ``may_miss``: an empty answer may mean that the jobs are in another table.
        """
        # The cache may be outdated: another boss may have deleted the queue and created it again, and a notification of
        # that comes later, or not at all. A statement for a table that is gone fails; a statement for a table that
        # exists and no longer holds the queue finds nothing.
        queue = yield from self.find(name)
        for _ in range(_MOST_MOVES):
            try:
                answer = yield from operation(queue)
                if answer or not may_miss or not (yield from self.has_moved(queue)):
                    return answer
            except Exception as error:
                if not is_table_gone(error, of_queue=queue.partition):
                    raise
                queue = yield from self._find_after(name, error)
            else:
                queue = yield from self.find(name)
        raise QueueChanged(name)

    def _find_after(self, name: str, error: Exception) -> Operation[Queue]:
        """The queue as it is now, after a statement for its old table has failed."""
        self.forget(name)
        try:
            return (yield from self.find(name))
        except Exception as second:
            if is_transaction_aborted(second):  # by the first error: it is the caller's transaction
                raise QueueChanged(name) from error
            raise

    def has_moved(self, queue: Queue) -> Operation[bool]:
        """Whether the jobs of a cached queue are in another table now: it was deleted and created again."""
        found = read_queues((yield Batch((self.bind("get_queues", queue=queue.name),))))
        self.forget(queue.name)
        self.remember(found)
        return bool(found) and found[0].table_name != queue.table_name


# -- parameters: Python values in the text format of the server


def bind(statement: Statement, values: Mapping[str, object]) -> BoundStatement:
    """A statement with its parameters; a parameter that is not among the values is null."""
    get = values.get
    return BoundStatement(
        statement, [None if (v := get(name)) is None else _text(v) for name in statement.parameters]
    )


def _text(value: Any) -> bytes:
    # All parameters are text: their types are in the casts of the statements.
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, datetime):
        return value.isoformat().encode()
    return str(value).encode()


def uuid_array(ids: Iterable[UUID]) -> str:
    """An array of ids, as text."""
    return "{" + ",".join(map(str, ids)) + "}"


def text_array(values: Iterable[str | None]) -> str:
    """An array of strings, as text."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lease_arrays(leases: Iterable[Lease], unfenced: Iterable[UUID] = ()) -> dict[str, str]:
    """The parameters that fence a statement: leases as three arrays, and ids that stand for whatever is active."""
    ids: list[str] = []
    attempts: list[str] = []
    starts: list[str] = []
    times: dict[datetime, str] = {}  # the jobs of one claim have started at the same time
    for lease in leases:
        ids.append(str(lease.id))
        attempts.append(str(lease.attempt))
        started_on = lease.started_on
        starts.append(times.get(started_on) or times.setdefault(started_on, f'"{started_on.isoformat()}"'))
    values = {"attempts": "{" + ",".join(attempts) + "}", "starts": "{" + ",".join(starts) + "}"}
    if any_active := [str(id) for id in unfenced]:
        # In both arrays: `ids` finds the rows, `unfenced` lets them pass the fence.
        ids += any_active
        values["unfenced"] = "{" + ",".join(any_active) + "}"
    return values | {"ids": "{" + ",".join(ids) + "}"}
