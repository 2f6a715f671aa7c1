"""Maintenance on demand, and leases that nobody but a caller knows of."""

import math

import psycopg
import pytest
import trio
import trio.testing
from store_helpers import receive_all

import trioboss
from trioboss.events import JobsRecovered, QueueWarning
from trioboss.testing import record, temporary_database


async def fetch_by(how, boss, dsn, queue):
    """Fetch a job with the boss that leads, in a transaction of its own, or with a boss of another kind."""
    if how == "SyncBoss":
        return await trio.to_thread.run_sync(fetch_blocking, dsn, queue)
    if how == "transaction":
        async with boss.transaction() as conn:
            return await boss.fetch(queue, conn=conn)
    return await boss.fetch(queue)


def fetch_blocking(dsn, queue):
    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        return boss.fetch(queue)


async def test_a_lease_that_was_taken_manually_ends_in_time_on_an_idle_boss(server_dsn, template):
    """The leader has a round a minute while nobody works: it is told of each lease, whoever took it."""
    # Each for itself: a notification of one lease would make the leader find the others, too.
    with trio.fail_after(50):  # less than the minute of a round
        async with trio.open_nursery() as nursery:
            for options, how in (
                ({"expire_in": 0.3}, "transaction"),
                ({"expire_in": 0.3}, "SyncBoss"),
                ({"heartbeat": 1}, "boss"),
                ({"heartbeat": 1}, "SyncBoss"),
            ):
                nursery.start_soon(recover_lease, server_dsn, template, options, how)


async def recover_lease(server_dsn, template, options, how):
    """Take a job of a queue with these options, and wait until an idle leader has ended the lease."""
    with temporary_database(server_dsn, template) as dsn:
        async with trioboss.open_boss(dsn, migrate=False) as boss, record(boss.events()) as recorder:
            await boss.create_queue("q", **options)
            await boss.wait_listening()
            while not boss.statistics().maintenance.leads:  # noqa: ASYNC110  # its event may have been before
                await trio.sleep(0.05)
            await trio.testing.wait_all_tasks_blocked(0.2)
            # As a quarter of a minute after the opening: until then the leader looks for work by itself.
            machine = boss._runtime.maintenance._machine
            machine._busy_until, machine._prune_at = -math.inf, trio.current_time() + 3600
            await trio.sleep(2)  # a round that is due already
            await boss.send("q")
            (job,) = await fetch_by(how, boss, dsn, "q")
            await recorder.wait_for(JobsRecovered, lambda event: job.id in event.ids)


async def test_the_leader_is_notified_of_the_first_of_many_fetches(boss, database):
    with psycopg.connect(boss.dsn, autocommit=True) as listener:
        listener.execute("listen trioboss")
        await boss.create_queue("q")
        for _ in range(3):
            await boss.send("q")
            await boss.fetch("q")
        async with boss.transaction():
            pass  # it waits for the follow-up of the last fetch
        database.execute("notify trioboss, 'so far'")

        assert receive_all(listener, "so far").count("*busy") == 1


async def test_a_queue_that_is_too_long_is_reported_within_seconds(dsn):
    with trio.fail_after(30):
        async with (
            trioboss.open_boss(dsn, migrate=False, warning_interval=0.5) as boss,
            record(boss.events()) as recorder,
        ):
            await boss.create_queue("q", warning_queue_size=3)
            await boss.insert("q", [{}] * 4)
            (warning,) = await recorder.wait_for(QueueWarning)
            assert (warning.queue, warning.warning) == ("q", "queue_size")


@pytest.mark.parametrize("queue", [None, "q"])
async def test_maintenance_on_demand_ends_leases_and_deletes_old_jobs(boss, clock, queue):
    for name in ("q", "other"):
        await boss.create_queue(name, retry_limit=0, expire_in=1, retention=60, delete_after=60)
        await boss.send(name, "expires")
        await boss.fetch(name)
        await boss.send(name, "old")
        await boss.complete(name, (await boss.fetch(name))[0])
        await boss.send(name, "stale")
    clock.advance(3)
    await boss.maintain(queue)
    assert (await boss.find_jobs("q", state="failed"))[0].data == "expires"
    assert len(await boss.find_jobs("other", state="failed")) == (queue is None)
    clock.advance(3 * 86400)
    await boss.maintain(queue)
    assert await boss.find_jobs("q") == []
    assert bool(await boss.find_jobs("other")) is (queue == "q")


async def test_maintenance_of_a_queue_that_does_not_exist_is_refused(boss):
    with pytest.raises(trioboss.UnknownQueue):
        await boss.maintain("nowhere")
