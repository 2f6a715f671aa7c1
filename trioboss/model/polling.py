"""The answers to a poll of the database, and to a round of maintenance."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import attrs

__all__ = ["PollResult", "Rescue"]


@attrs.frozen
class PollResult:
    """The answer to a poll."""

    due: Mapping[str, float]
    """In how many seconds a queue has something to claim, for those queues that have."""
    leads: bool
    """Whether this boss leads now."""
    now: datetime
    """The time of the database."""
    notified: bool = True
    """Whether the probe was sent: false if the role may not, or the server's queue of notifications is full."""


@attrs.frozen
class Rescue:
    """The result of a round over all leases."""

    ended: Sequence[tuple[str, Literal["expired", "lost", "released"], tuple[UUID, ...]]]
    """Attempts it ended: queue, why, ids."""
    active: int
    next_expiry: float | None
    """Seconds until the first lease runs out."""
    warnings: Sequence[tuple[str | None, str, str]]
    """Queue, kind, message."""
