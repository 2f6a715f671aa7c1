"""Anybody who may connect may speak on the channel: what they say costs at most a look each 50 ms."""

import threading

import psycopg
import trio

WORDS = ("q", "q 0.001", "q nan", "*queues", "*schedules", "*busy", "*cancel x", "*probe x", "nonsense")
PACE = 0.05
BURST = 12  # looks that are made at once before the pace counts


def flood(dsn, stop):
    """Say everything that means something to a boss, as fast as it goes."""
    with psycopg.connect(dsn, autocommit=True) as stranger:
        while not stop.is_set():
            for word in WORDS:
                stranger.execute("select pg_notify('trioboss', %s)", [word])


async def test_a_flood_of_forged_words_costs_few_looks_and_holds_nobody_up(boss, dsn, monkeypatch):
    reads = count_reads(boss, monkeypatch)
    stop = threading.Event()

    async def handler(job):
        return job.data

    with trio.fail_after(60):
        await boss.create_queue("q")
        await boss.work("q", handler)
        async with trio.open_nursery() as nursery:
            (before,) = boss.statistics().workers[0].dispatchers
            reads.clear()
            began = trio.current_time()
            nursery.start_soon(trio.to_thread.run_sync, flood, dsn, stop)
            await trio.sleep(1.5)
            job = await boss.wait_for("q", await boss.send("q", "meanwhile"))
            (after,) = boss.statistics().workers[0].dispatchers
            most = (trio.current_time() - began) / PACE + BURST
            stop.set()

    assert job.output == "meanwhile"
    assert after.woken_by_notify - before.woken_by_notify > 3 * most  # it was a flood
    assert after.claims - before.claims <= most
    assert 0 < reads.count("queues") <= most
    assert 0 < reads.count("schedules") <= most


def count_reads(boss, monkeypatch):
    """What the services of a boss read because somebody said so."""
    reads = []
    ports = boss._runtime.ports
    kind = type(ports)
    get_queues, read_schedules = kind.get_queues, kind.read_schedules

    def counting(name, read):
        async def counted(self):
            reads.append(name)
            return await read(self)

        return counted

    monkeypatch.setattr(kind, "get_queues", counting("queues", get_queues))
    monkeypatch.setattr(kind, "read_schedules", counting("schedules", read_schedules))
    return reads
