"""Databases with many jobs, a blocked key, an archive or many queues; and the time of claims from them."""

import time
from collections.abc import Callable, Set
from typing import Any

import psycopg

import trioboss
from benchmarks.adapters.base import QUEUE
from benchmarks.harness.server import run_sql

__all__ = ["admit_all", "block_key", "fill_archive", "fill_jobs", "fill_queues", "measure_claims"]

_COLD = 20  # claims before the measurement begins
_ADMITTED_AT_ONCE = 50_000


def fill_jobs(count: int, *, keyed: bool = False) -> Callable[[str], None]:
    """Return a function that fills a database with so many jobs, each with its own key if `keyed`."""

    def fill(dsn: str) -> None:
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            boss.insert(QUEUE, (_row(i, str(i) if keyed else None) for i in range(count)))

    return fill


def _row(i: int, key: str | None = None) -> dict[str, Any]:
    return {"data": {"i": i, "t": 0, "due": 0}, "singleton_key": key}


def block_key(dsn: str, blocked: int, free: int) -> None:
    """Insert a key whose first job stays active, with many jobs behind it, and then jobs of free keys."""
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        boss.insert(QUEUE, ({**_row(i, "blocked"), "expire_in": 86_400} for i in range(blocked)))
        boss.fetch(QUEUE)
        boss.insert(QUEUE, (_row(i, str(i)) for i in range(free)))
    admit_all(dsn, blocked + free)


def admit_all(dsn: str, jobs: int) -> None:
    """Admit so many new jobs of a keyed queue, which otherwise happens along with the measured claims.

    A claim in the caller's transaction admits jobs by a transaction of its own. Its rollback leaves them ready.
    """
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        for _ in range(jobs // _ADMITTED_AT_ONCE + 2):
            with psycopg.connect(dsn) as connection:
                boss.fetch(QUEUE, batch_size=_ADMITTED_AT_ONCE, conn=connection)
                connection.rollback()


def fill_archive(dsn: str, archived: int, jobs: int) -> None:
    """Fill the archive with copies of one completed job, and the queue with jobs."""
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        boss.send(QUEUE, {"i": 0, "t": 0, "due": 0})
        boss.complete(QUEUE, boss.fetch(QUEUE))
    _copy_row(dsn, "archive", {"id": "gen_random_uuid()"}, archived - 1, leave={"xid"})
    fill_jobs(jobs)(dsn)


def fill_queues(dsn: str, queues: int, jobs: int) -> None:
    """Create many queues, one of them with jobs."""
    _copy_row(dsn, "queue", {"name": "'other/' || n"}, queues - 1)
    fill_jobs(jobs)(dsn)


def _copy_row(
    dsn: str, table: str, changed: dict[str, str], count: int, leave: Set[str] = frozenset()
) -> None:
    """Copy the only row of a table many times, with some columns changed."""
    rows = run_sql(
        dsn,
        "select column_name from information_schema.columns "
        f"where table_schema = 'trioboss' and table_name = '{table}' and is_generated = 'NEVER'",
    )
    same = [row[0] for row in rows if row[0] not in changed and row[0] not in leave]
    columns, values = ", ".join([*changed, *same]), ", ".join([*changed.values(), *same])
    run_sql(
        dsn,
        f"insert into trioboss.{table} ({columns}) select {values} "
        f"from trioboss.{table}, generate_series(1, {count}) n",
        f"analyze trioboss.{table}",
    )


async def measure_claims(dsn: str, count: int, refill: bool = False) -> list[float]:
    """Return the milliseconds of each claim of 10 jobs. `refill`: the queue never has more than 10."""
    times: list[float] = []
    async with trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False, pool_size=1) as boss:
        await boss.wait_listening()
        for number in range(count):
            if refill:
                await boss.insert(QUEUE, [_row(number * 10 + i, str(number * 10 + i)) for i in range(10)])
            began = time.perf_counter()
            jobs = await boss.fetch(QUEUE, batch_size=10)
            times.append((time.perf_counter() - began) * 1000)
            if len(jobs) != 10:
                raise RuntimeError(f"a claim of 10 got {len(jobs)}")
            if refill:
                await boss.complete(QUEUE, jobs)
    return times[min(_COLD, count // 2) :]
