"""pgqueuer, on asyncpg or psycopg (setting `driver`).

Its tuning guide recommends one connection for the worker and `pgq autovac` once. It has a pool for asyncpg only, so
each concurrent sender on psycopg has its own connection. `concurrency` is its batch size, the only limit it has that
needs no extra query.
"""

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import asyncpg
import psycopg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver, PsycopgDriver
from pgqueuer.queries import Queries

from benchmarks.adapters.base import QUEUE, Adapter, Hit, main
from benchmarks.adapters.pacing import Data

_FILL = """
    with added as (
        insert into pgqueuer (priority, entrypoint, payload, execute_after, headers, status)
        select 0, %s, convert_to('{"i": ' || i || ', "t": 0, "due": 0}', 'UTF8'), now(), null, 'queued'
        from generate_series(1, %s) i
        returning id, entrypoint, status, priority)
    insert into pgqueuer_log (job_id, status, entrypoint, priority)
    select id, status, entrypoint, priority from added"""


class PgqueuerAdapter(Adapter):
    """The public interface of pgqueuer."""

    _queries: list[Any]
    _next: Iterator[Any]

    async def _driver(self) -> Any:
        if self.settings["driver"] == "asyncpg":
            return AsyncpgDriver(await asyncpg.connect(self.dsn))
        return PsycopgDriver(await psycopg.AsyncConnection.connect(self.dsn, autocommit=True))

    async def set_up(self) -> dict[str, str]:
        """Install the schema."""
        queries = Queries(await self._driver())
        await queries.install()
        await queries.optimize_autovacuum()
        # Ended jobs leave the table.
        return {"version": version("pgqueuer"), "pending_sql": "select count(*) from pgqueuer"}

    async def fill(self, count: int) -> None:
        """Insert rows like those of `enqueue`."""
        async with await psycopg.AsyncConnection.connect(self.dsn) as connection:
            await connection.execute(_FILL, [QUEUE, count])

    @asynccontextmanager
    async def producing(self, connections: int) -> AsyncIterator[None]:
        """Open a pool, or as many connections."""
        if self.settings["driver"] == "asyncpg":
            pool = await asyncpg.create_pool(self.dsn, min_size=connections, max_size=max(2, connections))
            self._queries = [Queries(AsyncpgPoolDriver(pool))]
        else:
            self._queries = [Queries(await self._driver()) for _ in range(connections)]
        self._next = itertools.cycle(self._queries)
        yield

    async def send(self, data: Data) -> None:
        """Send one job."""
        await next(self._next).enqueue(QUEUE, json.dumps(data).encode())

    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs in one statement."""
        payloads = [json.dumps(row).encode() for row in rows]
        await self._queries[0].enqueue([QUEUE] * len(rows), payloads, [0] * len(rows))

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Run one worker."""

        async def handle(job: Any) -> None:
            hit(json.loads(job.payload))

        queuer = PgQueuer(await self._driver())
        queuer.entrypoint(QUEUE)(handle)
        ready()
        await queuer.run(batch_size=self.settings["concurrency"])


if __name__ == "__main__":
    main(PgqueuerAdapter)
