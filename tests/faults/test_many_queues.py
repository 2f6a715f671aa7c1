"""Many queues."""

import psycopg
import trio

import trioboss

COUNT = 1000


async def test_G4_one_worker_serves_a_thousand_queues_and_becomes_idle(dsn):
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(
            "insert into trioboss.queue (name) select 'many/' || n from generate_series(1, %s) n", [COUNT]
        )

    async def handler(job):
        return job.queue

    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.work("many/*", handler, concurrency=10)
            job = await boss.wait_for("many/777", await boss.send("many/777"))
            (worker,) = boss.statistics().workers
            claims = sum(dispatcher.claims for dispatcher in worker.dispatchers)
            await trio.sleep(1)
            (worker,) = boss.statistics().workers
            later = sum(dispatcher.claims for dispatcher in worker.dispatchers)

    assert job.output == "many/777"
    assert len(worker.dispatchers) == COUNT
    assert later <= max(claims, 3 * COUNT)
