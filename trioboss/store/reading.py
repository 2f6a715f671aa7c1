"""Verbs that only look."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

import attrs

from trioboss.errors import UsageError
from trioboss.model.check import check_count, check_key, check_name, check_uuid
from trioboss.model.explanation import Explanation, Reason
from trioboss.model.job import Job
from trioboss.model.payload import encode
from trioboss.model.states import JobState
from trioboss.postgres.operation import Batch, Operation
from trioboss.store.context import Context
from trioboss.store.rows import read_first, read_jobs

__all__ = ["ReadOperations"]

_LIVE = (JobState.CREATED, JobState.RETRY, JobState.ACTIVE)
_FILTERS = ("id", "state", "singleton_key", "data", "source_id", "after", "limit")


@attrs.frozen
class ReadOperations:
    """Find jobs, and say why one is not running."""

    _context: Context

    def get_job(self, name: str, id: object) -> Operation[Job | None]:
        """One job by id, live or ended."""
        check_name("queue", name)
        step = self._context.step("get_job", queue=name, id=check_uuid("id", id))
        jobs = read_jobs((yield Batch((step,))))
        return jobs[0] if jobs else None

    def find_jobs(self, name: str, filters: Mapping[str, Any]) -> Operation[list[Job]]:
        """Jobs that pass all filters given, in order of sending."""
        check_name("queue", name)
        if unknown := set(filters) - set(_FILTERS):
            raise TypeError(f"find_jobs() got an unexpected filter {min(unknown)!r}; there are {_FILTERS}")
        values = _checked_filters(filters)
        statement = "find_jobs"
        if "id" in values:
            statement = "find_jobs_by_id"
        elif values.get("state") in _LIVE:
            statement = "find_live_jobs"
        return read_jobs((yield Batch((self._context.step(statement, queue=name, **values),))))

    def why(self, name: str, id: object) -> Operation[Explanation]:
        """What stands between a job and its start."""
        check_name("queue", name)
        wanted = check_uuid("id", id)
        queue = yield from self._context.look(name)
        step = self._context.step("explain_job", queue.table_name, queue=name, id=wanted)
        rows = read_first((yield Batch((step,))))
        if rows:
            return _explain(*rows[0])
        job = yield from self.get_job(name, wanted)
        if job is None:
            return Explanation(Reason.UNKNOWN, f"there is no job {wanted} in queue {name!r}")
        return Explanation(Reason.ENDED, f"it is {job.state} since {_clock(job.completed_on)}")


def _checked_filters(filters: Mapping[str, Any]) -> dict[str, object]:
    given = {name: value for name, value in filters.items() if value is not None}
    values: dict[str, object] = {"limit": check_count("limit", given.get("limit", 1000), low=1)}
    for name in ("id", "source_id"):
        if name in given:
            values[name] = check_uuid(name, given[name])
    if "state" in given:
        if given["state"] not in list(JobState):
            raise UsageError(f"state: {given['state']!r} is not a state: use one of {', '.join(JobState)}")
        values["state"] = given["state"]
    if "singleton_key" in given:
        values["singleton_key"] = check_key("singleton_key", given["singleton_key"])
    if "data" in given:
        values["data"] = encode(given["data"])
    if "after" in given:
        values["after"] = _check_after(given["after"])
    return values


def _check_after(seq: object) -> int:
    if isinstance(seq, int) and not isinstance(seq, bool) and 0 <= seq < 2**63:
        return seq
    raise UsageError(f"after: {seq!r} is not the seq of a job")


def _explain(
    state: str,
    gate: int,
    start_after: datetime,
    started_on: datetime | None,
    worker: UUID | None,
    key: str | None,
    policy: str,
    paused: bool,
    sleepers: int,
    workers: int,
    ahead: int,
    holder: UUID | None,
    holder_state: str | None,
    now: datetime,
) -> Explanation:
    """The first obstacle, from the one that outlasts all others to the one that goes away by itself."""
    if state == "active":
        who = f"worker {worker}" if worker else "somebody who fetched it by hand"
        return Explanation(Reason.RUNNING, f"it runs since {_clock(started_on)}, with {who}")
    if state == "failed":
        return Explanation(Reason.ENDED, f"it failed and blocks key {key!r}: retry it or delete it")
    if paused:
        return Explanation(Reason.PAUSED, "its queue is paused: resume_queue lets it go on")
    if start_after > now:
        return Explanation(Reason.DEFERRED, f"it is deferred until {_clock(start_after)}", until=start_after)
    if holder is not None and holder_state == "failed":
        text = f"key {key!r} is blocked by job {holder}, which failed: retry or delete that one"
        return Explanation(Reason.BLOCKED_KEY, text, behind=holder)
    if holder is not None:
        what = f"of key {key!r}" if key is not None else "of its queue"
        text = f"it is behind job {holder} {what}, which is {holder_state} (policy {policy})"
        return Explanation(Reason.BEHIND, text, behind=holder)
    if not sleepers and not workers:
        return Explanation(Reason.NO_WORKER, "no worker takes jobs of its queue")
    return Explanation(Reason.QUEUED, f"it is due, and {ahead} jobs of its queue go first")


def _clock(instant: datetime | None) -> str:
    return "?" if instant is None else f"{instant:%Y-%m-%d %H:%M:%S} UTC"
