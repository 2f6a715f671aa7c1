"""What operators ask: for the command line."""

from uuid import UUID

from trioboss.api.sync import SyncBoss
from trioboss.model.observation import Attempt, BacklogJob, Observation, WorkerView

__all__ = ["get_attempts", "get_backlog", "get_workers", "observe"]


def get_workers(boss: SyncBoss) -> list[WorkerView]:
    """All workers."""
    return boss._execute(boss._store.observing.get_workers())


def get_attempts(boss: SyncBoss, queue: str, id: UUID | str) -> list[Attempt]:
    """The attempts of a job that did not end well, in order."""
    return boss._execute(boss._store.observing.get_attempts(queue, id))


def get_backlog(boss: SyncBoss, queue: str, key: str, limit: int) -> list[BacklogJob]:
    """The owner of a key, and the jobs behind it, in the order in which they will run."""
    return boss._execute(boss._store.observing.get_backlog(queue, key, limit))


def observe(boss: SyncBoss, since: UUID, limit: int) -> Observation:
    """Everything that happens now; ``since``: the first id whose jobs count as sent meanwhile."""
    return boss._execute(boss._store.observing.observe(since, limit))
