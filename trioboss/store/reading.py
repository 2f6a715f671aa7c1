"""Operations that only read."""

from collections.abc import Mapping
from typing import Any

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import (
    check_count,
    check_flag,
    check_instant,
    check_key,
    check_name,
    check_uuid,
)
from trioboss.model.explanation import Explanation, Reason
from trioboss.model.job import FindOptions, Job
from trioboss.model.option_names import check_known
from trioboss.model.payload import encode
from trioboss.model.queue import Queue
from trioboss.model.states import JobState
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context
from trioboss.store.explaining import Obstacles, explain, show_clock
from trioboss.store.rows import read_first, read_jobs

__all__ = ["ReadOperations"]


@attrs.frozen
class ReadOperations:
    """Find jobs, and explain why one is not running."""

    _context: Context

    def get_job(self, name: str, id: object) -> Operation[Job | None]:
        """One job by id, live or ended."""
        check_name("queue", name)
        get = self._context.bind("get_job", queue=name, id=check_uuid("id", id))
        jobs = read_jobs((yield Batch((get,)))[0][0])
        if not jobs:
            yield from self._context.reload(name)  # ended jobs of a queue that is gone can still be read
        return jobs[0] if jobs else None

    def find_jobs(self, name: str, filters: Mapping[str, Any]) -> Operation[list[Job]]:
        """Jobs that pass all filters given, in order of their ids, or newest first."""
        check_name("queue", name)
        check_known("find_jobs", filters, FindOptions.__annotations__, ("conn",), {"key": "singleton_key"})
        values = _checked_filters(filters)
        newest = "newest_" if values.pop("newest", False) else ""
        names = ["find_job_by_id"]
        if "id" not in values:
            halves = ["live"] if values.get("queued") else _halves(values.get("state"))
            names = [f"find_{newest}{half}_jobs" for half in halves]
        # Both halves in one transaction. Each returns a page of its own, sorted by id, so their merged beginning is
        # the page.
        results = yield Batch(tuple(self._context.bind(each, queue=name, **values) for each in names))
        jobs = [job for result in results[0] for job in read_jobs(result)]
        if not jobs:
            yield from self._context.reload(name)
        jobs.sort(key=lambda job: job.id, reverse=bool(newest))
        return jobs[: int(str(values["limit"]))]

    def why(self, name: str, id: object) -> Operation[Explanation]:
        """Explain why a job is not running."""
        check_name("queue", name)
        wanted = check_uuid("id", id)

        def read(queue: Queue) -> Operation[list[tuple[Any, ...]]]:
            bound = self._context.bind("explain_job", queue.table_name, queue=name, id=wanted)
            return read_first((yield Batch((bound,))))

        # Read again: an explanation of a table that the queue has left would be wrong.
        yield from self._context.reload(name)
        rows = yield from self._context.on_queue(name, read)
        if rows:
            return explain(Obstacles(*rows[0]))
        ends = read_first((yield Batch((self._context.bind("get_end", queue=name, id=wanted),))))
        if not ends:
            return Explanation(
                Reason.UNKNOWN, f"there is no job {wanted} in queue {name!r}: it may have been deleted"
            )
        ((outcome, ended_on),) = ends
        return Explanation(Reason.ENDED, f"{_ENDINGS[JobState(outcome)]} at {show_clock(ended_on)}")


_ENDINGS = {
    JobState.COMPLETED: "it completed",
    JobState.FAILED: "it failed",
    JobState.CANCELLED: "it was cancelled",
}


def _halves(state: object) -> list[str]:
    """Where jobs of a state are: in the live table, in the archive, or, if they failed, in either."""
    if state is None or state == JobState.FAILED:
        return ["live", "ended"]
    return ["ended"] if JobState(str(state)).is_ended else ["live"]


def _checked_filters(filters: Mapping[str, Any]) -> dict[str, object]:
    given = {name: value for name, value in filters.items() if value is not None}
    values: dict[str, object] = {"limit": check_count("limit", given.get("limit", 1000), low=1)}
    for name in ("id", "source_id", "after"):
        if name in given:
            values[name] = check_uuid(name, given[name])
    for name in ("since", "until"):
        if name in given:
            values[name] = check_instant(name, given[name])
    for name in ("newest", "queued"):
        if name in given:
            values[name] = check_flag(name, given[name])
    if "state" in given:
        if given["state"] not in list(JobState):
            raise UsageError(f"state: {given['state']!r} is not a state: use one of {', '.join(JobState)}")
        values["state"] = str(given["state"])
        if given["state"] in (JobState.FAILED, JobState.CANCELLED):
            values["outcome"] = values["state"]
    if "singleton_key" in given:
        values["singleton_key"] = check_key("singleton_key", given["singleton_key"])
    if "data" in given:
        values["data"] = encode(given["data"])
    return values
