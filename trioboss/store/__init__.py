"""The operations: one method for each thing that can be done to jobs, queues and schedules.

Each is a generator (postgres/operation.py): it yields batches of statements and reads their results, but never waits.
The function that executes it brings the connection, so each operation is written once, for trio and for blocking code.

context           the statements of one schema, their parameters, and a cache of its queues
rows              rows become model values
targets           the jobs that a call is to settle
sending           send one job, publish events
loading           send many jobs
copying           rows in the binary format of COPY
claiming          lease jobs
claimed_jobs      the answer of a claim, and the jobs in it
settling          complete, fail and release attempts
settle_and_claim  both in one round trip, for the dispatchers
manual            fetch, complete and fail jobs without a worker
leases            heartbeats, extensions, progress
changing          cancel, resume, retry, update, delete
redriving         send jobs of a dead letter queue back
queues            create, change and delete queues
reading           find jobs, and what one waits for
explaining        why a job is not running, in words
observing         workers, attempts, backlogs: what operators see
schedules         create and remove schedules, fire their ticks
deploying         bring queues and schedules to what an app declares
presence          polls, leadership, workers
maintenance       leases that ran out, warnings
retention         delete old jobs and old history
statistics        counts and samples of queues, warnings that are kept
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from trioboss.postgres.operation import Batch as Batch
from trioboss.postgres.operation import Copy as Copy
from trioboss.postgres.operation import OnOwnConnection as OnOwnConnection
from trioboss.postgres.operation import Operation as Operation
from trioboss.store.context import Context as Context
from trioboss.store.targets import Target as Target
from trioboss.store.targets import Targets as Targets

if TYPE_CHECKING:
    from trioboss.store.changing import ChangeOperations
    from trioboss.store.claiming import ClaimOperations
    from trioboss.store.deploying import DeployOperations
    from trioboss.store.leases import LeaseOperations
    from trioboss.store.loading import LoadOperations
    from trioboss.store.maintenance import MaintenanceOperations
    from trioboss.store.manual import ManualOperations
    from trioboss.store.observing import ObserveOperations
    from trioboss.store.presence import PresenceOperations
    from trioboss.store.queues import QueueOperations
    from trioboss.store.reading import ReadOperations
    from trioboss.store.redriving import RedriveOperations
    from trioboss.store.retention import RetentionOperations
    from trioboss.store.schedules import ScheduleOperations
    from trioboss.store.sending import SendOperations
    from trioboss.store.settle_and_claim import SettleAndClaimOperations
    from trioboss.store.settling import SettleOperations
    from trioboss.store.statistics import StatisticsOperations

__all__ = [
    "Batch",
    "Context",
    "Copy",
    "OnOwnConnection",
    "Operation",
    "Store",
    "Target",
    "Targets",
    "make_store",
]

# The class of each subject, by its module.
_SUBJECTS = {
    "queues": "QueueOperations",
    "sending": "SendOperations",
    "loading": "LoadOperations",
    "claiming": "ClaimOperations",
    "settling": "SettleOperations",
    "settle_and_claim": "SettleAndClaimOperations",
    "manual": "ManualOperations",
    "leases": "LeaseOperations",
    "changing": "ChangeOperations",
    "redriving": "RedriveOperations",
    "reading": "ReadOperations",
    "observing": "ObserveOperations",
    "schedules": "ScheduleOperations",
    "deploying": "DeployOperations",
    "presence": "PresenceOperations",
    "maintenance": "MaintenanceOperations",
    "retention": "RetentionOperations",
    "statistics": "StatisticsOperations",
}


class Store:
    """All operations of one schema, by subject.

    The module of a subject is imported when it is first used: a command that reads one row needs few of them.
    """

    context: Context
    queues: "QueueOperations"
    sending: "SendOperations"
    loading: "LoadOperations"
    claiming: "ClaimOperations"
    settling: "SettleOperations"
    settle_and_claim: "SettleAndClaimOperations"
    manual: "ManualOperations"
    leases: "LeaseOperations"
    changing: "ChangeOperations"
    redriving: "RedriveOperations"
    reading: "ReadOperations"
    observing: "ObserveOperations"
    schedules: "ScheduleOperations"
    deploying: "DeployOperations"
    presence: "PresenceOperations"
    maintenance: "MaintenanceOperations"
    retention: "RetentionOperations"
    statistics: "StatisticsOperations"

    def __init__(self, context: Context) -> None:
        self.context = context

    if not TYPE_CHECKING:  # a type checker that sees it takes every name for one of ours

        def __getattr__(self, name: str) -> Any:
            if name not in _SUBJECTS:
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            operations = getattr(import_module(f"{__name__}.{name}"), _SUBJECTS[name])(self.context)
            setattr(self, name, operations)  # found without this method from now on
            return operations


def make_store(context: Context) -> Store:
    """The operations of the schema of that context."""
    return Store(context)
