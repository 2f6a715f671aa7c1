"""A history that a busy queue has written: two bosses, all policies, failures, cancellations, resumptions, retries."""

import random

import psycopg
import trio

import trioboss
from trioboss.pipeline.batch_reader import BatchReader
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.options import ReadOptions

POLICIES = ("standard", "short", "singleton", "stately", "exclusive", "key_strict_fifo")
KEYS = ("a", "b", "c")


async def live(dsn, jobs, seed=1):
    """Send so many jobs to each queue, and let all of them end."""
    chance = random.Random(seed)

    async def handle(job):
        await trio.sleep(chance.random() * 0.004)
        if chance.random() < 0.25:
            raise ValueError(f"no {job.data['n']}")

    async with trioboss.open_boss(dsn) as one, trioboss.open_boss(dsn) as two:
        await one.create_queue("dead")
        for policy in POLICIES:
            await one.create_queue(
                policy, policy=policy, dead_letter="dead", retry_limit=1, retry_delay=0.005
            )
        await one.work("dead", handle)
        async with trio.open_nursery() as nursery:
            for policy in POLICIES:
                nursery.start_soon(_send, one, policy, jobs, chance)
            for policy in POLICIES:
                for boss in (one, two):
                    await boss.work(policy, handle, concurrency=2)
        await _settle(one, dsn)


async def _send(boss, policy, jobs, chance):
    """Some jobs are deferred, some cancelled and resumed at once."""
    for n in range(jobs):
        later = chance.random() * 0.02 if chance.random() < 0.2 else None
        options = {} if later is None else {"start_after": later}
        id = await boss.send(policy, {"n": n}, singleton_key=chance.choice(KEYS), **options)
        if id is not None and chance.random() < 0.1:
            await boss.cancel(policy, id)
            await boss.resume(policy, id)
        await trio.sleep(chance.random() * 0.002)


async def _settle(boss, dsn):
    """Wait until all jobs have ended. A failed job of strict FIFO blocks its key, so it is retried."""
    with psycopg.connect(dsn, autocommit=True) as connection, trio.fail_after(120):
        while rows := connection.execute("select name, id, state::text from trioboss.job").fetchall():
            for name, id, state in rows:
                if state == "failed":
                    await boss.retry(name, id)
            await trio.sleep(0.02)


def rows_of(dsn, table):
    """All rows of a table, with the columns that Spark has."""
    reader = BatchReader(ReadOptions.parse({"dsn": dsn, "table": table}), TABLES[table].schema())
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
