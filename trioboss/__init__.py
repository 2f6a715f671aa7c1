"""trioboss: a Postgres job queue and actor runtime for structured concurrency.

Start with `open_boss` in a trio program, with `SyncBoss` in a blocking one, and with `App` to declare workers for
`trioboss worker`. The options are described in `QueueOptions`, `SendOptions` and `WorkOptions`, all errors in
`trioboss.errors`. The documentation is at https://github.com/trioboss/trioboss/tree/main/docs.

For contributors: a module may import from rows below its own, never from above. (Packages of one row import each other
only where ALLOWED says so: actors and store do not.)

    entry points     cli   dashboard   otel   pipeline   testing
    api              boss   app   sync
    runtime          joins the actors and the store of one boss
    services         actors (tasks)   store (operations on the database)
    building blocks  machines (decisions without I/O)   sql   postgres (connections)
    data types       model   errors   events   charts (as markup)

ALLOWED is in tests/test_architecture.py, which fails when it is broken. The docstring of each package lists its
modules, sql/statements/README.md lists the statements, and actors/__init__.py has the way of a job. Nothing is imported
before one of the public names is used: a process that needs little, as a worker of Spark, starts quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trioboss._version import __version__ as __version__

if TYPE_CHECKING:
    from trioboss.actors.leased_job import DeadLetterJob as DeadLetterJob
    from trioboss.actors.leased_job import RetryJob as RetryJob
    from trioboss.actors.worker import Worker as Worker
    from trioboss.actors.worker import WorkerStatistics as WorkerStatistics
    from trioboss.api.app import App as App
    from trioboss.api.app import WorkerOptions as WorkerOptions
    from trioboss.api.boss import Boss as Boss
    from trioboss.api.boss import open_boss as open_boss
    from trioboss.api.handlers import CallNext as CallNext
    from trioboss.api.handlers import Handler as Handler
    from trioboss.api.handlers import Lifespan as Lifespan
    from trioboss.api.handlers import Middleware as Middleware
    from trioboss.api.handlers import WorkOptions as WorkOptions
    from trioboss.api.running_job import AsyncioJob as AsyncioJob
    from trioboss.api.running_job import RunningJob as RunningJob
    from trioboss.api.running_job import ThreadJob as ThreadJob
    from trioboss.api.sync import SyncBoss as SyncBoss
    from trioboss.api.tasks import Task as Task
    from trioboss.errors import BatchFailed as BatchFailed
    from trioboss.errors import BossClosed as BossClosed
    from trioboss.errors import DatabaseUnavailable as DatabaseUnavailable
    from trioboss.errors import DataMismatch as DataMismatch
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
    from trioboss.events import ActorRestarted as ActorRestarted
    from trioboss.events import ErrorEvent as ErrorEvent
    from trioboss.events import Event as Event
    from trioboss.events import JobCancelled as JobCancelled
    from trioboss.events import JobCompleted as JobCompleted
    from trioboss.events import JobCreated as JobCreated
    from trioboss.events import JobFailed as JobFailed
    from trioboss.events import JobReleased as JobReleased
    from trioboss.events import JobsRecovered as JobsRecovered
    from trioboss.events import JobStarted as JobStarted
    from trioboss.events import JobStuck as JobStuck
    from trioboss.events import LateError as LateError
    from trioboss.events import LeaderChanged as LeaderChanged
    from trioboss.events import LeaseExtended as LeaseExtended
    from trioboss.events import LeaseLostEvent as LeaseLostEvent
    from trioboss.events import ListenerDown as ListenerDown
    from trioboss.events import ListenerUp as ListenerUp
    from trioboss.events import LoopBlocked as LoopBlocked
    from trioboss.events import MonitorStates as MonitorStates
    from trioboss.events import QueueWarning as QueueWarning
    from trioboss.events import Stopped as Stopped
    from trioboss.events import TickFired as TickFired
    from trioboss.events import Wip as Wip
    from trioboss.events import WorkerWip as WorkerWip
    from trioboss.machines.attempt import CancelReason as CancelReason
    from trioboss.model.answers import JobUpdate as JobUpdate
    from trioboss.model.answers import Redriven as Redriven
    from trioboss.model.answers import Settled as Settled
    from trioboss.model.batch import BatchResult as BatchResult
    from trioboss.model.decoding import Decoder as Decoder
    from trioboss.model.explanation import Explanation as Explanation
    from trioboss.model.explanation import Reason as Reason
    from trioboss.model.job import Duration as Duration
    from trioboss.model.job import FetchOptions as FetchOptions
    from trioboss.model.job import FindOptions as FindOptions
    from trioboss.model.job import Job as Job
    from trioboss.model.job import NewJob as NewJob
    from trioboss.model.job import SendOptions as SendOptions
    from trioboss.model.job import Start as Start
    from trioboss.model.job import UpdateOptions as UpdateOptions
    from trioboss.model.job_context import JobLogFilter as JobLogFilter
    from trioboss.model.payload import Json as Json
    from trioboss.model.payload import JsonInput as JsonInput
    from trioboss.model.policy import Policy as Policy
    from trioboss.model.policy import PolicyName as PolicyName
    from trioboss.model.queue import Queue as Queue
    from trioboss.model.queue import QueueOptions as QueueOptions
    from trioboss.model.queue import QueueStats as QueueStats
    from trioboss.model.schedule import Schedule as Schedule
    from trioboss.model.schedule import ScheduleOptions as ScheduleOptions
    from trioboss.model.states import JobState as JobState
    from trioboss.model.statistics import KeptWarning as KeptWarning
    from trioboss.model.statistics import QueueSample as QueueSample
    from trioboss.model.ticks import preview_schedule as preview_schedule
    from trioboss.postgres import Connection as Connection
    from trioboss.postgres.caller import CallerConnection as CallerConnection
    from trioboss.postgres.dsn import ConnectionOptions as ConnectionOptions
    from trioboss.runtime.lifecycle import BossStatistics as BossStatistics
    from trioboss.sql.plans import construction_plans as construction_plans
    from trioboss.sql.plans import migration_plans as migration_plans
    from trioboss.sql.plans import rollback_plans as rollback_plans

__all__ = [
    "ActorRestarted",
    "App",
    "AsyncioJob",
    "BatchFailed",
    "BatchResult",
    "Boss",
    "BossClosed",
    "BossStatistics",
    "CallNext",
    "CallerConnection",
    "CancelReason",
    "Connection",
    "ConnectionOptions",
    "DataMismatch",
    "DatabaseUnavailable",
    "DeadLetterJob",
    "Decoder",
    "Duration",
    "ErrorEvent",
    "Event",
    "Explanation",
    "FetchOptions",
    "FindOptions",
    "Handler",
    "Job",
    "JobCancelled",
    "JobCompleted",
    "JobCreated",
    "JobFailed",
    "JobLogFilter",
    "JobNotFound",
    "JobReleased",
    "JobStarted",
    "JobState",
    "JobStuck",
    "JobUpdate",
    "JobsRecovered",
    "Json",
    "JsonInput",
    "KeptWarning",
    "LateError",
    "LeaderChanged",
    "LeaseExtended",
    "LeaseLost",
    "LeaseLostEvent",
    "Lifespan",
    "ListenerDown",
    "ListenerUp",
    "LoopBlocked",
    "Middleware",
    "MonitorStates",
    "NewJob",
    "NoPostgres",
    "OutcomeUnknown",
    "PayloadError",
    "Policy",
    "PolicyName",
    "PoolTimeout",
    "Queue",
    "QueueBusy",
    "QueueChanged",
    "QueueExists",
    "QueueInUse",
    "QueueOptions",
    "QueueSample",
    "QueueStats",
    "QueueWarning",
    "Reason",
    "Redriven",
    "RetryJob",
    "RunningJob",
    "Schedule",
    "ScheduleOptions",
    "SchemaOutOfDate",
    "SendOptions",
    "ServerDown",
    "Settled",
    "Start",
    "StatementFailed",
    "Stopped",
    "SupervisorGaveUp",
    "SyncBoss",
    "Task",
    "ThreadJob",
    "TickFired",
    "TriobossError",
    "UnknownQueue",
    "UpdateOptions",
    "UsageError",
    "Wip",
    "WorkOptions",
    "Worker",
    "WorkerOptions",
    "WorkerStatistics",
    "WorkerWip",
    "__version__",
    "construction_plans",
    "migration_plans",
    "open_boss",
    "preview_schedule",
    "rollback_plans",
]

_HOMES = {
    "DeadLetterJob": "actors.leased_job",
    "RetryJob": "actors.leased_job",
    "Worker": "actors.worker",
    "WorkerStatistics": "actors.worker",
    "App": "api.app",
    "WorkerOptions": "api.app",
    "Boss": "api.boss",
    "open_boss": "api.boss",
    "CallNext": "api.handlers",
    "Handler": "api.handlers",
    "Lifespan": "api.handlers",
    "Middleware": "api.handlers",
    "WorkOptions": "api.handlers",
    "AsyncioJob": "api.running_job",
    "RunningJob": "api.running_job",
    "ThreadJob": "api.running_job",
    "SyncBoss": "api.sync",
    "Task": "api.tasks",
    "BatchFailed": "errors",
    "BossClosed": "errors",
    "DataMismatch": "errors",
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
    "ActorRestarted": "events",
    "ErrorEvent": "events",
    "Event": "events",
    "JobCancelled": "events",
    "JobCreated": "events",
    "JobCompleted": "events",
    "JobFailed": "events",
    "JobReleased": "events",
    "JobStarted": "events",
    "JobStuck": "events",
    "JobsRecovered": "events",
    "LateError": "events",
    "LeaderChanged": "events",
    "LeaseExtended": "events",
    "LeaseLostEvent": "events",
    "ListenerDown": "events",
    "ListenerUp": "events",
    "LoopBlocked": "events",
    "MonitorStates": "events",
    "QueueWarning": "events",
    "Stopped": "events",
    "TickFired": "events",
    "Wip": "events",
    "WorkerWip": "events",
    "CancelReason": "machines.attempt",
    "BatchResult": "model.batch",
    "Decoder": "model.decoding",
    "Explanation": "model.explanation",
    "Reason": "model.explanation",
    "Duration": "model.job",
    "Job": "model.job",
    "JobUpdate": "model.answers",
    "NewJob": "model.job",
    "SendOptions": "model.job",
    "Settled": "model.answers",
    "Start": "model.job",
    "UpdateOptions": "model.job",
    "Json": "model.payload",
    "JsonInput": "model.payload",
    "Redriven": "model.answers",
    "JobLogFilter": "model.job_context",
    "Policy": "model.policy",
    "PolicyName": "model.policy",
    "Queue": "model.queue",
    "QueueOptions": "model.queue",
    "QueueStats": "model.queue",
    "Schedule": "model.schedule",
    "ScheduleOptions": "model.schedule",
    "JobState": "model.states",
    "KeptWarning": "model.statistics",
    "QueueSample": "model.statistics",
    "preview_schedule": "model.ticks",
    "Connection": "postgres",
    "ConnectionOptions": "postgres.dsn",
    "CallerConnection": "postgres.caller",
    "BossStatistics": "runtime.lifecycle",
    "construction_plans": "sql.plans",
    "migration_plans": "sql.plans",
    "rollback_plans": "sql.plans",
    "FetchOptions": "model.job",
    "FindOptions": "model.job",
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
