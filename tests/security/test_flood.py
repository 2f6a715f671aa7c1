"""Every role that may connect may notify: a flood of notifications costs at most a claim each 5 ms, and one read of
each service each 50 ms."""

import threading

import psycopg
import trio

CLAIM_PACE, PACE = 0.005, 0.05
BURST = 12  # claims that are made at once before the pace counts

# Everything that means something to a boss, a few thousand notifications a second.
FLOOD = """
do $$ begin
    for i in 1 .. 200 loop
        perform pg_notify('trioboss', payload)
        from unnest(array['q', 'q 0.001', 'q nan', '*queues', '*schedules', '*busy', '*cancel x', '*probe x']) payload;
        commit;
        perform pg_sleep(0.002);
    end loop;
end $$
"""


def flood(dsn, stop):
    with psycopg.connect(dsn, autocommit=True) as stranger:
        while not stop.is_set():
            stranger.execute(FLOOD)


async def test_a_flood_of_forged_notifications_costs_few_claims_and_delays_nothing(boss, dsn, monkeypatch):
    reads = count_reads(boss, monkeypatch)
    stop = threading.Event()

    async def handler(job):
        return job.data

    with trio.fail_after(60):
        await boss.create_queue("q")
        worker = await boss.work("q", handler)
        (dispatcher,) = worker.dispatchers.values()
        async with trio.open_nursery() as nursery:
            reads.clear()
            began = trio.current_time()
            nursery.start_soon(trio.to_thread.run_sync, flood, dsn, stop)
            await trio.sleep(1)
            job = await boss.wait_for("q", await boss.send("q", "meanwhile"))
            statistics, counted = (
                dispatcher.statistics(),
                list(reads),
            )  # both now: the flood goes on for a while
            seconds = trio.current_time() - began
            stop.set()

    assert job.output == "meanwhile"
    most_claims, most = seconds / CLAIM_PACE + BURST, seconds / PACE + BURST
    assert statistics.woken_by_notify > most_claims  # it was a flood
    assert statistics.claims <= most_claims
    assert 0 < counted.count("queues") <= most
    assert 0 < counted.count("schedules") <= most


def count_reads(boss, monkeypatch):
    """The reads of a boss's services that notifications cause."""
    reads = []
    adapter = boss._runtime.adapter
    kind = type(adapter)
    get_queues, read_schedules = kind.get_queues, kind.read_schedules

    def counting(name, read):
        async def counted(self):
            reads.append(name)
            return await read(self)

        return counted

    monkeypatch.setattr(kind, "get_queues", counting("queues", get_queues))
    monkeypatch.setattr(kind, "read_schedules", counting("schedules", read_schedules))
    return reads
