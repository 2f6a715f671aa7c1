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
from trioboss.store.claiming import Wanted as Wanted
from trioboss.store.context import Context as Context
from trioboss.store.loading import LoadVerbs as LoadVerbs
from trioboss.store.queues import QueueVerbs as QueueVerbs
from trioboss.store.reading import ReadVerbs as ReadVerbs
from trioboss.store.rows import Claim as Claim
from trioboss.store.schedules import ScheduleVerbs as ScheduleVerbs
from trioboss.store.sending import SendVerbs as SendVerbs
from trioboss.store.settling import Failure as Failure
from trioboss.store.settling import SettleVerbs as SettleVerbs
from trioboss.store.settling import Target as Target
from trioboss.store.settling import Targets as Targets

__all__ = [
    "Aside",
    "Claim",
    "Context",
    "Conversation",
    "Copy",
    "Failure",
    "Flush",
    "Store",
    "Target",
    "Targets",
    "Wanted",
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
    settling: SettleVerbs
    reading: ReadVerbs
    schedules: ScheduleVerbs


def make_store(context: Context) -> Store:
    """Put the verbs together."""
    return Store(
        context,
        QueueVerbs(context),
        SendVerbs(context),
        LoadVerbs(context),
        ClaimVerbs(context),
        SettleVerbs(context),
        ReadVerbs(context),
        ScheduleVerbs(context),
    )
