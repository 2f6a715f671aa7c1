"""trioboss: a Postgres job queue and actor runtime for structured concurrency.

A module may import from its own row and from rows below it, never from above:

    entry points     cli   dashboard   pipeline   testing
    api              boss   app   sync
    runtime          joins the actors and the store of one boss
    services         actors (tasks)   store (operations on the database)
    building blocks  machines (decisions without I/O)   sql   postgres (connections)
    data types       model   errors   events   charts (as markup)

The exact map is ALLOWED in tests/test_architecture.py, which fails when it is broken.
Nothing is imported before one of the public names is used: a process that needs little, as a worker of Spark, starts
quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trioboss._version import __version__ as __version__

if TYPE_CHECKING:
    from trioboss.api.app import App as App
    from trioboss.api.boss import Boss as Boss
    from trioboss.api.boss import open_boss as open_boss
    from trioboss.api.sync import SyncBoss as SyncBoss
    from trioboss.errors import BatchFailed as BatchFailed
    from trioboss.errors import DatabaseUnavailable as DatabaseUnavailable
    from trioboss.errors import JobNotFound as JobNotFound
    from trioboss.errors import LeaseLost as LeaseLost
    from trioboss.errors import NoPostgres as NoPostgres
    from trioboss.errors import OutcomeUnknown as OutcomeUnknown
    from trioboss.errors import PayloadError as PayloadError
    from trioboss.errors import PoolTimeout as PoolTimeout
    from trioboss.errors import QueueBusy as QueueBusy
    from trioboss.errors import QueueChanged as QueueChanged
    from trioboss.errors import QueueExists as QueueExists
    from trioboss.errors import QueueInUse as QueueInUse
    from trioboss.errors import SchemaOutOfDate as SchemaOutOfDate
    from trioboss.errors import ServerDown as ServerDown
    from trioboss.errors import StatementFailed as StatementFailed
    from trioboss.errors import SupervisorGaveUp as SupervisorGaveUp
    from trioboss.errors import TriobossError as TriobossError
    from trioboss.errors import UnknownQueue as UnknownQueue
    from trioboss.errors import UsageError as UsageError
    from trioboss.model.explanation import Explanation as Explanation
    from trioboss.model.explanation import Reason as Reason
    from trioboss.model.job import Job as Job
    from trioboss.model.job import NewJob as NewJob
    from trioboss.model.job import Settled as Settled
    from trioboss.model.policy import Policy as Policy
    from trioboss.model.queue import Queue as Queue
    from trioboss.model.queue import QueueStats as QueueStats
    from trioboss.model.schedule import Schedule as Schedule
    from trioboss.model.states import JobState as JobState
    from trioboss.model.statistics import KeptWarning as KeptWarning
    from trioboss.model.statistics import QueueSample as QueueSample
    from trioboss.postgres import Connection as Connection
    from trioboss.sql.plans import construction_plans as construction_plans
    from trioboss.sql.plans import migration_plans as migration_plans
    from trioboss.sql.plans import rollback_plans as rollback_plans

__all__ = [
    "App",
    "BatchFailed",
    "Boss",
    "Connection",
    "DatabaseUnavailable",
    "Explanation",
    "Job",
    "JobNotFound",
    "JobState",
    "KeptWarning",
    "LeaseLost",
    "NewJob",
    "NoPostgres",
    "OutcomeUnknown",
    "PayloadError",
    "Policy",
    "PoolTimeout",
    "Queue",
    "QueueBusy",
    "QueueChanged",
    "QueueExists",
    "QueueInUse",
    "QueueSample",
    "QueueStats",
    "Reason",
    "Schedule",
    "SchemaOutOfDate",
    "ServerDown",
    "Settled",
    "StatementFailed",
    "SupervisorGaveUp",
    "SyncBoss",
    "TriobossError",
    "UnknownQueue",
    "UsageError",
    "__version__",
    "construction_plans",
    "migration_plans",
    "open_boss",
    "rollback_plans",
]

_HOMES = {
    "App": "api.app",
    "Boss": "api.boss",
    "open_boss": "api.boss",
    "BatchFailed": "errors",
    "DatabaseUnavailable": "errors",
    "JobNotFound": "errors",
    "LeaseLost": "errors",
    "NoPostgres": "errors",
    "OutcomeUnknown": "errors",
    "PayloadError": "errors",
    "PoolTimeout": "errors",
    "QueueBusy": "errors",
    "QueueChanged": "errors",
    "QueueExists": "errors",
    "QueueInUse": "errors",
    "SchemaOutOfDate": "errors",
    "ServerDown": "errors",
    "StatementFailed": "errors",
    "SupervisorGaveUp": "errors",
    "TriobossError": "errors",
    "UnknownQueue": "errors",
    "UsageError": "errors",
    "Explanation": "model.explanation",
    "Reason": "model.explanation",
    "Job": "model.job",
    "NewJob": "model.job",
    "Settled": "model.job",
    "Policy": "model.policy",
    "Queue": "model.queue",
    "QueueStats": "model.queue",
    "Schedule": "model.schedule",
    "JobState": "model.states",
    "KeptWarning": "model.statistics",
    "QueueSample": "model.statistics",
    "Connection": "postgres",
    "construction_plans": "sql.plans",
    "migration_plans": "sql.plans",
    "rollback_plans": "sql.plans",
    "SyncBoss": "api.sync",
}
_PARTS = ("errors", "events")

if not TYPE_CHECKING:  # a type checker that sees it takes every name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _PARTS:
            return import_module(f"{__name__}.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

    def __dir__() -> list[str]:
        return [*__all__, *_PARTS]
