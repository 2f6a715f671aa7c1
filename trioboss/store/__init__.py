"""The verbs: one method for each thing that can be done to jobs, queues and schedules.

Each is a conversation (postgres/conversation.py): it says what to run and reads the results, but never waits.
Whoever drives it brings the connection.
"""

import attrs

from trioboss.postgres.operation import Batch as Batch
from trioboss.postgres.operation import Copy as Copy
from trioboss.postgres.operation import OnOwnConnection as OnOwnConnection
from trioboss.postgres.operation import Operation as Operation
from trioboss.store.claiming import ClaimOperations as ClaimOperations
from trioboss.store.context import Context as Context
from trioboss.store.loading import LoadOperations as LoadOperations
from trioboss.store.maintenance import MaintenanceOperations as MaintenanceOperations
from trioboss.store.queues import QueueOperations as QueueOperations
from trioboss.store.reading import ReadOperations as ReadOperations
from trioboss.store.schedules import ScheduleOperations as ScheduleOperations
from trioboss.store.sending import SendOperations as SendOperations
from trioboss.store.settle_and_claim import SettleAndClaimOperations as SettleAndClaimOperations
from trioboss.store.settling import SettleOperations as SettleOperations
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
    """All verbs of one schema."""

    context: Context
    queues: QueueOperations
    sending: SendOperations
    loading: LoadOperations
    claiming: ClaimOperations
    working: SettleAndClaimOperations
    settling: SettleOperations
    reading: ReadOperations
    schedules: ScheduleOperations
    maintenance: MaintenanceOperations


def make_store(context: Context) -> Store:
    """Put the verbs together."""
    return Store(
        context,
        QueueOperations(context),
        SendOperations(context),
        LoadOperations(context),
        ClaimOperations(context),
        SettleAndClaimOperations(context),
        SettleOperations(context),
        ReadOperations(context),
        ScheduleOperations(context),
        MaintenanceOperations(context),
    )
