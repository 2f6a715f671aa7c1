"""procrastinate: a psycopg pool, LISTEN/NOTIFY by default, one statement to fetch each job."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

import procrastinate
import psycopg

from benchmarks.adapters.base import QUEUE, Adapter, Hit, main
from benchmarks.adapters.pacing import Data

_FILL = """
    insert into procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args)
    select %s, %s, 0, null, null, jsonb_build_object('i', i, 't', 0, 'due', 0) from generate_series(1, %s) i"""


class ProcrastinateAdapter(Adapter):
    """The public interface of procrastinate."""

    _task: Any

    def _app(self, connections: int) -> Any:
        connector = procrastinate.PsycopgConnector(
            conninfo=self.dsn, min_size=min(4, connections), max_size=connections
        )
        return procrastinate.App(connector=connector)

    async def set_up(self) -> dict[str, str]:
        """Install the schema."""
        async with self._app(2).open_async() as app:
            await app.schema_manager.apply_schema_async()
        return {
            "version": version("procrastinate"),
            "pending_sql": "select count(*) from procrastinate_jobs where status in ('todo', 'doing')",
        }

    async def fill(self, count: int) -> None:
        """Insert rows like those of `defer`."""
        async with await psycopg.AsyncConnection.connect(self.dsn) as connection:
            await connection.execute(_FILL, [QUEUE, QUEUE, count])

    @asynccontextmanager
    async def producing(self, connections: int) -> AsyncIterator[None]:
        """Open an app with a task that is only sent."""

        async def nothing(**_: Any) -> None:
            """The worker process has the real task."""

        async with self._app(connections).open_async() as app:
            self._task = app.task(name=QUEUE, queue=QUEUE)(nothing)
            yield

    async def send(self, data: Data) -> None:
        """Send one job."""
        await self._task.defer_async(**data)

    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs in one statement."""
        await self._task.batch_defer_async(*rows)

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Run one worker."""

        async def handle(**data: Any) -> None:
            hit(data)

        async with self._app(self.settings.get("pool", 10)).open_async() as app:
            app.task(name=QUEUE, queue=QUEUE)(handle)
            ready()
            await app.run_worker_async(
                queues=[QUEUE],
                concurrency=self.settings["concurrency"],
                listen_notify=True,
                install_signal_handlers=False,
            )


if __name__ == "__main__":
    main(ProcrastinateAdapter)
