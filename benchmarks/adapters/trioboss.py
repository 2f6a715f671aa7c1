"""trioboss, by the same protocol as its peers.

Settings: `concurrency`, `prefetch` and `batch_size` of `boss.work`; `keep_completed` and `policy` of the queue; `keys`:
how many keys the jobs have; `seconds`: how long a handler takes.
"""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

import trioboss
from benchmarks.adapters.base import QUEUE, Adapter, Hit, main
from benchmarks.adapters.pacing import Data, Runtime
from benchmarks.programs.protocol import now

__all__ = ["PENDING_SQL", "TriobossAdapter"]

# Ended jobs leave this table.
PENDING_SQL = "select count(*) from trioboss.live_job"


class TrioRuntime:
    """trio behind the interface of the pacing."""

    now = staticmethod(now)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await trio.sleep(seconds)

    async def in_thread(self, function: Callable[[], str]) -> str:
        """Run a blocking function."""
        return await trio.to_thread.run_sync(function, abandon_on_cancel=True)

    @asynccontextmanager
    async def tasks(self) -> AsyncIterator[Callable[..., object]]:
        """Yield a function that starts tasks; wait for them at the end of the block."""
        async with trio.open_nursery() as nursery:
            yield nursery.start_soon

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Run a program."""
        trio.run(main)


class TriobossAdapter(Adapter):
    """trioboss's public interface."""

    runtime: Runtime = TrioRuntime()
    _boss: trioboss.Boss

    def _open(self, **options: Any) -> AbstractAsyncContextManager[trioboss.Boss]:
        return trioboss.open_boss(self.dsn, migrate=False, **options)

    async def set_up(self) -> dict[str, str]:
        """Install the schema and create the queue."""
        async with trioboss.open_boss(self.dsn) as boss:
            await boss.create_queue(
                QUEUE,
                policy=self.settings.get("policy", "standard"),
                keep_completed=self.settings.get("keep_completed", True),
            )
        return {"version": trioboss.__version__, "pending_sql": PENDING_SQL}

    async def fill(self, count: int) -> None:
        """Add ready jobs by `insert`."""
        async with self._open(supervise=False, schedule=False) as boss:
            await boss.insert(QUEUE, map(self._row, range(count)))

    def _row(self, i: int) -> dict[str, Any]:
        return {"data": {"i": i, "t": 0, "due": 0}, **self._key(i)}

    def _key(self, i: int) -> dict[str, Any]:
        keys = self.settings.get("keys")
        return {"singleton_key": str(i % keys)} if keys else {}

    @asynccontextmanager
    async def producing(self, connections: int) -> AsyncIterator[None]:
        """Open a boss that only sends."""
        async with self._open(supervise=False, schedule=False, pool_size=connections) as self._boss:
            yield

    async def send(self, data: Data) -> None:
        """Send one job."""
        await self._boss.send(QUEUE, data, **self._key(data["i"]))

    async def send_many(self, rows: Sequence[Data]) -> None:
        """Send jobs in bulk."""
        await self._boss.insert(QUEUE, ({"data": row, **self._key(row["i"])} for row in rows))

    async def work(self, hit: Hit, ready: Callable[[], None]) -> None:
        """Run one worker."""
        # As `trioboss worker` does, and docs/guides/sizing.md recommends.
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)

        async def handle(job: Any) -> None:
            hit(job.data)

        async def handle_slowly(job: Any) -> None:
            hit(job.data)
            await trio.sleep(self.settings["seconds"])

        async def handle_batch(jobs: list[Any]) -> None:
            for job in jobs:
                hit(job.data)

        batch_size = self.settings.get("batch_size")
        async with self._open() as boss:
            await boss.work(
                QUEUE,
                handle_batch if batch_size else handle_slowly if "seconds" in self.settings else handle,
                concurrency=self.settings.get("concurrency", 10),
                prefetch=self.settings.get("prefetch"),
                batch_size=batch_size,
            )
            ready()
            await trio.sleep_forever()


if __name__ == "__main__":
    main(TriobossAdapter)
