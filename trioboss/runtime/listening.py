"""Listening connections: one session of this boss, or polls through the pool behind a transaction pooler."""

import json
import os
import platform
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import attrs
import trio

from trioboss._version import __version__
from trioboss.actors.ports import ListeningConnection, Registration
from trioboss.errors import DatabaseUnavailable
from trioboss.model.polling import PollResult
from trioboss.postgres import Connection, Pool, open_connection
from trioboss.postgres.errors import translate_errors
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.postgres.wire import BoundStatement, Results
from trioboss.runtime.refusals import refusals_as_unavailable
from trioboss.store import Store

__all__ = ["BossIdentity", "ListenAdapter"]

_SHORT_KEEPALIVES = {
    # The server notices within seconds that this machine is gone, and releases the lock of its presence.
    "tcp_keepalives_idle": "2",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
_LEADERSHIP = 30.0  # seconds that a leader leads without a poll
# The same behind a pooler, where no lock tells that the leader died, and polls are more frequent.
_POLLED_LEADERSHIP = 8.0
_TIMEOUT = 4.0  # seconds that the server has to answer a listener
_NO_ANSWER = f"the server has not answered the listener within {_TIMEOUT:g} s"


@attrs.define(eq=False)
class BossIdentity:
    """How other bosses see this one."""

    id: UUID
    is_pooled: bool
    """A transaction pooler is in between: no session belongs to this boss for longer than a transaction."""
    pid: int | None = None
    """The server process of the session that holds the lock of its presence, while there is one."""

    @property
    def lock(self) -> int | None:
        """The advisory lock of its presence: 63 bits of its random id. None where only a time tells its presence."""
        return None if self.is_pooled else self.id.int & (1 << 63) - 1

    def describe(self, slots: int | None) -> str:
        """What operators see of a worker of this boss, as JSON."""
        about = {"host": platform.node(), "pid": os.getpid(), "version": __version__, "slots": slots}
        return json.dumps(about)


@attrs.define(eq=False, repr=False)
class ListenAdapter:
    """ListenPort of one boss."""

    _identity: BossIdentity
    _dsn: str
    _pool: Pool
    _store: Store
    _conn: Connection[Any] | None = attrs.field(default=None, init=False)
    """The listening connection, while there is one."""

    def limit_cancel_grace(self, seconds: float) -> None:
        """Let clean-up after a cancellation take no longer than this."""
        if self._conn is not None:
            self._conn.cancel_grace = seconds

    @asynccontextmanager
    async def open_listening_connection(
        self, registrations: Callable[[], Sequence[Registration]]
    ) -> AsyncIterator[ListeningConnection]:
        """Connect, listen, take the lock of our presence, and register the workers."""
        if self._identity.is_pooled:
            yield _PollingConnection(self._identity, self._pool, self._store)
            return
        context = self._store.context
        presence = context.bind("hold_presence", lock=self._identity.lock)
        settings = OWN_SETTINGS | _SHORT_KEEPALIVES
        with refusals_as_unavailable():
            connect = self._pool.settings.connect
            async with open_connection(self._dsn, settings=settings, connect=connect) as conn:
                connection = _ListeningConnection(self._identity, conn, self._store)
                self._conn = conn
                try:
                    await connection.run(context.bind("listen"), presence)
                    self._identity.pid = conn.info.backend_pid
                    # After the pid is set: a worker that registers meanwhile uses it, too.
                    if register := _register(self._store, self._identity, registrations()):
                        await connection.run(*register)
                    yield connection
                finally:
                    self._identity.pid = self._conn = None


@attrs.define(eq=False)
class _ListeningConnection:
    """A session of our own. Its presence and its leadership end with it."""

    _identity: BossIdentity
    _conn: Connection[Any]
    _store: Store

    async def receive(self) -> list[str]:
        """Wait for notifications."""
        with translate_errors(self._conn):
            notifications = await self._conn.wait_notifies()
        return [notification.payload for notification in notifications]

    async def ping(self) -> None:
        """Check the connection without a statement."""
        with translate_errors(self._conn):
            await self._conn.ping(_TIMEOUT)

    async def poll(
        self, queues: Sequence[str], token: str, *, candidate: bool, registrations: Sequence[Registration]
    ) -> PollResult:
        """Poll. The registrations are in force as long as the session is."""
        boss = self._identity.id if candidate else None
        poll = self._store.presence.poll_statement(queues, token, boss, _LEADERSHIP, session=True)
        return self._store.presence.read_poll(await self.run(poll))

    async def run(self, *statements: BoundStatement) -> Results:
        """Run statements, each in a transaction of its own."""
        with trio.move_on_after(_TIMEOUT), translate_errors(self._conn):
            return await self._conn.run([[statement] for statement in statements])
        raise DatabaseUnavailable(_NO_ANSWER)


@attrs.define(eq=False)
class _PollingConnection:
    """Behind a transaction pooler there are no notifications. Presence and leadership are rows with a time."""

    _identity: BossIdentity
    _pool: Pool
    _store: Store

    async def receive(self) -> list[str]:
        """Wait: no notification arrives."""
        await trio.sleep_forever()

    async def ping(self) -> None:
        """Nothing: polls come more often than pings."""

    async def poll(
        self, queues: Sequence[str], token: str, *, candidate: bool, registrations: Sequence[Registration]
    ) -> PollResult:
        """Poll, and renew the times of our presence."""
        boss = self._identity.id if candidate else None
        poll = self._store.presence.poll_statement(queues, token, boss, _POLLED_LEADERSHIP)
        statements = [poll, *_register(self._store, self._identity, registrations)]
        with refusals_as_unavailable(), trio.move_on_after(_TIMEOUT):
            results = await self._pool.run([[statement] for statement in statements])
            return self._store.presence.read_poll(results)
        raise DatabaseUnavailable(_NO_ANSWER)


def _register(
    store: Store, identity: BossIdentity, registrations: Sequence[Registration]
) -> list[BoundStatement]:
    return [
        store.presence.register_statement(
            each.worker,
            identity.id,
            each.name,
            each.queue,
            identity.lock,
            identity.pid,
            identity.describe(each.slots),
        )
        for each in registrations
    ]
