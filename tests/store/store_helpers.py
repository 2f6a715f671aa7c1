"""Helpers of several tests of the operations."""

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
    """Fetch all jobs that can run now, and return their data."""
    return [job.data for job in await boss.fetch(queue, batch_size=1000)]


async def fail_for_good(boss: trioboss.Boss, queue: str, **options: Any) -> trioboss.Job:
    """Send a job without retries, fail it, and return it as it is then."""
    id = await boss.send(queue, **{"retry_limit": 0, **options})
    await boss.fail(queue, await boss.fetch(queue), "broken")
    job = await boss.get_job_by_id(queue, id)
    assert job is not None
    assert job.state == "failed"
    return job


def receive(listener: psycopg.Connection[Any], until: str) -> list[str]:
    """The payloads of the notifications up to the one that marks the end, without those that bosses send each other."""
    return [payload for payload in receive_all(listener, until) if not payload.startswith("*")]


def receive_all(listener: psycopg.Connection[Any], until: str) -> list[str]:
    """The payloads of all notifications up to the one that marks the end."""
    payloads: list[str] = []
    for notification in listener.notifies(timeout=10):
        if notification.payload == until:
            return payloads
        payloads.append(notification.payload)
    raise AssertionError(f"{until!r} was not received, only {payloads}")


async def until_blocked(database: psycopg.Connection[Any]) -> None:
    """Return when a session waits for a lock."""
    with trio.fail_after(60):
        while not await trio.to_thread.run_sync(is_a_session_blocked, database):
            pass


def is_a_session_blocked(database: psycopg.Connection[Any]) -> bool:
    """Whether a session of this database waits for a lock; autovacuum and other databases do not count."""
    waiting = """
        select from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and wait_event_type = 'Lock'
    """
    return database.execute(waiting).fetchone() is not None


async def make_one_of_each(boss):
    """A job in each state."""
    failed = await fail_for_good(boss, "q")
    ids = {"failed": failed.id}
    for state, method in {"completed": boss.complete, "cancelled": boss.cancel}.items():
        ids[state] = await boss.send("q")
        await method("q", await boss.fetch("q"))
    ids["retry"] = await boss.send("q", retry_delay=60)
    await boss.fail("q", await boss.fetch("q"))
    ids["active"] = await boss.send("q")
    await boss.fetch("q")
    ids["created"] = await boss.send("q")
    return ids
