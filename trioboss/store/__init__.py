"""The operations: one method for each thing that can be done to jobs, queues and schedules.

Each is a generator (postgres/operation.py): it yields batches of statements and reads their results, but never waits.
The function that executes it brings the connection, so each operation is written once, for trio and for blocking code.

context           the statements of one schema, and a cache of its queues
parameters        Python values as parameters of statements
rows              rows become model values
targets           the jobs that a call is to settle
sending           send one job, publish events
loading           send many jobs
copying           rows in the binary format of COPY
claiming          lease jobs
settling          complete, fail and release attempts
settle_and_claim  both in one round trip, for the dispatchers
leases            heartbeats, extensions, progress
changing          cancel, resume, retry, delete
queues            create, change and delete queues
reading           find jobs, explain why one is not running
schedules         create and remove schedules
presence          polls, leadership, workers
maintenance       leases that ran out, the ticks of cron
retention         delete old jobs and old history
statistics        samples of queues over time, warnings that are kept
"""

import attrs

from trioboss.postgres.operation import Batch as Batch
from trioboss.postgres.operation import Copy as Copy
from trioboss.postgres.operation import OnOwnConnection as OnOwnConnection
from trioboss.postgres.operation import Operation as Operation
from trioboss.store.changing import ChangeOperations
from trioboss.store.claiming import ClaimOperations
from trioboss.store.context import Context as Context
from trioboss.store.leases import LeaseOperations
from trioboss.store.loading import LoadOperations
from trioboss.store.maintenance import MaintenanceOperations
from trioboss.store.presence import PresenceOperations
from trioboss.store.queues import QueueOperations
from trioboss.store.reading import ReadOperations
from trioboss.store.retention import RetentionOperations
from trioboss.store.schedules import ScheduleOperations
from trioboss.store.sending import SendOperations
from trioboss.store.settle_and_claim import SettleAndClaimOperations
from trioboss.store.settling import SettleOperations
from trioboss.store.statistics import StatisticsOperations
from trioboss.store.targets import Target as Target
from trioboss.store.targets import Targets as Targets

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


@attrs.frozen
class Store:
    """All operations of one schema, by subject."""

    context: Context
    queues: QueueOperations
    sending: SendOperations
    loading: LoadOperations
    claiming: ClaimOperations
    settling: SettleOperations
    settle_and_claim: SettleAndClaimOperations
    leases: LeaseOperations
    changing: ChangeOperations
    reading: ReadOperations
    schedules: ScheduleOperations
    presence: PresenceOperations
    maintenance: MaintenanceOperations
    retention: RetentionOperations
    statistics: StatisticsOperations


def make_store(context: Context) -> Store:
    """The operations of the schema of that context."""
    return Store(
        context,
        QueueOperations(context),
        SendOperations(context),
        LoadOperations(context),
        ClaimOperations(context),
        SettleOperations(context),
        SettleAndClaimOperations(context),
        LeaseOperations(context),
        ChangeOperations(context),
        ReadOperations(context),
        ScheduleOperations(context),
        PresenceOperations(context),
        MaintenanceOperations(context),
        RetentionOperations(context),
        StatisticsOperations(context),
    )
