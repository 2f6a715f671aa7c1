"""What is said of a pool: how it behaves, what it does, why it closed a connection."""

import enum
from collections.abc import Mapping

import attrs

from trioboss.errors import UsageError

__all__ = ["CloseReason", "PoolSettings", "PoolStatistics"]


class CloseReason(enum.StrEnum):
    """Why the pool closed a connection."""

    EXPIRED = "expired"
    """It had lived for `max_lifetime`."""
    IDLE = "idle"
    """Nobody had needed it for `max_idle`."""
    STALE = "stale"
    """The server had closed it, or did not answer any more."""
    BROKEN = "broken"
    """It came back in a state that could not be undone."""
    SHUTDOWN = "shutdown"
    """The pool was closed."""


@attrs.frozen
class PoolStatistics:
    """What a pool is doing, and what it has done."""

    size: int
    idle: int
    in_use: int
    waiting: int
    opened: int
    closed: Mapping[CloseReason, int]


@attrs.frozen(kw_only=True)
class PoolSettings:
    """How a pool behaves; `open_pool` says what each means."""

    size: int
    min_size: int
    timeout: float
    max_idle: float
    max_lifetime: float
    ping_after: float
    ping_timeout: float
    prepare: bool
    session: Mapping[str, str]

    def __attrs_post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"size: {self.size} is not a number of connections: use 1 or more")
        if not 0 <= self.min_size <= self.size:
            raise UsageError(f"min_size: {self.min_size} is not between 0 and size ({self.size})")
