"""The context that all operations share: the statements of one schema, a cache of its queues, and Python values as
parameters of statements.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import attrs

from trioboss.errors import QueueChanged, UnknownQueue
from trioboss.machines.maintenance import BusyNotifier
from trioboss.model.described_error import Redact
from trioboss.model.job import Lease
from trioboss.model.payload import MAX_BYTES
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_foreign_key_violation, is_table_gone, is_transaction_aborted
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import BinaryParameter, instant_array, int4_array, uuid_array
from trioboss.sql import COMMON_TABLE, Catalog, Statement
from trioboss.store.rows import read_first, read_queues

__all__ = ["Context", "bind", "lease_arrays", "text_array", "uuid_array"]

T = TypeVar("T")

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
    busy: BusyNotifier = attrs.field(factory=BusyNotifier, init=False)
    """Decides when this boss notifies the leader that it has jobs. Its clock is that of the caller."""
    claims: dict[str, dict[object, tuple[BoundStatement, ...]]] = attrs.field(factory=dict, init=False)
    """The statements of the last claims of each queue, by the terms they were made for."""
    _notifications: dict[tuple[str, bool], BoundStatement] = attrs.field(factory=dict, init=False)
    _queues: dict[str, Queue] = attrs.field(factory=dict, init=False)

    def bind(self, name: str, table: str = COMMON_TABLE, /, **values: object) -> BoundStatement:
        """The named statement with these parameters, addressed to one table of live jobs."""
        # Statements without this parameter ignore it; null lets the others read the clock of the database.
        values["now"] = self.now
        return bind(self.catalog.get(name, table), values)

    def notify_idle(self, name: str, *, ready: bool = False) -> BoundStatement:
        """The statement that notifies idle dispatchers; for a transaction of its own. It is the same each time, and
        kept. ``ready``: only about jobs that can run now.
        """
        key = (name, ready)
        return self._notifications.get(key) or self._notifications.setdefault(
            key, self.bind("notify_idle", queue=name, ready=ready)
        )

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

    def refer_to(self, name: str, statement: BoundStatement) -> Operation[None]:
        """Run a statement that writes a row about a queue, and returns none if there is no such queue."""
        try:
            found = read_first((yield Batch((statement,))))
        except Exception as error:
            # The queue was there when the statement began, and a concurrent transaction has deleted it.
            if is_foreign_key_violation(error):
                raise UnknownQueue(name) from error
            raise
        if not found:
            raise UnknownQueue(name)

    def on_queue(
        self, name: str, operation: Callable[[Queue], Operation[T]], *, may_miss: bool = False
    ) -> Operation[T]:
        """Run an operation on a queue; once more if the queue has another table by now.

        ``may_miss``: an empty answer may mean that the jobs are in another table. An operation that finds out that its
        queue is outdated forgets it and comes here again: an error of another table would not be recognized.
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


# -- parameters: Python values in the text format of the server; long arrays of ids and times in its binary format


def bind(statement: Statement, values: Mapping[str, object]) -> BoundStatement:
    """A statement with its parameters; a parameter that is not among the values is null."""
    get = values.get
    return BoundStatement(
        statement, [None if (v := get(name)) is None else _text(v) for name in statement.parameters]
    )


def _text(value: Any) -> bytes:
    # The types of parameters are in the casts of the statements.
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, BinaryParameter):
        return value
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, datetime):
        return value.isoformat().encode()
    return str(value).encode()


def text_array(values: Iterable[str | None]) -> str:
    """An array of strings, as text."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def lease_arrays(leases: Iterable[Lease], unfenced: Iterable[UUID] = ()) -> dict[str, object]:
    """The parameters that fence a statement: leases as three arrays, and ids that stand for whatever is active."""
    fenced = list(leases)
    values: dict[str, object] = {
        "attempts": int4_array([lease.attempt for lease in fenced]),
        "starts": instant_array([lease.started_on for lease in fenced]),
    }
    ids = [lease.id for lease in fenced]
    if any_active := list(unfenced):
        # In both arrays: `ids` finds the rows, `unfenced` lets them pass the fence.
        ids += any_active
        values["unfenced"] = uuid_array(any_active)
    return values | {"ids": uuid_array(ids)}
