"""Opens everything that a boss needs, in order: the server, the schema, the pools, the actors."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from uuid import uuid4

import attrs
import trio

from trioboss.postgres import Pool, open_pool
from trioboss.postgres.connection import is_behind_pooler
from trioboss.postgres.embedded import resolve_dsn
from trioboss.postgres.executor import execute_in
from trioboss.postgres.migrate import check_version
from trioboss.postgres.migrate import migrate as migrate_schema
from trioboss.postgres.settings import OWN_SETTINGS
from trioboss.runtime.adapter import StoreAdapter
from trioboss.runtime.listening import BossIdentity, ListenAdapter
from trioboss.runtime.runtime import Runtime, RuntimeSettings, run_actors
from trioboss.store import Store

__all__ = ["Opened", "open_runtime"]

# The actors have connections of their own: a program that uses up its pool must not lose its leases.
_ACTOR_POOL_SIZE = 4
_ACTOR_MAX_IDLE = 5.0  # seconds after which the actors close a connection that they did not need


@attrs.frozen
class Opened:
    """An open database, and the actors that run on it."""

    dsn: str
    pool: Pool
    """The connections of the program."""
    runtime: Runtime


@asynccontextmanager
async def open_runtime(
    dsn: str | None,
    store: Store,
    settings: RuntimeSettings,
    *,
    pool_size: int,
    migrate: bool,
    connect_wait: float,
) -> AsyncIterator[Opened]:
    """Open a database and run the actors for the length of a block."""
    async with _resolved(dsn) as found:
        pooled, settings = await _prepare_schema(found, store, settings, migrate, connect_wait)
        # A transaction pooler gives each transaction another session: nothing can be prepared or set in it.
        session = {} if pooled else OWN_SETTINGS
        async with (
            open_pool(found, size=pool_size, prepare=not pooled, settings=session) as pool,
            open_pool(
                found, size=_ACTOR_POOL_SIZE, max_idle=_ACTOR_MAX_IDLE, prepare=not pooled, settings=session
            ) as actor_pool,
        ):
            identity = BossIdentity(uuid4(), pooled)
            adapter = StoreAdapter(identity, store, actor_pool)
            listen_adapter = ListenAdapter(identity, found, actor_pool, store)
            async with run_actors(settings, identity, adapter, listen_adapter, (pool, actor_pool)) as runtime:
                yield Opened(found, pool, runtime)


@asynccontextmanager
async def _resolved(dsn: str | None) -> AsyncIterator[str]:
    """The dsn to use. An embedded server runs as long as the block; starting and stopping it takes a thread."""
    share: AbstractContextManager[str] = resolve_dsn(dsn)
    found = await trio.to_thread.run_sync(share.__enter__)
    try:
        yield found
    finally:
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(share.__exit__, None, None, None)


async def _prepare_schema(
    dsn: str, store: Store, settings: RuntimeSettings, migrate: bool, connect_wait: float
) -> tuple[bool, RuntimeSettings]:
    """Migrate the schema, or check it; return whether a pooler is in between, and the settings that our role allows."""
    catalog = store.context.catalog
    async with open_pool(dsn, size=1, prepare=False) as pool, pool.connection(connect_wait) as conn:
        if migrate:
            async with conn.transaction():
                await execute_in(conn, migrate_schema(catalog), pool)
        else:
            await execute_in(conn, check_version(catalog), pool)
        supervise, schedule = await execute_in(conn, store.presence.get_rights(), pool)
        settings = attrs.evolve(
            settings, supervise=settings.supervise and supervise, schedule=settings.schedule and schedule
        )
        return await is_behind_pooler(conn), settings
    raise AssertionError
