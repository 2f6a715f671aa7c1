"""The verbs: one method for each thing that can be done to jobs, queues and schedules.

Each is a conversation (postgres/conversation.py): it says what to run and reads the results, but never waits.
Whoever drives it brings the connection.
"""

import attrs

from trioboss.postgres.conversation import Aside as Aside
from trioboss.postgres.conversation import Conversation as Conversation
from trioboss.postgres.conversation import Copy as Copy
from trioboss.postgres.conversation import Flush as Flush
from trioboss.store.claiming import ClaimVerbs as ClaimVerbs
from trioboss.store.context import Context as Context
from trioboss.store.exchanging import ExchangeVerbs as ExchangeVerbs
from trioboss.store.loading import LoadVerbs as LoadVerbs
from trioboss.store.queues import QueueVerbs as QueueVerbs
from trioboss.store.reading import ReadVerbs as ReadVerbs
from trioboss.store.schedules import ScheduleVerbs as ScheduleVerbs
from trioboss.store.sending import SendVerbs as SendVerbs
from trioboss.store.settling import SettleVerbs as SettleVerbs
from trioboss.store.targets import Target as Target
from trioboss.store.targets import Targets as Targets
from trioboss.store.upkeep import UpkeepVerbs as UpkeepVerbs

__all__ = [
    "Aside",
    "Context",
    "Conversation",
    "Copy",
    "Flush",
    "Store",
    "Target",
    "Targets",
    "make_store",
]


@attrs.frozen
class Store:
    """All verbs of one schema."""

    context: Context
    queues: QueueVerbs
    sending: SendVerbs
    loading: LoadVerbs
    claiming: ClaimVerbs
    exchanging: ExchangeVerbs
    settling: SettleVerbs
    reading: ReadVerbs
    schedules: ScheduleVerbs
    upkeep: UpkeepVerbs


def make_store(context: Context) -> Store:
    """Put the verbs together."""
    return Store(
        context,
        QueueVerbs(context),
        SendVerbs(context),
        LoadVerbs(context),
        ClaimVerbs(context),
        ExchangeVerbs(context),
        SettleVerbs(context),
        ReadVerbs(context),
        ScheduleVerbs(context),
        UpkeepVerbs(context),
    )
