"""A connection of a pool: opened with retries, and reset for its next user."""

import math
import random
from collections.abc import Iterator
from contextlib import suppress

import attrs
import psycopg
import trio
from psycopg import errors
from psycopg.rows import TupleRow

from trioboss.postgres.connection import Connection, open_session
from trioboss.postgres.errors import is_refusal, unavailable
from trioboss.postgres.pool.values import PoolSettings

__all__ = ["Member", "open_member", "reset"]


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
