"""The front door for trio programs: `open_boss` and `Boss`."""

import os
import platform
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Protocol
from uuid import uuid4

import attrs
import trio

from trioboss.api.jobs import JobsMixin
from trioboss.api.queues import QueuesMixin
from trioboss.api.sending import SendingMixin
from trioboss.api.working import WorkingMixin
from trioboss.model.check import check_count, check_duration
from trioboss.model.payload import MAX_BYTES
from trioboss.postgres import Pool, open_pool
from trioboss.postgres.connection import is_behind_pooler
from trioboss.postgres.dsn import hide_password
from trioboss.postgres.embedded import resolve_dsn
from trioboss.postgres.executor import execute_in
from trioboss.postgres.migrate import check_version
from trioboss.postgres.migrate import migrate as bring_up_to_date
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.runtime.adapter import StoreAdapter
from trioboss.runtime.runtime import RuntimeSettings, open_runtime
from trioboss.sql import Catalog, check_schema
from trioboss.store import Context, Store, make_store

__all__ = ["Boss", "open_boss"]

# The actors have connections of their own, so that a program that uses up its pool does not lose its leases.
_RUNTIME_POOL = 4
_RUNTIME_IDLE = 5.0  # seconds after which the actors give a connection back that they did not need


class Startable(Protocol):
    """Something that brings workers and schedules of its own: an App."""

    async def start(self, boss: "Boss") -> None:
        """Start them on a boss."""


@attrs.define(eq=False, repr=False)
class Boss(QueuesMixin, SendingMixin, JobsMixin, WorkingMixin):
    """Sends, runs and looks after jobs. Made by `open_boss`."""

    dsn: str
    """What another process needs to join. May hold a password: the repr does not show it."""

    @property
    def _asides(self) -> Pool:
        # Not the pool of the caller's transactions: all of its connections may be taken by those that wait for this.
        return self._runtime.adapter.pool

    @property
    def schema(self) -> str:
        """The schema that holds everything."""
        return self._store.context.catalog.schema

    @property
    def is_pooled(self) -> bool:
        """Whether a pooler, like pgbouncer, stands between this boss and the server."""
        return self._runtime.adapter.pooled

    def __repr__(self) -> str:
        return f"<Boss {hide_password(self.dsn)!r} schema={self.schema!r}>"


@asynccontextmanager
async def open_boss(
    dsn: str | None = None,
    *,
    schema: str = "trioboss",
    pool_size: int = 10,
    migrate: bool = True,
    supervise: bool = True,
    schedule: bool = True,
    worker_name: str | None = None,
    grace: float = 30.0,
    presence_grace: float = 5.0,
    monitor_interval: float | None = None,
    max_payload: int = MAX_BYTES,
    connect_wait: float = 30.0,
    app: Startable | None = None,
) -> AsyncIterator[Boss]:
    """Open a boss for the length of a block.

    Without a ``dsn`` it is TRIOBOSS_DSN, then DATABASE_URL, then an embedded Postgres whose data lives in
    TRIOBOSS_HOME: started on first use, shared by all processes that ask for it, stopped by the last one.
    ``migrate=False`` never changes the schema; a missing or old one raises SchemaOutOfDate.

    ``supervise`` and ``schedule``: whether this boss does maintenance and fires cron, if its role may.
    Leaving the block is the graceful stop: no new claims, running jobs have ``grace`` seconds, what still runs is
    cancelled and given back with no attempt spent. A worker process that dies loses its jobs to others after it
    was missed for ``presence_grace`` seconds. A database that is not there yet is waited for, ``connect_wait``
    seconds at most. ``monitor_interval``: seconds between events that count jobs by state. ``app`` brings workers.
    """
    size = check_count("pool_size", pool_size, low=1)
    max_bytes = check_count("max_payload", max_payload, low=1)
    store = make_store(Context(Catalog(check_schema(schema)), max_bytes=max_bytes))
    may = (supervise, schedule)
    settings = _make_settings(may, worker_name, grace, presence_grace, monitor_interval)
    async with _resolved(dsn) as found:
        pooled, settings = await _prepare_schema(found, store, settings, migrate, connect_wait)
        session = {} if pooled else OWN_SETTINGS
        async with (
            open_pool(found, size=size, prepare=not pooled, settings=session) as pool,
            open_pool(
                found, size=_RUNTIME_POOL, max_idle=_RUNTIME_IDLE, prepare=not pooled, settings=session
            ) as own_pool,
        ):
            adapter = StoreAdapter(uuid4(), found, own_pool, store, pooled)
            async with open_runtime(settings, adapter, (pool, own_pool)) as runtime:
                boss = Boss(pool=pool, store=store, runtime=runtime, dsn=found)
                if app is not None:
                    await app.start(boss)
                with boss._body:
                    yield boss


def _make_settings(
    may: tuple[bool, bool], name: str | None, grace: object, presence_grace: object, interval: object
) -> RuntimeSettings:
    return RuntimeSettings(
        supervise=may[0],
        schedule=may[1],
        worker_name=name or f"{platform.node()}:{os.getpid()}",
        grace=check_duration("grace", grace),
        presence_grace=check_duration("presence_grace", presence_grace, low=2.0),
        monitor_interval=None if interval is None else check_duration("monitor_interval", interval, low=1.0),
    )


@asynccontextmanager
async def _resolved(dsn: str | None) -> AsyncIterator[str]:
    """The dsn to use; an embedded server runs as long as the block. Starting and leaving it takes a thread."""
    share: AbstractContextManager[str] = resolve_dsn(dsn)
    found = await trio.to_thread.run_sync(share.__enter__)
    try:
        yield found
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(share.__exit__, None, None, None)


async def _prepare_schema(
    dsn: str, store: Store, settings: RuntimeSettings, may_migrate: bool, wait: float
) -> tuple[bool, RuntimeSettings]:
    """See that the schema is right; return whether a pooler stands in between, and the settings our role may have."""
    catalog = store.context.catalog
    async with open_pool(dsn, size=1, prepare=False) as pool, pool.connection(wait) as conn:
        if may_migrate:
            async with conn.transaction():
                await execute_in(conn, bring_up_to_date(catalog), pool)
        else:
            await execute_in(conn, check_version(catalog), pool)
        supervise, schedule = await execute_in(conn, store.maintenance.get_rights(), pool)
        settings = attrs.evolve(
            settings, supervise=settings.supervise and supervise, schedule=settings.schedule and schedule
        )
        return await is_behind_pooler(conn), settings
    raise AssertionError
