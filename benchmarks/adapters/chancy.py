"""chancy: a psycopg pool, LISTEN/NOTIFY, batched fetches; completions are written in batches, once a second.

It runs with AsyncExecutor, because its default executor starts processes, and with `eager_polling`, its option for
speed. Setting `outgoing`: seconds between writes of completions.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import psycopg
from chancy import Chancy, Queue, Worker

from benchmarks.adapters.base import Adapter, Hit, main
from benchmarks.adapters.chancy_job import JOB, recorder
from benchmarks.adapters.pacing import Data

_QUEUE = "default"  # a worker always serves this queue, and others only if they are declared
_FILL = """
    insert into chancy_jobs (id, queue, func, kwargs, limits, meta, priority, max_attempts, scheduled_at)
    select (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, %s, %s,
           jsonb_build_object('i', i, 't', 0, 'due', 0), '[]', '{}', 0, 1, now()
    from generate_series(1, %s) i"""


class ChancyAdapter(Adapter):
    """The public interface of chancy."""

    _chancy: Any

    def _make(self, connections: int = 10) -> Any:
        log = logging.getLogger("chancy")
        log.setLevel(logging.WARNING)
        return Chancy(self.dsn, log=log, min_connection_pool_size=1, max_connection_pool_size=connections)

    def _queue(self) -> Any:
        return Queue(
            _QUEUE,
            concurrency=self.settings.get("concurrency", 10),
            executor=Chancy.Executor.Async,
            polling_interval=1,
            eager_polling=True,
        )

    async def set_up(self) -> dict[str, str]:
        """Install the schema."""
        async with self._make() as chancy:
            await chancy.migrate()
            await chancy.declare(self._queue(), upsert=True)
        pending = "select count(*) from chancy_jobs where state in ('pending', 'running', 'retrying')"
        return {"version": version("chancy"), "pending_sql": pending}

    async def fill(self, count: int) -> None:
        """Insert rows like those of `push`."""
        async with await psycopg.AsyncConnection.connect(self.dsn) as connection:
            await connection.execute(_FILL, [_QUEUE, JOB.func, count])

    @asynccontextmanager
    async def producing(self, connections: int) -> AsyncIterator[None]:
        """Open a client without a worker."""
        async with self._make(connections) as self._chancy:
            yield

    async def send(self, data: Data) -> None:
        """Send one job."""
        await self._chancy.push(JOB.with_kwargs(**data))

    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs in batches of its default size."""
        jobs = [JOB.with_kwargs(**row) for row in rows]
        async for _ in self._chancy.push_many(jobs, batch_size=1000):
            pass

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Run one worker."""
        recorder.hit = hit
        async with self._make() as chancy:
            await chancy.declare(self._queue(), upsert=True)
            worker = Worker(chancy, register_signal_handlers=False)
            worker.send_outgoing_interval = self.settings.get("outgoing", 1.0)
            async with worker:
                ready()
                await asyncio.Event().wait()


if __name__ == "__main__":
    main(ChancyAdapter)
