"""Connections and statements without a queue: `store` compares trioboss's operations with them.

The compared calls alternate in one process, a few hundred of each at a time, so that noise affects all of them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import psycopg
import trio
import trio_asyncio
from trio.abc import Instrument

import trioboss
from benchmarks.adapters.base import QUEUE
from benchmarks.harness.percentiles import median
from trioboss.postgres import BoundStatement, Connection, open_connection, open_pool
from trioboss.sql import Statement

__all__ = ["compare_bulk", "compare_round_trips", "compare_sends", "count_wakeups"]

_SELECT = BoundStatement(Statement("bench_select", "select 1", ()))
# The row that send inserts, in the same table, on a pool of the same kind; without reading the queue or notifying.
_INSERT = Statement(
    "bench_insert",
    """
    insert into trioboss.live_job_common (id, queue, data, created_on, start_after, readiness)
    values ($1, $2, $3, now(), now(), 'ready')""",
    ("id", "queue", "data"),
)

Call = Callable[[], Awaitable[object]]


async def _alternate(calls: Mapping[str, Call], rounds: int, each: int) -> dict[str, list[float]]:
    """Return the seconds of each call, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name, call in calls.items():
            for _ in range(each):
                began = time.perf_counter()
                await call()
                if number:
                    times[name].append(time.perf_counter() - began)
    return times


async def compare_sends(dsn: str, rounds: int, each: int) -> dict[str, float]:
    """Return the sends a second of `boss.send` and of bare prepared INSERTs, each committed by itself."""
    data = b'{"i": 1, "t": 0, "due": 0}'
    number = 0
    async with (
        trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False, pool_size=1) as boss,
        open_pool(dsn, size=1) as pool,
    ):
        await boss.wait_listening()

        async def send() -> None:
            await boss.send(QUEUE, {"i": 1, "t": 0, "due": 0})

        async def insert() -> None:
            nonlocal number
            number += 1
            id = f"01900000-0000-7000-8000-{number:012x}".encode()
            await pool.run([[BoundStatement(_INSERT, (id, QUEUE.encode(), data))]])

        times = await _alternate({"send": send, "insert": insert}, rounds, each)
    return {name: len(values) / sum(values) for name, values in times.items()}


async def compare_bulk(dsn: str, count: int) -> dict[str, float]:
    """Return the jobs a second of `boss.insert`, and the rows a second of a bare COPY into a table without index."""
    async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False) as boss:
        await boss.insert(QUEUE, [{"data": {"i": 0}}])
        began = time.perf_counter()
        await boss.insert(QUEUE, ({"data": {"i": i, "t": 0, "due": 0}} for i in range(count)))
        ours = time.perf_counter() - began
    return {"insert": count / ours, "copy": count / await trio.to_thread.run_sync(_copy, dsn)}


def _copy(dsn: str) -> float:
    with psycopg.connect(dsn) as connection:
        with connection.cursor().copy("copy trioboss.live_job_common to stdout (format binary)") as copy:
            rows = [bytes(block) for block in copy]
        connection.execute("create table bare (like trioboss.live_job_common)")
        connection.commit()
        whole = b"".join(rows)
        began = time.perf_counter()
        with connection.cursor().copy("copy bare from stdin (format binary)") as into:
            for first in range(0, len(whole), 131_072):
                into.write(whole[first : first + 131_072])
        connection.commit()
        return time.perf_counter() - began


async def compare_round_trips(dsn: str, rounds: int, each: int) -> dict[str, float]:
    """Return the median microseconds of a prepared `SELECT 1` for each way to wait for the answer."""
    async with open_connection(dsn) as ours:
        with psycopg.connect(dsn, autocommit=True) as blocking:

            async def by_blocking() -> None:
                blocking.execute("select 1", prepare=True)

            async def by_trio() -> None:
                await ours.execute("select 1", prepare=True)

            async def by_run() -> None:
                await ours.run([[_SELECT]])

            calls = {
                "blocking psycopg": by_blocking,
                "trioboss, run": by_run,
                "trioboss, execute": by_trio,
            }
            times = await _alternate(calls, rounds, each)
    times |= await _bridged_round_trips(dsn, rounds, each)
    return {name: median(values) * 1e6 for name, values in times.items()}


async def _bridged_round_trips(dsn: str, rounds: int, each: int) -> dict[str, list[float]]:
    async with trio_asyncio.open_loop():
        connection = await trio_asyncio.aio_as_trio(_connect_asyncio)(dsn)

        async def by_trio_asyncio() -> None:
            await trio_asyncio.aio_as_trio(connection.execute)("select 1", prepare=True)

        times = await _alternate({"psycopg under trio-asyncio": by_trio_asyncio}, rounds, each)
        await trio_asyncio.aio_as_trio(connection.close)()
        return times


async def _connect_asyncio(dsn: str) -> psycopg.AsyncConnection[Any]:
    # trio-asyncio replaces asyncio.get_running_loop; psycopg was imported before that and has the original.
    setattr(psycopg.waiting, "get_running_loop", asyncio.get_running_loop)  # noqa: B010
    return await psycopg.AsyncConnection.connect(dsn, autocommit=True)


class _Wakeups(Instrument):
    """Counts how often trio returned from waiting for I/O."""

    def __init__(self) -> None:
        self.count = 0

    def after_io_wait(self, timeout: float) -> None:
        self.count += 1


async def count_wakeups(dsn: str, seconds: float) -> int:
    """Return how often a listening connection without notifications wakes its process."""
    async with open_connection(dsn) as connection, trio.open_nursery() as nursery:
        await connection.execute("listen silence")
        nursery.start_soon(_listen, connection)
        await trio.sleep(0.2)
        wakeups = _Wakeups()
        trio.lowlevel.add_instrument(wakeups)
        await trio.sleep(seconds)
        trio.lowlevel.remove_instrument(wakeups)
        nursery.cancel_scope.cancel()
    return max(0, wakeups.count - 1)  # the last one is the end of our own sleep


async def _listen(connection: Connection[Any]) -> None:
    while True:
        await connection.wait_notifies()
