"""The questions of operators, for the command line."""

from collections.abc import Sequence
from uuid import UUID

from trioboss.api.sync import SyncBoss
from trioboss.model.observation import Attempt, BacklogJob, BlockedBacklog, Observation, WorkerView
from trioboss.sql.grants import Right

__all__ = [
    "find_missing_rights",
    "get_attempts",
    "get_backlog",
    "get_declared_schedules",
    "get_workers",
    "list_blocked",
    "observe",
]


def get_workers(boss: SyncBoss) -> list[WorkerView]:
    """All workers."""
    return boss._execute(boss._store.observing.get_workers())


def get_attempts(boss: SyncBoss, queue: str, id: UUID | str) -> list[Attempt]:
    """The attempts of a job that did not end well, in order."""
    return boss._execute(boss._store.observing.get_attempts(queue, id))


def get_backlog(boss: SyncBoss, queue: str, key: str, limit: int) -> list[BacklogJob]:
    """The owner of a key, and the jobs behind it, in the order in which they will run."""
    return boss._execute(boss._store.observing.get_backlog(queue, key, limit))


def list_blocked(boss: SyncBoss, queue: str | None, limit: int) -> list[BlockedBacklog]:
    """The keys that failed jobs block, of one queue or of all."""
    return boss._execute(boss._store.observing.list_blocked(queue, limit))


def get_declared_schedules(boss: SyncBoss) -> dict[str, set[tuple[str, str]]]:
    """The queue and key of each schedule that the deployed version of each app declares, by the app's label."""
    return boss._execute(boss._store.deploying.get_declared_schedules())


def find_missing_rights(boss: SyncBoss, needed: Sequence[Right]) -> list[Right]:
    """Those of the rights that the current role lacks."""
    return boss._execute(boss._store.observing.find_missing_rights(needed))


def observe(boss: SyncBoss, since: UUID, until: UUID, limit: int) -> Observation:
    """Everything that happens now; jobs with ids between ``since`` and ``until`` count as sent meanwhile."""
    return boss._execute(boss._store.observing.observe(since, until, limit))
