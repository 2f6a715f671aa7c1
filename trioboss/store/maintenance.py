"""Verbs of maintenance: watching over leases, retention, presence, cron's ledger."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import attrs

from trioboss.model.job import Lease, NewJob
from trioboss.model.payload import describe_error
from trioboss.model.polling import PollResult, Watch
from trioboss.model.schedule import Schedule
from trioboss.model.settle_and_claim import Failure
from trioboss.postgres.errors import is_table_gone
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import BoundStatement, Results
from trioboss.store.context import Context
from trioboss.store.parameters import text_array, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.sending import SendOperations
from trioboss.store.settling import SettleOperations

__all__ = ["MaintenanceOperations"]

_CHUNK = 10_000  # rows a statement deletes
_PAGES = 4_000  # pages that a statement reads, 32 MB
_ERRORS = {
    "expired": describe_error("the job expired"),
    "lost": describe_error("its worker is gone, or its heartbeats stopped"),
}

_Outcome = Literal["expired", "lost"]


@attrs.frozen
class MaintenanceOperations:
    """What is done for all jobs, not for one."""

    _context: Context

    def get_rights(self) -> Operation[tuple[bool, bool]]:
        """Whether our role may do maintenance for all, and whether it may fire cron's ticks."""
        ((supervise, schedule),) = read_first((yield Batch((self._context.step("get_rights"),))))
        return supervise, schedule

    # -- presence and looks

    def looking(
        self,
        queues: Sequence[str],
        token: str,
        candidate: UUID | None = None,
        seconds: float = 0.0,
        *,
        session: bool = False,
    ) -> BoundStatement:
        """The step that looks whether these queues have something to do; a candidate leads if nobody else does."""
        leading = {"candidate": candidate, "seconds": seconds, "session": session}
        return self._context.step("look", queues=text_array(queues), token=token, **leading)

    def read_look(self, results: Results) -> PollResult:
        """The answer to a look."""
        ours, *rows = sorted(read_first(results), key=lambda row: row[0] is not None)
        return PollResult({row[0]: row[1] for row in rows}, bool(ours[2]), ours[4])

    def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Operation[Mapping[str, float]]:
        """Mark a worker as asleep in these queues, and only then look which of them have something to do."""
        names = text_array(queues)
        mark = self._context.step("mark_all_asleep", worker=worker, queues=names)
        _, looked = yield Batch((mark,), (self.looking(queues, "bulk_poll"),))
        return self.read_look([looked]).due

    def introducing(
        self, worker: UUID, boss: UUID, name: str, queue: str, lock: int | None
    ) -> BoundStatement:
        """The step that makes a worker known, or known again."""
        values = {"worker": worker, "boss": boss, "name": name, "queue": queue, "lock": lock}
        return self._context.step("register_worker", **values)

    def register(self, worker: UUID, boss: UUID, name: str, queue: str, lock: int | None) -> Operation[None]:
        """A worker begins."""
        yield Batch((self.introducing(worker, boss, name, queue, lock),))

    def unregister(self, worker: UUID) -> Operation[None]:
        """A worker has ended."""
        yield Batch((self._context.step("unregister_worker", worker=worker),))

    def recover_unseen(self, name: str, worker: UUID, known: Iterable[UUID]) -> Operation[None]:
        """Queue again what a worker was given by a claim whose answer got lost."""
        queue = yield from self._context.know(name)
        step = self._context.step(
            "disown", queue.table_name, queue=name, worker=worker, known=uuid_array(known)
        )
        unseen = [Lease(*row) for row in read_first((yield Batch((step,))))]
        if unseen:
            yield from SettleOperations(self._context).release_leases(name, unseen)

    def announce(self, word: str) -> Operation[None]:
        """Tell all bosses something."""
        yield Batch((self._context.step("announce", message=word),))

    def count_states(self) -> Operation[dict[str, dict[str, int]]]:
        """How many jobs of each queue are in each state; queues without jobs are left out."""
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for name, state, count in read_first((yield Batch((self._context.step("count_states"),)))):
            counts[name][state] = count
        return dict(counts)

    # -- leases

    def watch(self, grace: float, margin: float, *, full: bool) -> Operation[Watch]:
        """End leases that ran out, or whose worker is gone; see what is active and what deserves a warning."""
        step = self._context.step("watch_over", grace=grace, margin=margin, full=full)
        rows: dict[str, list[Any]] = defaultdict(list)
        for kind, *rest in read_first((yield Batch((step,)))):
            rows[kind].append(rest)
        ended = yield from self._end(rows["ended"])
        if dead := [row[1] for row in rows["dead"]]:
            yield Batch((self._context.step("drop_workers", dead=uuid_array(dead)),))
        active, next_expiry = (rows["active"][0][2], rows["active"][0][5]) if rows["active"] else (0, None)
        warnings = [_explain_warning(*row) for row in rows["warning"]]
        return Watch(ended, active - sum(len(ids) for _, _, ids in ended), next_expiry, warnings)

    def _end(self, rows: Iterable[Any]) -> Operation[list[tuple[str, _Outcome, tuple[UUID, ...]]]]:
        attempts: dict[tuple[str, _Outcome], list[Lease]] = defaultdict(list)
        for name, id, attempt, started_on, outcome, _ in rows:
            attempts[name, outcome].append(Lease(id, attempt, started_on))
        ended: list[tuple[str, _Outcome, tuple[UUID, ...]]] = []
        for (name, outcome), leases in attempts.items():
            failure = Failure(_ERRORS[outcome], outcome=outcome)
            failed = [(lease, failure) for lease in leases]
            states = yield from SettleOperations(self._context).fail_leases(name, failed)
            if states:
                ended.append((name, outcome, tuple(states)))
        return ended

    # -- retention

    def tidy(self) -> Operation[None]:
        """Drop what is old: jobs that waited too long, days of history; make the days that come.

        A reader who holds on to a day is waited for in the next round, not here: everybody would wait with us.
        """
        yield Batch((self._context.step("tidy"),))
        yield from self._purge_orphans()
        yield from self._purge_queued()
        for history, day, _ in read_first((yield Batch((self._context.step("list_days"),)))):
            if (yield from self._is_over(day)):
                yield Batch((self._context.step("drop_day", history=history, day=day),))
        yield from self._purge_ended()

    def _is_over(self, day: date) -> Operation[bool]:
        ((over,),) = read_first((yield Batch((self._context.step("is_day_over", day=day),))))
        return bool(over)

    def _purge_orphans(self) -> Operation[None]:
        count = _CHUNK
        while count == _CHUNK:
            ((count,),) = read_first((yield Batch((self._context.step("purge_orphans", limit=_CHUNK),))))

    # Page by page: a statement that read all of a table would hold back vacuum for as long.

    def _purge_queued(self) -> Operation[None]:
        for leaf, pages in (yield from self._count_pages("job")):
            try:
                for part in _parts(pages):
                    yield Batch((self._context.step("purge_queued", leaf, **part),))
            except Exception as error:
                if not is_table_gone(error):  # with its queue
                    raise

    def _purge_ended(self) -> Operation[None]:
        tables = yield from self._count_pages("archive")
        for since, until, pages in _spans({_day_of(name): pages for name, pages in tables}):
            for part in _parts(pages):
                yield Batch((self._context.step("purge_ended", since=since, until=until, **part),))

    def _count_pages(self, table: str) -> Operation[list[tuple[Any, ...]]]:
        return read_first((yield Batch((self._context.step("count_pages", table=table),))))

    # -- cron

    def read_schedules(self) -> Operation[tuple[datetime, list[tuple[Schedule, datetime | None]]]]:
        """The time of the database, and each schedule with its last tick."""
        rows = read_first((yield Batch((self._context.step("get_last_ticks"),))))
        schedules = [(Schedule(*row[1:10]), row[10]) for row in rows if row[1] is not None]
        return rows[0][0], schedules

    def fire(self, schedule: Schedule, due: datetime, id: UUID) -> Operation[tuple[bool, UUID | None, float]]:
        """Write a tick into the ledger and send its job, both or neither. Needs an open transaction around it."""
        step = self._context.step("fire_tick", queue=schedule.queue, key=schedule.key, due=due, id=id)
        rows = read_first((yield Batch((step,))))
        if not rows:
            return False, None, 0.0
        ours, early = rows[0]
        if not ours:
            return False, None, early
        job = NewJob.from_options(schedule.data, schedule.options | {"id": id})
        return True, (yield from SendOperations(self._context).send(schedule.queue, job, own=False)), 0.0


def _parts(pages: int) -> Iterator[dict[str, str]]:
    for first in range(0, pages, _PAGES):
        yield {"first": f"({first},0)", "after": f"({first + _PAGES},0)"}


def _day_of(table: str) -> date | None:
    """The day whose history the table has; None for the one of days without a table."""
    day = table.rpartition("_")[2]
    return datetime.strptime(day, "%Y%m%d").date() if day.isdecimal() else None


def _spans(pages: dict[date | None, int]) -> Iterator[tuple[str, str, int]]:
    """The days that have a table, and the times between them that have none, each with the pages of its table."""
    strays = pages.get(None, 0)
    since = "-infinity"
    for day in sorted(day for day in pages if day is not None):
        until = str(day + timedelta(days=1))
        if since != str(day):
            yield since, str(day), strays
        yield str(day), until, pages[day]
        since = until
    yield since, "infinity", strays


def _explain_warning(
    queue: str | None, _: object, pid: int | None, since: object, kind: str, number: float
) -> tuple[str | None, str, str]:
    texts = {
        "queue_size": f"more than {number:.0f} jobs wait",
        "oldest_age": f"a job waits for {number:.0f} s, and no worker takes it",
        "old_snapshot": f"the transaction of backend {pid} is open for {number:.0f} s: nothing can be vacuumed",
        "notify_queue": f"the server's notification queue is {number:.0%} full: some session does not read",
    }
    return queue, kind, texts[kind]
