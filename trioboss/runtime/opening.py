"""Opens everything that a boss needs, in order: the server, the schema, the pools, the actors."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import attrs
import trio

from trioboss.errors import DatabaseUnavailable, UsageError
from trioboss.postgres import Pool, open_pool
from trioboss.postgres.connection import Connect, Connection, is_behind_pooler
from trioboss.postgres.embedded import resolve_dsn
from trioboss.postgres.errors import wrap_driver_errors
from trioboss.postgres.executor import execute_in
from trioboss.postgres.migrate import check_version
from trioboss.postgres.migrate import migrate as migrate_schema
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.runtime.adapter import BossIdentity, ListenAdapter, StoreAdapter
from trioboss.runtime.lifecycle import Runtime, RuntimeSettings, run_actors
from trioboss.store import Store

__all__ = ["OpenSettings", "Opened", "open_runtime"]

# The actors have connections of their own: a program that uses up its pool must not lose its leases.
_ACTOR_POOL_SIZE = 4
_ACTOR_MAX_IDLE = 5.0  # seconds after which the actors close a connection that they did not need


@attrs.frozen
class OpenSettings:
    """How the database is opened."""

    pool_size: int
    migrate: bool
    create_schema: bool
    connect_wait: float
    """Seconds to wait for a database that cannot be reached yet."""
    connect: Connect | None = None
    """Opens each connection."""


@attrs.frozen
class Opened:
    """An open database, and the actors that run on it."""

    dsn: str
    pool: Pool
    """The connections of the program."""
    runtime: Runtime


@asynccontextmanager
async def open_runtime(
    dsn: str | None, store: Store, settings: RuntimeSettings, opening: OpenSettings
) -> AsyncIterator[Opened]:
    """Open a database and run the actors for the length of a block."""
    async with _resolved(dsn) as found:
        pooled, settings = await _prepare_schema(found, store, settings, opening)
        # A transaction pooler gives each transaction another session: nothing can be prepared or set in it.
        session = {} if pooled else OWN_SETTINGS
        opened = partial(open_pool, found, prepare=not pooled, settings=session, connect=opening.connect)
        async with (
            opened(size=opening.pool_size) as pool,
            opened(size=_ACTOR_POOL_SIZE, max_idle=_ACTOR_MAX_IDLE) as actor_pool,
        ):
            identity = BossIdentity(uuid4(), pooled)
            adapter = StoreAdapter(identity, store, actor_pool)
            listen_adapter = ListenAdapter(identity, found, actor_pool, store)
            async with run_actors(settings, identity, adapter, listen_adapter, (pool, actor_pool)) as runtime:
                yield Opened(found, pool, runtime)


@asynccontextmanager
async def _resolved(dsn: str | None) -> AsyncIterator[str]:
    """The dsn to use. An embedded server runs as long as the block; starting and stopping it takes a thread."""
    if _is_in_asyncio() or not trio.lowlevel.in_trio_run():
        raise UsageError(
            "open_boss needs trio: start the program with trio.run(main); in an asyncio program use SyncBoss, "
            "in a thread (asyncio.to_thread)"
        )
    share: AbstractContextManager[str] = resolve_dsn(dsn)
    found = await trio.to_thread.run_sync(share.__enter__)
    try:
        yield found
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(share.__exit__, None, None, None)


def _is_in_asyncio() -> bool:
    """Whether an asyncio task calls, also one whose event loop runs in trio (trio-asyncio)."""
    try:
        return asyncio.current_task() is not None
    except RuntimeError:  # there is no event loop
        return False


async def _prepare_schema(
    dsn: str, store: Store, settings: RuntimeSettings, opening: OpenSettings
) -> tuple[bool, RuntimeSettings]:
    """Migrate the schema, or check it; return whether a pooler is in between, and the settings that our role allows."""
    deadline = trio.current_time() + opening.connect_wait
    async with open_pool(dsn, size=1, prepare=False, connect=opening.connect) as pool:
        while True:
            async with pool.connection(max(0.0, deadline - trio.current_time())) as conn:
                try:
                    with wrap_driver_errors():
                        return await _prepare_schema_on(conn, pool, store, settings, opening)
                except DatabaseUnavailable:
                    # A server that restarts now is like one that cannot be reached yet. Migrations are repeatable.
                    if not conn.closed or trio.current_time() >= deadline:
                        raise
    raise AssertionError


async def _prepare_schema_on(
    conn: Connection[Any], pool: Pool, store: Store, settings: RuntimeSettings, opening: OpenSettings
) -> tuple[bool, RuntimeSettings]:
    catalog = store.context.catalog
    if opening.migrate:
        async with conn.transaction():
            await execute_in(conn, migrate_schema(catalog, create_schema=opening.create_schema), pool)
    else:
        await execute_in(conn, check_version(catalog), pool)
    supervise, schedule = await execute_in(conn, store.presence.get_rights(), pool)
    allowed = attrs.evolve(
        settings, supervise=settings.supervise and supervise, schedule=settings.schedule and schedule
    )
    return await is_behind_pooler(conn), allowed
