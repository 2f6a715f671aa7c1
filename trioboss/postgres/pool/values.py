"""The settings and statistics of a pool, and its reasons to close a connection."""

import enum
from collections.abc import Mapping

import attrs

from trioboss.errors import UsageError
from trioboss.postgres.connection import Connect

__all__ = ["CloseReason", "PoolSettings", "PoolStatistics"]


class CloseReason(enum.StrEnum):
    """Why the pool closed a connection."""

    EXPIRED = "expired"
    """It was open for ``max_lifetime``."""
    IDLE = "idle"
    """It was not needed for ``max_idle``."""
    STALE = "stale"
    """The server had closed it, or did not answer a ping."""
    BROKEN = "broken"
    """It was returned in a state that could not be reset."""
    SHUTDOWN = "shutdown"
    """The pool was closed."""


@attrs.frozen
class PoolStatistics:
    """The present state of a pool, and its counters since it was opened."""

    size: int
    idle: int
    in_use: int
    waiting: int
    """Tasks that wait for a connection."""
    opened: int
    closed: Mapping[CloseReason, int]


@attrs.frozen(kw_only=True)
class PoolSettings:
    """The settings of a pool, explained in `open_pool`."""

    size: int
    min_size: int
    timeout: float
    max_idle: float
    max_lifetime: float
    ping_after: float
    ping_timeout: float
    prepare: bool
    session: Mapping[str, str]
    connect: Connect | None = None

    def __attrs_post_init__(self) -> None:
        if self.size < 1:
            raise UsageError(f"size: {self.size} is not a number of connections: use 1 or more")
        if not 0 <= self.min_size <= self.size:
            raise UsageError(f"min_size: {self.min_size} is not between 0 and size ({self.size})")
