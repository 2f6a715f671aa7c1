"""What several tests of the verbs do."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import psycopg
import trio

import trioboss


def open_quiet_boss(dsn: str, **options: Any) -> AbstractAsyncContextManager[trioboss.Boss]:
    """Open a boss on a migrated database, without maintenance and cron."""
    return trioboss.open_boss(dsn, migrate=False, supervise=False, schedule=False, **options)


async def take(boss: trioboss.Boss, queue: str, **options: Any) -> trioboss.Job:
    """Fetch one job, which has to be there."""
    (job,) = await boss.fetch(queue, **options)
    return job


async def take_all(boss: trioboss.Boss, queue: str) -> list[Any]:
    """Fetch all that can run now, and return their data."""
    return [job.data for job in await boss.fetch(queue, batch_size=1000)]


async def fail_for_good(boss: trioboss.Boss, queue: str, **options: Any) -> trioboss.Job:
    """Send a job without retries, fail it, and return it as it is then."""
    id = await boss.send(queue, **{"retry_limit": 0, **options})
    await boss.fail(queue, await boss.fetch(queue), "broken")
    job = await boss.get_job_by_id(queue, id)
    assert job is not None
    assert job.state == "failed"
    return job


def hear(listener: psycopg.Connection[Any], until: str) -> list[str]:
    """The words of the channel up to one that somebody sent to mark the end; what bosses tell each other aside."""
    words: list[str] = []
    for word in listener.notifies(timeout=10):
        if word.payload == until:
            return words
        if not word.payload.startswith("*"):
            words.append(word.payload)
    raise AssertionError(f"{until!r} never came, only {words}")


async def until_blocked(database: psycopg.Connection[Any]) -> None:
    """Wait until somebody waits for a lock."""
    with trio.fail_after(10):
        while not await trio.to_thread.run_sync(is_anybody_waiting, database):
            pass


def is_anybody_waiting(database: psycopg.Connection[Any]) -> bool:
    """Whether somebody waits for a lock."""
    return database.execute("select 1 from pg_locks where not granted").fetchone() is not None
