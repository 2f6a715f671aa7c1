"""Operations by which bosses see each other: polls, leadership, workers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import attrs

from trioboss.model.job import Lease
from trioboss.model.polling import PollResult
from trioboss.model.queue import Queue
from trioboss.postgres import BoundStatement
from trioboss.postgres.operation import Batch, Operation
from trioboss.postgres.wire import Results
from trioboss.store.context import Context, text_array, uuid_array
from trioboss.store.rows import read_first
from trioboss.store.settling import SettleOperations

__all__ = ["PresenceOperations"]


@attrs.frozen
class PresenceOperations:
    """Poll the queues, lead, and register workers."""

    _context: Context

    def get_rights(self) -> Operation[tuple[bool, bool]]:
        """Whether our role may do maintenance, and whether it may fire the ticks of cron."""
        ((supervise, schedule),) = read_first((yield Batch((self._context.bind("get_rights"),))))
        return supervise, schedule

    def poll_statement(
        self,
        queues: Sequence[str],
        token: str,
        candidate: UUID | None = None,
        seconds: float = 0.0,
        *,
        session: bool = False,
    ) -> BoundStatement:
        """The statement that polls these queues; a candidate leads for so many seconds if nobody else does."""
        leading = {"candidate": candidate, "seconds": seconds, "session": session}
        return self._context.bind("poll", queues=text_array(queues), token=token, **leading)

    def read_poll(self, results: Results) -> PollResult:
        """The answer to a poll."""
        # The row without a queue is the answer to the candidate; UNION ALL promises no order.
        ours, *rows = sorted(read_first(results), key=lambda row: row[0] is not None)
        return PollResult({row[0]: row[1] for row in rows}, bool(ours[2]), ours[4], bool(ours[3]))

    def bulk_poll(self, worker: UUID, queues: Sequence[str]) -> Operation[Mapping[str, float]]:
        """Set a worker's idle markers for these queues, and only then poll them all."""
        # Two transactions: a sender that commits before the markers are visible is seen by the poll, and one that
        # commits later sees the markers.
        markers = self._context.bind("set_idle_markers", worker=worker, queues=text_array(queues))
        _, polled = yield Batch((markers,), (self.poll_statement(queues, "bulk_poll"),))
        return self.read_poll([polled]).due

    def register_statement(
        self, *, worker: UUID, boss: UUID, name: str, queue: str, lock: int | None, pid: int | None, info: str
    ) -> BoundStatement:
        """The statement that registers a worker, or renews its registration. ``pid``: the server process of the session
        that holds the lock; None if the boss has no such session yet. ``info``: what operators see of the worker, as
        JSON.
        """
        values = {"worker": worker, "boss": boss, "name": name, "queue": queue, "lock": lock, "pid": pid}
        return self._context.bind("register_worker", **values, info=info)

    def register(self, get_pid: Callable[[], int | None], **registration: Any) -> Operation[None]:
        """A worker begins. If the boss has another session by the time that the row is written, the row names the
        process of one that has ended, and is written again.
        """
        while True:
            pid = get_pid()
            yield Batch((self.register_statement(pid=pid, **registration),))
            if get_pid() == pid:
                return

    def keep_lag(self, boss: UUID, lag: float) -> Operation[None]:
        """Tell operators for how long the event loop of a boss stood still."""
        yield Batch((self._context.bind("keep_lag", boss=boss, lag=lag),))

    def unregister(self, worker: UUID) -> Operation[None]:
        """A worker has ended."""
        yield Batch((self._context.bind("unregister_worker", worker=worker),))

    def recover_unseen(self, name: str, worker: UUID, known: Iterable[UUID]) -> Operation[None]:
        """Release jobs that are leased to a worker and that it has no record of: all but the ``known`` ones."""
        values = {"queue": name, "worker": worker, "known": uuid_array(known)}

        def find(queue: Queue) -> Operation[list[Lease]]:
            bound = self._context.bind("find_unseen_leases", queue.table_name, **values)
            return [Lease(*row) for row in read_first((yield Batch((bound,))))]

        unseen = yield from self._context.on_queue(name, find, may_miss=True)
        if unseen:
            # Released: this process has no record of the lease, which is no failure of the job.
            yield from SettleOperations(self._context).release_leases(name, unseen)

    def notify(self, payload: str) -> Operation[None]:
        """Notify all bosses."""
        yield Batch((self._context.bind("notify", payload=payload),))
