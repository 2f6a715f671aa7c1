"""Connections and statements, without a queue around them: what store.py compares trioboss's verbs with.

What is compared takes turns in one process, a few hundred calls each, so that noise meets all of it.
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
# The same row as send makes, in the same table, on the same connection; nothing is looked up, nobody is woken.
_INSERT = Statement(
    "bench_insert",
    """
    insert into trioboss.job_common (
        id, name, data, retry_limit, retry_delay, retry_backoff, retry_jitter, expire_in, auto_heartbeat,
        max_lease_extensions, keep_until, delete_after, policy, gate)
    values ($1, $2, $3, 2, 0, false, 0, '15 min', false, 0, now() + interval '14 days', '7 days', 'standard', 0)""",
    ("id", "queue", "data"),
)

Call = Callable[[], Awaitable[object]]


async def _take_turns(calls: Mapping[str, Call], rounds: int, each: int) -> dict[str, list[float]]:
    """Seconds of each call, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 1):
        for name, call in calls.items():
            for _ in range(each):
                began = time.perf_counter()
                await call()
                if turn:
                    times[name].append(time.perf_counter() - began)
    return times


async def compare_sends(dsn: str, rounds: int, each: int) -> dict[str, float]:
    """Sends a second by `boss.send`, and bare prepared INSERTs a second, both committed one by one."""
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

        times = await _take_turns({"send": send, "insert": insert}, rounds, each)
    return {name: len(values) / sum(values) for name, values in times.items()}


async def compare_bulk(dsn: str, count: int) -> dict[str, float]:
    """Jobs a second by `boss.insert`, and rows a second by a bare COPY of the same rows without any index."""
    async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False) as boss:
        await boss.insert(QUEUE, [{"data": {"i": 0}}])
        began = time.perf_counter()
        await boss.insert(QUEUE, ({"data": {"i": i, "t": 0, "due": 0}} for i in range(count)))
        ours = time.perf_counter() - began
    return {"insert": count / ours, "copy": count / await trio.to_thread.run_sync(_copy, dsn)}


def _copy(dsn: str) -> float:
    with psycopg.connect(dsn) as connection:
        with connection.cursor().copy("copy trioboss.job_common to stdout (format binary)") as copy:
            rows = [bytes(block) for block in copy]
        connection.execute("create table bare (like trioboss.job_common)")
        connection.commit()
        whole = b"".join(rows)
        began = time.perf_counter()
        with connection.cursor().copy("copy bare from stdin (format binary)") as into:
            for first in range(0, len(whole), 131_072):
                into.write(whole[first : first + 131_072])
        connection.commit()
        return time.perf_counter() - began


async def compare_round_trips(dsn: str, rounds: int, each: int) -> dict[str, float]:
    """Microseconds of `SELECT 1`, prepared: median of each way to wait for it."""
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
            times = await _take_turns(calls, rounds, each)
    times |= await _bridged_round_trips(dsn, rounds, each)
    return {name: median(values) * 1e6 for name, values in times.items()}


async def _bridged_round_trips(dsn: str, rounds: int, each: int) -> dict[str, list[float]]:
    async with trio_asyncio.open_loop():
        connection = await trio_asyncio.aio_as_trio(_connect_asyncio)(dsn)

        async def by_trio_asyncio() -> None:
            await trio_asyncio.aio_as_trio(connection.execute)("select 1", prepare=True)

        times = await _take_turns({"psycopg under trio-asyncio": by_trio_asyncio}, rounds, each)
        await trio_asyncio.aio_as_trio(connection.close)()
        return times


async def _connect_asyncio(dsn: str) -> psycopg.AsyncConnection[Any]:
    # trio-asyncio replaces this function; psycopg, imported earlier, still has the old one.
    setattr(psycopg.waiting, "get_running_loop", asyncio.get_running_loop)  # noqa: B010
    return await psycopg.AsyncConnection.connect(dsn, autocommit=True)


class _Wakeups(Instrument):
    """Counts how often trio came back from waiting."""

    def __init__(self) -> None:
        self.count = 0

    def after_io_wait(self, timeout: float) -> None:
        self.count += 1


async def count_wakeups(dsn: str, seconds: float) -> int:
    """How often a connection that listens, and hears nothing, wakes its process."""
    async with open_connection(dsn) as connection, trio.open_nursery() as nursery:
        await connection.execute("listen silence")
        nursery.start_soon(_hear_nothing, connection)
        await trio.sleep(0.2)
        wakeups = _Wakeups()
        trio.lowlevel.add_instrument(wakeups)
        await trio.sleep(seconds)
        trio.lowlevel.remove_instrument(wakeups)
        nursery.cancel_scope.cancel()
    return max(0, wakeups.count - 1)  # the last one is our own


async def _hear_nothing(connection: Connection[Any]) -> None:
    while True:
        await connection.wait_notifies()
