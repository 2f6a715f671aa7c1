"""A connection of a pool: how it is made, and how it is made clean for the next who needs it."""

import math
import random
from collections.abc import Iterator
from contextlib import suppress

import attrs
import psycopg
import trio
from psycopg import errors, pq
from psycopg.rows import TupleRow

from trioboss.postgres.connection import Connection
from trioboss.postgres.pool_values import PoolSettings
from trioboss.postgres.session import open_session
from trioboss.postgres.translate import is_refusal, unavailable

__all__ = ["Member", "is_clean", "open_member", "undo"]


@attrs.define(eq=False)
class Member:
    """A connection, and when it has lived long enough."""

    connection: Connection[TupleRow]
    expires: float
    idle_since: float = math.inf


async def open_member(dsn: str, settings: PoolSettings, deadline: float) -> Member:
    """Connect, trying again until the deadline unless the server refuses."""
    failure: psycopg.Error = errors.ConnectionTimeout("no answer")
    with trio.move_on_at(deadline):
        for delay in _backoff():
            try:
                connection = await open_session(dsn, prepare=settings.prepare, settings=settings.session)
            except psycopg.OperationalError as error:
                failure = error
                if is_refusal(error):
                    break
            else:
                lifetime = settings.max_lifetime * random.uniform(0.9, 1.0)
                return Member(connection, trio.current_time() + lifetime)
            await trio.sleep(delay)
    raise unavailable(failure) from failure


def is_clean(connection: Connection[TupleRow]) -> bool:
    """Tell whether the connection is as it was when it was new."""
    pgconn = connection.pgconn
    return (
        pgconn.status == pq.ConnStatus.OK
        and pgconn.transaction_status == pq.TransactionStatus.IDLE
        and pgconn.pipeline_status == pq.PipelineStatus.OFF
        and connection.autocommit
    )


async def undo(connection: Connection[TupleRow]) -> bool:
    """End what was left open on the connection; tell whether that worked."""
    with trio.move_on_after(connection.cancel_grace, shield=True), suppress(psycopg.Error):
        await connection.rollback()
        await connection.set_autocommit(True)
    return is_clean(connection)


def _backoff() -> Iterator[float]:
    # Jitter, so that the clients of a server that comes back do not all arrive at once.
    delay = 0.05
    while True:
        yield delay * random.uniform(0.5, 1.0)
        delay = min(delay * 2, 2.0)
