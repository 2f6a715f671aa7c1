"""Why a job is not running: the first obstacle, in words."""

from datetime import datetime
from uuid import UUID

import attrs

from trioboss.model.explanation import Explanation, Reason
from trioboss.model.states import JobState, Readiness

__all__ = ["Obstacles", "explain", "show_clock"]

_MOST_AHEAD = 10_000  # explain_job.sql counts no further


@attrs.frozen
class Obstacles:
    """The obstacles between a live job and its start: the row of explain_job.sql."""

    readiness: str
    start_after: datetime
    started_on: datetime | None
    worker: UUID | None
    key: str | None
    attempt: int
    error: str | None
    """The class of the error of its last failure."""
    policy: str
    paused: bool
    workers: int
    """Workers of its queue, connected or not."""
    connected: int
    slots: int | None
    """Jobs that the connected ones can run at once; None if they do not say so."""
    running: int | None
    """Jobs that the connected ones have."""
    seen_on: datetime | None
    """The last sign of one that is not connected."""
    is_connected: bool | None
    """Whether the worker that has the job is connected; None if there is no such worker."""
    worker_seen_on: datetime | None
    ahead: int
    """Ready jobs of its queue that go first."""
    behind: UUID | None
    """The job of its key that goes first."""
    behind_state: str | None
    behind_due: datetime | None
    behind_error: str | None
    now: datetime


def explain(found: Obstacles) -> Explanation:
    """The first obstacle, from the one that lasts longest to the one that goes away by itself."""
    if found.readiness == Readiness.ACTIVE:
        return Explanation(Reason.RUNNING, _running(found))
    if found.readiness == Readiness.ENDED:
        text = f"it failed and blocks key {found.key!r}: retry it or delete it, the jobs behind it wait until then"
        return Explanation(Reason.ENDED, text)
    if found.paused:
        return Explanation(Reason.PAUSED, "its queue is paused: unpause it")
    # The time is compared, and not the readiness: a job whose time has come stays `deferred` in the database until the
    # next claim promotes it.
    if found.start_after > found.now:
        waits = _deferred(found.error if found.attempt else None, found.start_after)
        return Explanation(Reason.DEFERRED, f"it {waits}", until=found.start_after)
    if found.behind is not None:
        return _behind(found, found.behind)
    if not found.workers:
        return Explanation(Reason.NO_WORKER, "no worker takes jobs of its queue: start one")
    if not found.connected:
        number = "its worker is" if found.workers == 1 else f"its {found.workers:,} workers are"
        text = f"{number} not connected (last sign at {show_clock(found.seen_on)}): start one"
        return Explanation(Reason.NO_WORKER, text)
    if found.slots and (found.running or 0) >= found.slots:
        slots = "the one slot" if found.slots == 1 else f"all {found.slots:,} slots"
        verb = "is" if found.slots == 1 else "are"
        return Explanation(Reason.BUSY, f"{slots} of its workers {verb} busy, and {_position(found)}")
    return Explanation(Reason.QUEUED, f"it is due, and {_position(found)}")


def _running(found: Obstacles) -> str:
    if found.worker is None:
        return f"it has been running since {show_clock(found.started_on)}, with a caller that fetched it"
    if found.is_connected:
        return f"it has been running since {show_clock(found.started_on)}, with worker {found.worker}"
    seen = "" if found.worker_seen_on is None else f" (last sign at {show_clock(found.worker_seen_on)})"
    return (
        f"it was started at {show_clock(found.started_on)} by worker {found.worker}, which is not connected{seen}: "
        "maintenance of a connected worker ends this attempt as lost, unless that worker comes back"
    )


def _behind(found: Obstacles, behind: UUID) -> Explanation:
    if found.behind_state == JobState.FAILED:
        text = f"key {found.key!r} is blocked by job {behind}, which failed: retry or delete that one"
        return Explanation(Reason.BLOCKED_KEY, text, behind=behind)
    state, until = f"is {found.behind_state}", None
    if found.behind_due is not None and found.behind_due > found.now:
        state, until = _deferred(found.behind_error, found.behind_due), found.behind_due
    backlog = f"of key {found.key!r}" if found.key is not None else "of its queue"
    text = f"it is behind job {behind} {backlog}, which {state} (policy {found.policy})"
    return Explanation(Reason.BEHIND, text, until=until, behind=behind)


def _deferred(error: str | None, due: datetime) -> str:
    if error is None:
        return f"is deferred until {show_clock(due)}"
    return f"failed with {error} and is tried again at {show_clock(due)}"


def _position(found: Obstacles) -> str:
    if found.readiness != Readiness.READY:  # due, or first of its key: it is not among the ready jobs yet
        return "the next claim considers it"
    if found.ahead == 0:
        return "it is the next job of its queue"
    number = f"{found.ahead:,}" if found.ahead <= _MOST_AHEAD else f"more than {_MOST_AHEAD:,}"
    return "1 job of its queue goes first" if found.ahead == 1 else f"{number} jobs of its queue go first"


def show_clock(instant: datetime | None) -> str:
    """A time in a sentence."""
    return "?" if instant is None else f"{instant:%Y-%m-%d %H:%M:%S} UTC"
