"""Operations of statistics: samples of all queues, their history, and warnings that are kept."""

from collections.abc import Sequence
from datetime import datetime

import attrs

from trioboss.errors import UnknownQueue
from trioboss.model.check import check_count, check_instant, check_name
from trioboss.model.queue import QueueStats
from trioboss.model.states import JobState
from trioboss.model.statistics import BOUNDS, KeptWarning, QueueSample, Row, check_period, summarize
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context, text_array
from trioboss.store.rows import read_first, read_stats

__all__ = ["StatisticsOperations"]

_BOUNDS = "{" + ",".join(map(str, BOUNDS)) + "}"


@attrs.frozen
class StatisticsOperations:
    """Take samples of the queues, and read statistics."""

    _context: Context

    def sample(self) -> Operation[None]:
        """Add what is new since the last sample. One transaction: a sample is added as a whole, and once."""
        bind = self._context.bind
        yield Batch(
            (
                # First: it takes the span that is new for this transaction, and the others add what is in it. If
                # another boss has just taken it, they find nothing.
                bind("sample_take"),
                bind("sample_completed", bounds=_BOUNDS),
                bind("sample_failed"),
                bind("sample_arrived"),
                bind("sample_own_ids"),
                bind("sample_live"),
            )
        )

    def get_history(
        self, name: str, since: object, until: object, bucket: object
    ) -> Operation[list[QueueSample]]:
        """The samples of a queue, added up to periods."""
        check_name("queue", name)
        # A name that is misspelt is an error, and no empty history.
        yield from self._context.reload(name)
        ((now,),) = read_first((yield Batch((self._context.bind("read_clock"),))))
        first, end, period = check_period(since, until, bucket, now)
        rows = yield from self.read_samples(name, first, end)
        return summarize(rows, first, end, period)

    def read_samples(self, name: str, since: datetime, until: datetime) -> Operation[list[Row]]:
        """The samples of a queue by the minute, and the last one before them."""
        get = self._context.bind("get_samples", queue=name, since=since, until=until)
        return read_first((yield Batch((get,))))

    def get_stats(self, name: str) -> Operation[QueueStats]:
        """Count the queue's jobs now."""
        check_name("queue", name)
        stats = read_stats((yield Batch((self._context.bind("get_queue_stats", queue=name),))))
        if name not in stats:
            raise UnknownQueue(name)
        return stats[name]

    def get_all_stats(self) -> Operation[dict[str, QueueStats]]:
        """Count the jobs of each queue now."""
        return read_stats((yield Batch((self._context.bind("get_queue_stats"),))))

    def count_states(self) -> Operation[dict[str, dict[str, int]]]:
        """How many jobs of each queue are in each state, ended ones of the last day."""
        stats = yield from self.get_all_stats()
        return {name: _by_state(each) for name, each in stats.items()}

    def keep_warnings(self, warnings: Sequence[tuple[str | None, str, str]]) -> Operation[None]:
        """Keep warnings: the queue, the kind, and the message of each."""
        queues, kinds, messages = (text_array(column) for column in zip(*warnings, strict=True))
        yield Batch((self._context.bind("keep_warnings", queues=queues, kinds=kinds, messages=messages),))

    def get_warnings(self, queue: str | None, since: object, limit: int) -> Operation[list[KeptWarning]]:
        """Warnings of one queue, or of all, the newest first."""
        values = {
            "queue": None if queue is None else check_name("queue", queue),
            "since": None if since is None else check_instant("since", since),
            "limit": check_count("limit", limit, low=1),
        }
        rows = read_first((yield Batch((self._context.bind("get_warnings", **values),))))
        # Only to tell a queue without warnings from a name that is misspelt.
        if not rows and queue is not None:
            yield from self._context.reload(queue)
        return [KeptWarning(*row) for row in rows]


def _by_state(stats: QueueStats) -> dict[str, int]:
    return {
        JobState.CREATED: stats.queued - stats.retries,
        JobState.RETRY: stats.retries,
        JobState.ACTIVE: stats.active,
        JobState.COMPLETED: stats.completed,
        JobState.CANCELLED: stats.cancelled,
        JobState.FAILED: stats.failed,
    }
