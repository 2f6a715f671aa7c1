"""Operations on queues."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from trioboss.errors import QueueBusy, QueueExists, QueueInUse, StatementFailed, UnknownQueue, UsageError
from trioboss.model.check import check_name, shown
from trioboss.model.queue import Queue, changed_settings, make_settings
from trioboss.model.states import JobState
from trioboss.postgres.errors import is_lock_not_available, is_permission_denied
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import BoundStatement, read_rows
from trioboss.sql import COMMON_TABLE
from trioboss.store.context import Context, text_array
from trioboss.store.rows import read_first, read_queues

__all__ = ["QueueOperations"]

_COMPLETIONS = "__state__completed__"


@attrs.frozen
class QueueOperations:
    """Create, change, read and delete queues."""

    _context: Context

    def create(self, name: str, options: Mapping[str, Any]) -> Operation[None]:
        """Make a queue; the same queue again is fine, another one of that name is not."""
        check_name("queue", name)
        if name.startswith(_COMPLETIONS):
            raise UsageError(f"queue: {name!r} is for completion jobs: fetch_completed makes it when needed")
        settings = make_settings({**self._context.queue_defaults, **options})
        yield from self._check_dead_letter(name, settings.dead_letter)
        table = f"j{hashlib.md5(name.encode()).hexdigest()}" if settings.partition else COMMON_TABLE
        values = attrs.asdict(settings) | {"queue": name, "table_name": table}
        made = yield from self._rebuild(name, "created", self._context.bind("create_queue", **values))
        self._context.forget(name)
        if not made:
            existing = yield from self._context.find(name)
            if differing := existing.differences(settings):
                raise QueueExists(name, differing)

    def update(self, name: str, options: Mapping[str, Any]) -> Operation[None]:
        """Change the options given. They apply to queued jobs, too. A running attempt keeps the expiry and heartbeat of
        its claim; retries are read when it fails.
        """
        check_name("queue", name)
        changed = changed_settings(options)
        yield from self._check_dead_letter(name, changed.get("dead_letter"))
        update = self._context.bind("update_queue", queue=name, given=text_array(changed), **changed)
        yield from self._expect_queue(name, Batch((update,)))

    def delete(self, name: str) -> Operation[None]:
        """Remove a queue with its live jobs. A queue that does not exist is fine."""
        check_name("queue", name)
        # The database refuses it for queues by a foreign key, but not for jobs that override the option.
        users = read_first((yield Batch((self._context.bind("dead_letter_users", queue=name),))))
        if users:
            by_jobs = users[0][1]
            raise QueueInUse(name, [user for user, kind in users if kind == by_jobs], by_jobs=by_jobs)
        yield from self._rebuild(name, "deleted", self._context.bind("delete_queue", queue=name))
        self._context.forget(name)

    def pause(self, name: str, paused: bool) -> Operation[None]:
        """Stop or resume handing out the queue's jobs."""
        check_name("queue", name)
        yield from self._expect_queue(name, Batch((self._context.bind("pause", queue=name, paused=paused),)))

    def get(self, name: str) -> Operation[Queue | None]:
        """The queue of that name, as it is now."""
        check_name("queue", name)
        found = read_queues((yield Batch((self._context.bind("get_queues", queue=name),))))
        self._context.forget(name)
        self._context.remember(found)
        return found[0] if found else None

    def get_all(self, names: Iterable[str] | None = None) -> Operation[list[Queue]]:
        """All queues, or those of these names, by name."""
        if isinstance(names, str):  # otherwise its letters would be the names
            raise UsageError(f"names: {shown(names)} is one name: use a list of names, or `get_queue`")
        if names is not None:
            return (yield from self._get_named([check_name("names", name) for name in names]))
        found = read_queues((yield Batch((self._context.bind("get_queues"),))))
        self._context.forget()  # also the queues that no longer exist
        self._context.remember(found)
        return found

    def _get_named(self, names: list[str]) -> Operation[list[Queue]]:
        found = read_queues((yield Batch((self._context.bind("get_queues", names=text_array(names)),))))
        self._context.remember(found)
        if missing := sorted(set(names) - {queue.name for queue in found}):
            self._context.forget(missing[0])
            raise UnknownQueue(missing[0])
        return found

    def get_size(self, name: str, before: str) -> Operation[int]:
        """Count the jobs in the states before the given one."""
        check_name("queue", name)
        if before not in list(JobState):
            raise UsageError(f"before: {before!r} is not a state: use one of {', '.join(JobState)}")

        def count(queue: Queue) -> Operation[list[tuple[Any, ...]]]:
            values = {"queue": name, "before": before}
            return read_first(
                (yield Batch((self._context.bind("get_queue_size", queue.table_name, **values),)))
            )

        yield from self._context.reload(name)
        rows = yield from self._context.on_queue(name, count)
        if not rows:
            raise UnknownQueue(name)
        return int(rows[0][0])

    def get_blocked_keys(self, name: str) -> Operation[list[str]]:
        """The keys of a strict FIFO queue that a failed job blocks."""
        check_name("queue", name)

        def find(queue: Queue) -> Operation[list[tuple[Any, ...]]]:
            queue.require_strict_fifo()
            return read_first(
                (yield Batch((self._context.bind("get_blocked_keys", queue.table_name, queue=name),)))
            )

        yield from self._context.reload(name)
        return [key for (key,) in (yield from self._context.on_queue(name, find))]

    def copy_completions(self, name: str, *, history: bool) -> Operation[str]:
        """Have a completion job made for each job that ends; return the name of the queue where they are."""
        check_name("queue", name)
        lock = self._context.bind("lock_queue", queue=name)
        copy = self._context.bind("copy_completions", queue=name, history=history)
        rows = read_rows((yield Batch((lock, copy)))[0][-1])
        self._context.forget(name)
        if not rows:
            raise UnknownQueue(name)
        return str(rows[0][0])

    def _rebuild(self, name: str, how: str, statement: BoundStatement) -> Operation[list[tuple[Any, ...]]]:
        """Run a statement that locks tables, if the queue has a table of its own."""
        try:
            return read_first((yield Batch((statement,))))
        except Exception as error:
            if is_lock_not_available(error):
                raise QueueBusy(name, how) from error
            if is_permission_denied(error):
                # The error names the first table that is refused, which need not be that of the queues.
                text = f"queue {name!r} cannot be {how}: permission denied to this database role"
                raise StatementFailed(text, getattr(error, "sqlstate", None)) from error
            raise

    def _check_dead_letter(self, name: str, dead_letter: str | None) -> Operation[None]:
        """Check that the dead letter queue exists, and that its chain never leads back to this queue."""
        # A trigger refuses cycles, too, whoever makes them. This one names the queue in an error of ours.
        link = dead_letter
        while link is not None:
            if link == name:
                raise UsageError(f"dead_letter: {dead_letter!r} would lead back to {name!r}")
            found = read_queues((yield Batch((self._context.bind("get_queues", queue=link),))))
            if not found:
                raise UnknownQueue(link, dead_letter_of=name)
            link = found[0].dead_letter

    def _expect_queue(self, name: str, batch: Batch) -> Operation[None]:
        rows = read_first((yield batch))
        self._context.forget(name)
        if not rows:
            raise UnknownQueue(name)
