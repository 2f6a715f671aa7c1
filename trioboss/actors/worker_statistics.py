"""The work of one worker, in numbers: for `boss.statistics`, and for the events about work in progress."""

from collections.abc import Collection, Iterable
from uuid import UUID

import attrs

from trioboss.actors.actor import Supervisor
from trioboss.actors.attempts import Running
from trioboss.actors.clock import wall_time
from trioboss.actors.completer import Completer
from trioboss.actors.dispatcher import DispatcherStatistics
from trioboss.actors.worker_settings import WorkerSettings
from trioboss.events import WorkerWip

__all__ = ["WorkerStatistics", "count_restarts", "describe_wip"]


@attrs.frozen
class WorkerStatistics:
    """The present state of a worker, and the work that its dispatchers have done."""

    id: UUID
    queue: str
    running: int
    stopping: bool
    dispatchers: tuple[DispatcherStatistics, ...]
    restarts: dict[str, int]
    """How often each of its actors crashed and was restarted."""
    longest: tuple[str, UUID, float] | None = None
    """The job that has been running for longest: its queue, its id, and for how many seconds."""


def count_restarts(supervisors: Iterable[Supervisor]) -> dict[str, int]:
    """How often each actor was restarted, of those that were."""
    return {
        name: count
        for supervisor in supervisors
        for name, count in supervisor.statistics().restarts.items()
        if count
    }


def describe_wip(
    id: UUID,
    settings: WorkerSettings,
    stopping: bool,
    created_at: float,
    completers: Collection[Completer],
    running: Collection[Running],
    claims: Collection[float],
) -> WorkerWip:
    """The work in progress of a worker: its running jobs, and what its completers have settled last."""
    ended = [each.last_ended for each in completers if each.last_ended is not None]
    last = max(ended, key=lambda each: each.ended_at, default=None)
    error, error_at = max(
        (each.last_error for each in completers if each.last_error is not None),
        key=lambda found: found[1],
        default=(None, None),
    )
    return WorkerWip(
        id,
        settings.queue,
        "stopping" if stopping else "active" if running else "idle",
        len(running),
        sum(completer.completed for completer in completers),
        sum(completer.failed for completer in completers),
        settings.name,
        settings.options,
        wall_time(created_at),
        wall_time(max(claims, default=None)),
        wall_time(max((each.started_at for each in (*running, *ended) if each.started_at), default=None)),
        None if last is None else wall_time(last.ended_at),
        None if last is None else last.ran,
        error,
        wall_time(error_at),
    )
