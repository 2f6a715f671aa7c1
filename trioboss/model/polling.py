"""What a boss sees when it looks around."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

import attrs

__all__ = ["PollResult", "Watch"]


@attrs.frozen
class PollResult:
    """What a look found: in how many seconds each queue has something to claim; whether we lead now; the time."""

    due: Mapping[str, float]
    leads: bool
    now: datetime


@attrs.frozen
class Watch:
    """What a round of maintenance saw and did."""

    ended: Sequence[tuple[str, Literal["expired", "lost"], tuple[UUID, ...]]]
    """Attempts it ended: queue, why, ids."""
    active: int
    next_expiry: float | None
    """Seconds until the first lease runs out."""
    warnings: Sequence[tuple[str | None, str, str]]
    """Queue, kind, message."""
