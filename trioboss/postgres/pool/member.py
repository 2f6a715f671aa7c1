"""A connection of a pool: opened with retries, reset for its next user, and closed for a reason. The settings and
statistics of a pool.
"""

import enum
import math
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress

import attrs
import psycopg
import trio
from psycopg import errors
from psycopg.rows import TupleRow

from trioboss.errors import UsageError
from trioboss.postgres.connection import Connect, Connection, open_session
from trioboss.postgres.errors import is_refusal, unavailable

__all__ = ["CloseReason", "Member", "PoolSettings", "PoolStatistics", "open_member", "reset"]


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


@attrs.define(eq=False)
class Member:
    """A connection of a pool. Times are those of `trio.current_time`."""

    connection: Connection[TupleRow]
    expires: float
    idle_since: float = math.inf


async def open_member(dsn: str, settings: PoolSettings, deadline: float) -> Member:
    """Connect, with retries until the deadline unless the server refuses the connection."""
    failure: psycopg.Error = errors.ConnectionTimeout("no answer")
    with trio.move_on_at(deadline):
        for delay in _backoff():
            try:
                connection = await open_session(
                    dsn, prepare=settings.prepare, settings=settings.session, connect=settings.connect
                )
            except psycopg.OperationalError as error:
                failure = error
                if is_refusal(error):
                    break  # a wrong password stays wrong: waiting for the deadline would hide the cause
            else:
                # Jitter, so that connections opened together do not expire together.
                lifetime = settings.max_lifetime * random.uniform(0.9, 1.0)
                return Member(connection, trio.current_time() + lifetime)
            await trio.sleep(delay)
    raise unavailable(failure) from failure


def _backoff() -> Iterator[float]:
    # Jitter, so that the clients of a server that is up again do not all connect at the same moment.
    delay = 0.05
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, 2.0)


async def reset(connection: Connection[TupleRow]) -> bool:
    """Roll back what the last user left open; tell whether the connection is clean now."""
    # Shielded, because a check-in also happens in cancelled scopes; limited, because the server may not answer.
    with connection.shield_cleanup(), suppress(psycopg.Error):
        await connection.rollback()
        await connection.set_autocommit(True)
    return connection.is_clean()
