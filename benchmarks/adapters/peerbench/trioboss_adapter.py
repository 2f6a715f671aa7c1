"""trioboss for peerbench: lives in its `adapters` folder, beside the `common` that it imports.

Options: `prefetch` as in `boss.work`, `keep_completed=0` for a queue that forgets what is done.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

import trio
from common import QUEUE, Adapter, main  # type: ignore[import-not-found]

import trioboss


class TriobossAdapter(Adapter):  # type: ignore[misc]
    """Calls of trioboss's own interface."""

    name = "trioboss"
    backend = "trio"

    async def setup(self) -> dict[str, str]:
        """Install the schema, make the queue."""
        async with trioboss.open_boss(self.dsn) as boss:
            await boss.create_queue(QUEUE, keep_completed=self.opts.get("keep_completed") != "0")
        # Finished jobs leave this table.
        return {"version": trioboss.__version__, "pending_sql": "select count(*) from trioboss.job"}

    def fill_sql(self, count: int) -> str:
        """Rows as `send` makes them: what they do not say, their queue does."""
        return f"""
            insert into trioboss.job (name, data)
            select '{QUEUE}', jsonb_build_object('i', i, 't', 0) from generate_series(1, {int(count)}) i"""

    async def open_producer(self, connections: int) -> None:
        """A boss that only sends; the process ends without closing it."""
        opening = trioboss.open_boss(
            self.dsn, migrate=False, supervise=False, schedule=False, pool_size=connections
        )
        self._open = AsyncExitStack()
        self._boss = await self._open.enter_async_context(opening)

    async def send(self, data: dict[str, Any]) -> None:
        """Send one job."""
        await self._boss.send(QUEUE, data)

    async def send_many(self, rows: Sequence[dict[str, Any]]) -> None:
        """Send jobs in bulk."""
        await self._boss.insert(QUEUE, ({"data": row} for row in rows))

    async def work(self, concurrency: int, hit: Callable[[float], None], ready: Callable[[], None]) -> None:
        """One worker."""

        async def handle(job: Any) -> None:
            hit(job.data["t"])

        prefetch = int(self.opts["prefetch"]) if "prefetch" in self.opts else None
        async with trioboss.open_boss(self.dsn, migrate=False) as boss:
            await boss.work(QUEUE, handle, concurrency=concurrency, prefetch=prefetch)
            ready()
            await trio.sleep_forever()


if __name__ == "__main__":
    main(TriobossAdapter)
