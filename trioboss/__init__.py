"""trioboss: a Postgres job queue and actor runtime for structured concurrency.

A module may import from its own row and from rows below it, never from above:

    edges      cli   pipeline   testing
    doors      boss   app   sync    (their parts are in doors/)
    effects    actors (trio)        store (database)
    means      machines (decide)    sql, postgres (reach)
    values     model   errors   events

The exact map is ALLOWED in tests/test_architecture.py, which fails when it is broken.
"""

from trioboss._version import __version__ as __version__
from trioboss.app import App as App
from trioboss.boss import Boss as Boss
from trioboss.boss import open_boss as open_boss
from trioboss.errors import BatchFailed as BatchFailed
from trioboss.errors import DatabaseUnavailable as DatabaseUnavailable
from trioboss.errors import JobNotFound as JobNotFound
from trioboss.errors import LeaseLost as LeaseLost
from trioboss.errors import NoPostgres as NoPostgres
from trioboss.errors import OutcomeUnknown as OutcomeUnknown
from trioboss.errors import PayloadError as PayloadError
from trioboss.errors import PoolTimeout as PoolTimeout
from trioboss.errors import QueueBusy as QueueBusy
from trioboss.errors import QueueExists as QueueExists
from trioboss.errors import QueueInUse as QueueInUse
from trioboss.errors import SchemaOutOfDate as SchemaOutOfDate
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
from trioboss.postgres import Connection as Connection
from trioboss.sql.plans import construction_plans as construction_plans
from trioboss.sql.plans import migration_plans as migration_plans
from trioboss.sql.plans import rollback_plans as rollback_plans
from trioboss.sync import SyncBoss as SyncBoss

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
    "LeaseLost",
    "NewJob",
    "NoPostgres",
    "OutcomeUnknown",
    "PayloadError",
    "Policy",
    "PoolTimeout",
    "Queue",
    "QueueBusy",
    "QueueExists",
    "QueueInUse",
    "QueueStats",
    "Reason",
    "Schedule",
    "SchemaOutOfDate",
    "Settled",
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
