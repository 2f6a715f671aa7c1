"""oban for Python: a psycopg pool, LISTEN/NOTIFY, jobs fetched and acknowledged in batches."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import psycopg
from oban import Oban, worker
from oban.schema import install

from benchmarks.adapters.base import QUEUE, Adapter, Hit, main
from benchmarks.adapters.pacing import Data

_FILL = """
    insert into oban_jobs (args, inserted_at, max_attempts, meta, priority, queue, scheduled_at, state, tags, worker)
    select jsonb_build_object('i', i, 't', 0, 'due', 0), timezone('UTC', now()), 20, '{}', 0, %s,
           timezone('UTC', now()), 'available', '{}', %s
    from generate_series(1, %s) i"""


class Handler:
    """The class whose `process` oban calls for each job; the worker sets `hit`."""

    hit: Hit

    async def process(self, job: Any) -> None:
        """Record the entry."""
        Handler.hit(job.args)


Job: Any = worker(queue=QUEUE)(Handler)


class ObanAdapter(Adapter):
    """The public interface of oban."""

    _oban: Any

    async def set_up(self) -> dict[str, str]:
        """Install the schema."""
        pool = await Oban.create_pool(self.dsn, max_size=2)
        await install(pool)
        await pool.close()
        pending = "select count(*) from oban_jobs where state in ('available', 'executing', 'scheduled', 'retryable')"
        return {"version": version("oban"), "pending_sql": pending}

    async def fill(self, count: int) -> None:
        """Insert rows like those of `enqueue`."""
        name = f"{Handler.__module__}.{Handler.__qualname__}"
        async with await psycopg.AsyncConnection.connect(self.dsn) as connection:
            await connection.execute(_FILL, [QUEUE, name, count])

    @asynccontextmanager
    async def producing(self, connections: int) -> AsyncIterator[None]:
        """Open an instance without queues."""
        pool = await Oban.create_pool(self.dsn, min_size=connections, max_size=connections)
        self._oban = await Oban(pool=pool).start()
        yield

    async def send(self, data: Data) -> None:
        """Send one job."""
        await Job.enqueue(data)

    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs in one call."""
        await self._oban.enqueue_many(Job.new(row) for row in rows)

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Run one instance with one queue and the default pool of 1 to 10 connections."""
        Handler.hit = staticmethod(hit)
        pool = await Oban.create_pool(self.dsn)
        async with Oban(pool=pool, queues={QUEUE: self.settings["concurrency"]}):
            ready()
            await asyncio.Event().wait()


if __name__ == "__main__":
    main(ObanAdapter)
