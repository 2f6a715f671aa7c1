"""The public interface for trio programs: `open_boss` and `Boss`."""

import os
import platform
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol, Unpack

import attrs

from trioboss.api.connecting import ConnectionOptions, check_connect, make_context, make_dsn
from trioboss.api.jobs import JobsMixin
from trioboss.api.queues import QueuesMixin
from trioboss.api.sending import SendingMixin
from trioboss.api.waiting import WaitingMixin
from trioboss.api.working import WorkingMixin
from trioboss.model.check import check_count, check_duration, check_key
from trioboss.model.described_error import Redact
from trioboss.model.job import Duration
from trioboss.model.option_names import checks_keywords, keyword_names
from trioboss.model.payload import MAX_BYTES
from trioboss.model.queue import QueueOptions
from trioboss.postgres import Pool
from trioboss.postgres.connection import Connect
from trioboss.postgres.dsn import hide_password
from trioboss.runtime.lifecycle import RuntimeSettings
from trioboss.runtime.opening import Opened, OpenSettings, open_runtime
from trioboss.store import Store, make_store

__all__ = ["Boss", "Startable", "open_boss"]


class Startable(Protocol):
    """Something that has workers and schedules to start: an App."""

    async def start(self, boss: "Boss") -> None:
        """Start them on a boss."""


@checks_keywords
@attrs.define(eq=False, repr=False)
class Boss(QueuesMixin, SendingMixin, JobsMixin, WorkingMixin, WaitingMixin):
    """Sends, runs and settles jobs. Made by `open_boss`."""

    dsn: str
    """The address that another process needs to join. May contain a password, which the repr does not show."""

    @property
    def _own_pool(self) -> Pool:
        # Not the pool of the caller's transactions: all of its connections may be held by callers who wait for this
        # one.
        return self._runtime.adapter.pool

    @property
    def has_ended(self) -> bool:
        """Whether the block of `open_boss` was left: every call raises BossClosed then."""
        return self._has_ended

    @property
    def schema(self) -> str:
        """The schema in which everything is."""
        return self._store.context.catalog.schema

    @property
    def is_pooled(self) -> bool:
        """Whether a transaction pooler, like pgbouncer, is between this boss and the server."""
        return self._runtime.identity.is_pooled

    async def maintain(self, queue: str | None = None) -> None:
        """Do maintenance now, for one queue or for all: end leases that ran out or whose worker is gone, and delete
        jobs and history that have outlived their time. The leader does the same from time to time.
        """
        with self._while_open():
            await self._runtime.maintain(queue)

    def __repr__(self) -> str:
        return f"<Boss {hide_password(self.dsn)!r} schema={self.schema!r}>"


@asynccontextmanager
async def open_boss(
    dsn: str | None = None,
    *,
    schema: str = "trioboss",
    pool_size: int = 10,
    migrate: bool = True,
    create_schema: bool = True,
    supervise: bool = True,
    schedule: bool = True,
    worker_name: str | None = None,
    grace: Duration = 30.0,
    presence_grace: Duration = 5.0,
    monitor_interval: Duration | None = None,
    maintenance_interval: Duration = 60.0,
    prune_interval: Duration = 3600.0,
    warning_interval: Duration = 5.0,
    max_payload: int = MAX_BYTES,
    connect_wait: Duration = 30.0,
    redact: Redact | None = None,
    defaults: QueueOptions | None = None,
    connect: Connect | None = None,
    app: Startable | None = None,
    **connection: Unpack[ConnectionOptions],
) -> AsyncIterator[Boss]:
    """Open a boss for the length of a block. Times are seconds or timedeltas.

    Leaving the block is the graceful stop: no new claims, running jobs have ``grace`` seconds, jobs that still run are
    cancelled and released, which spends no retry.

    - ``dsn``: the database; without it TRIOBOSS_DSN, then DATABASE_URL, then an embedded Postgres whose data is in
      TRIOBOSS_HOME: started on first use, shared by all processes that ask for it, stopped by the last one.
    - ``schema``: where everything is, a name of at most 50 characters.
    - Parameters of libpq (host, port, user, password, dbname, sslmode, …: see `ConnectionOptions`) override those of
      the dsn, or stand for one.
    - ``connect``: an async function that opens each connection instead of ``Connection.connect``, with the same
      arguments; for instance to get a password that changes.
    - ``defaults``: options of queues that `create_queue` does not name, as ``{"retry_limit": 0}``.
    - ``pool_size``: connections for the caller; the actors of the boss have up to five of their own.
    - ``migrate``: False never changes the schema; a missing or old one raises SchemaOutOfDate, a newer one that is
      declared compatible is accepted. ``create_schema``: False installs only into a schema that exists.
    - ``supervise`` and ``schedule``: whether this boss does maintenance and fires schedules, if its role may.
    - ``worker_name``: how operators see this process; by default host and process id.
    - ``grace``: seconds that running jobs have at the end of the block.
    - ``presence_grace``: seconds, at least 2, after which others take the jobs of a process that has died.
    - ``monitor_interval``: seconds between events that count jobs by state; None: no such events.
    - ``maintenance_interval``: seconds between rounds over all leases while no jobs are active. ``prune_interval``:
      between deletions of what has outlived its time. ``warning_interval``: between checks of warning_queue_size.
    - ``max_payload``: bytes of JSON that data, output or progress may have (10 MB).
    - ``connect_wait``: seconds to wait for a database that cannot be reached yet.
    - ``redact``: a function that gets the description of each error, a dict with name, message, stack and so on, and
      returns the one that is stored with the job; if it raises, only the name is stored. A document that `fail` gets
      and that is no dict is its ``value``.
    - ``app``: workers and schedules to start.
    """
    times: dict[str, Any] = {"grace": grace, "presence_grace": presence_grace}  # made seconds by their fields
    times |= {"monitor_interval": monitor_interval, "warning_interval": warning_interval}
    times |= {"maintenance_interval": maintenance_interval, "prune_interval": prune_interval}
    name = check_key("worker_name", worker_name or f"{platform.node()}:{os.getpid()}")
    settings = RuntimeSettings(supervise=supervise, schedule=schedule, worker_name=name, **times)
    size = check_count("pool_size", pool_size, low=1)
    wait = check_duration("connect_wait", connect_wait)
    checked = check_connect(connect, autocommit=True, prepare_threshold=None, prepare=True)
    opening = OpenSettings(size, migrate, create_schema, wait, checked)
    store = make_store(make_context(schema, max_payload, redact, defaults))
    found = make_dsn("open_boss", dsn, connection, keyword_names(open_boss))
    async with _open(open_runtime(found, store, settings, opening), store) as boss:
        if app is not None:
            await app.start(boss)
        with boss._body:
            yield boss


@asynccontextmanager
async def _open(opening: AbstractAsyncContextManager[Opened], store: Store) -> AsyncIterator[Boss]:
    boss: Boss | None = None
    try:
        async with opening as opened:
            boss = Boss(pool=opened.pool, store=store, runtime=opened.runtime, dsn=opened.dsn)
            yield boss
    finally:
        # Not before: handlers use the boss until the last of them has ended.
        if boss is not None:
            boss._end()
