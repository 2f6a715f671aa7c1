"""The front door for trio programs: `open_boss` and `Boss`."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

import attrs
import trio

from trioboss.doors.base import PLANNER_SETTINGS
from trioboss.doors.jobs import JobDoor
from trioboss.doors.queues import QueueDoor
from trioboss.doors.sending import SendDoor
from trioboss.model.payload import MAX_BYTES
from trioboss.postgres import Pool, open_pool
from trioboss.postgres.driving import drive, drive_in
from trioboss.postgres.embedded import resolve_dsn
from trioboss.postgres.migrate import check_version
from trioboss.postgres.migrate import migrate as bring_up_to_date
from trioboss.postgres.redact import hide_password
from trioboss.sql import Catalog, check_schema
from trioboss.store import Context, make_store

__all__ = ["Boss", "open_boss"]


@attrs.define(eq=False, repr=False)
class Boss(QueueDoor, SendDoor, JobDoor):
    """Sends, runs and looks after jobs. Made by `open_boss`."""

    dsn: str
    """What another process needs to join. May hold a password: the repr does not show it."""

    @property
    def schema(self) -> str:
        """The schema that holds everything."""
        return self._store.context.catalog.schema

    def __repr__(self) -> str:
        return f"<Boss {hide_password(self.dsn)!r} schema={self.schema!r}>"


@asynccontextmanager
async def open_boss(
    dsn: str | None = None,
    *,
    schema: str = "trioboss",
    pool_size: int = 10,
    migrate: bool = True,
    max_payload: int = MAX_BYTES,
) -> AsyncIterator[Boss]:
    """Open a boss for the length of a block.

    Without a ``dsn`` it is TRIOBOSS_DSN, then DATABASE_URL, then an embedded Postgres whose data lives in
    TRIOBOSS_HOME: started on first use, shared by all processes that ask for it, stopped by the last one.
    ``migrate=False`` never changes the schema; a missing or old one raises SchemaOutOfDate.
    """
    context = Context(Catalog(check_schema(schema)), max_bytes=max_payload)
    async with _resolved(dsn) as found, open_pool(found, size=pool_size, settings=PLANNER_SETTINGS) as pool:
        await _prepare_schema(pool, context.catalog, migrate)
        yield Boss(pool, make_store(context), found)


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


async def _prepare_schema(pool: Pool, catalog: Catalog, may_migrate: bool) -> None:
    if not may_migrate:
        await drive(check_version(catalog), pool)
        return
    async with pool.connection() as conn, conn.transaction():
        await drive_in(conn, bring_up_to_date(catalog), pool)
