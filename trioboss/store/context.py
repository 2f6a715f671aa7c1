"""What all verbs share: the statements of one schema, and what is known of its queues."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import attrs

from trioboss.errors import UnknownQueue
from trioboss.model.payload import MAX_BYTES
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.errors import is_table_gone, is_transaction_aborted
from trioboss.postgres.operation import Batch, Operation
from trioboss.sql import COMMON_LEAF, Catalog
from trioboss.store.parameters import step
from trioboss.store.rows import read_queues

__all__ = ["Context"]

T = TypeVar("T")


@attrs.define(eq=False)
class Context:
    """The statements of a schema, the queues seen so far, and the time if it is not the database's."""

    catalog: Catalog
    max_bytes: int = MAX_BYTES
    now: datetime | None = None
    """For tests: what statements take for the time. None: the clock of the database."""
    places: dict[str, str] = attrs.field(factory=dict, init=False)
    """Where place.sql is to go on, for each queue in which it could not look at all keys at once."""
    claims: dict[str, tuple[object, tuple[BoundStatement, ...]]] = attrs.field(factory=dict, init=False)
    """The last claim made for each queue, and on what terms."""
    _words: dict[tuple[str, bool], BoundStatement] = attrs.field(factory=dict, init=False)
    _queues: dict[str, Queue] = attrs.field(factory=dict, init=False)

    def step(self, name: str, leaf: str = COMMON_LEAF, /, **values: object) -> BoundStatement:
        """The named statement with these parameters, addressed to one job table."""
        values["now"] = self.now
        return step(self.catalog.get(name, leaf), values)

    def wake(self, name: str, *, ready: bool = False) -> BoundStatement:
        """The step that wakes who sleeps; for a transaction of its own. It is the same each time, and kept.
        ``ready``: for nothing but jobs that can run now.
        """
        word = (name, ready)
        return self._words.get(word) or self._words.setdefault(
            word, self.step("wake", queue=name, ready=ready)
        )

    def recall(self, name: str) -> Queue | None:
        """What is remembered of a queue."""
        return self._queues.get(name)

    def know(self, name: str) -> Operation[Queue]:
        """The queue of that name. What is remembered may be old: statements check what matters themselves."""
        queue = self._queues.get(name)
        return queue if queue is not None else (yield from self.look(name))

    def look(self, name: str) -> Operation[Queue]:
        """The queue of that name, read anew."""
        found = read_queues((yield Batch((self.step("get_queues", queue=name),))))
        self.forget(name)
        if not found:
            raise UnknownQueue(name)
        self.remember(found)
        return found[0]

    def remember(self, queues: list[Queue]) -> None:
        """Take note of queues just read."""
        self._queues.update((queue.name, queue) for queue in queues)

    def forget(self, name: str | None = None) -> None:
        """Read a queue, or all of them, anew when next needed."""
        if name is None:
            self._queues.clear()
            self.claims.clear()
            self._words.clear()
        else:
            self._queues.pop(name, None)
            self.claims.pop(name, None)
            self._words.pop((name, False), None)
            self._words.pop((name, True), None)

    def on_queue(
        self, name: str, verb: Callable[[Queue], Operation[T]], *, may_miss: bool = False
    ) -> Operation[T]:
        """Run a verb on a queue; once more if the queue's table turns out to be another one now.

        ``may_miss``: nothing found may mean that we looked into the wrong table.
        """
        queue = yield from self.know(name)
        try:
            answer = yield from verb(queue)
            if answer or not may_miss or not (yield from self.has_moved(queue)):
                return answer
        except Exception as error:
            if not is_table_gone(error):
                raise
            self.forget(name)
            return (yield from self._once_more(name, verb, error))
        return (yield from verb((yield from self.know(name))))

    def _once_more(self, name: str, verb: Callable[[Queue], Operation[T]], first: Exception) -> Operation[T]:
        try:
            return (yield from verb((yield from self.know(name))))
        except Exception as error:
            if is_transaction_aborted(error):
                raise first from None  # it was the caller's transaction, and this is what spoilt it
            raise

    def has_moved(self, queue: Queue) -> Operation[bool]:
        """Whether the jobs of a queue that was remembered are in another table now: it was made anew."""
        found = read_queues((yield Batch((self.step("get_queues", queue=queue.name),))))
        self.forget(queue.name)
        self.remember(found)
        return bool(found) and found[0].table_name != queue.table_name
