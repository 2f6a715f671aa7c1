"""The ledger of ticks: the boss that writes a tick fires it, and no other boss does."""

from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest
import trio
from store_helpers import open_quiet_boss, take_all, until_blocked

from trioboss.postgres.executor import execute_in


@pytest.fixture
async def schedule(boss, clock):
    """A schedule made at 12:00:00."""
    await boss.create_queue("q")
    await boss.schedule("q", "* * * * *", "ticked")
    (schedule,) = await boss.get_schedules()
    return schedule


async def fire(boss, schedule, due):
    """Fire a tick as the scheduler does; return whether this call fired it."""
    async with boss.transaction() as conn:
        ours, _, _ = await execute_in(conn, boss._store.schedules.fire(schedule, due, uuid4()), boss._pool)
    return ours


async def test_a_tick_fires_once(boss, clock, schedule):
    due = clock.now + timedelta(minutes=1)
    clock.advance(60)

    assert [await fire(boss, schedule, due), await fire(boss, schedule, due)] == [True, False]
    assert await take_all(boss, "q") == ["ticked"]


async def test_twenty_bosses_at_once_fire_a_tick_once(boss, dsn, clock, schedule):
    due = clock.now + timedelta(minutes=1)
    clock.advance(60)
    fired = []

    async def fire_too(other):
        fired.append(await fire(other, schedule, due))

    async with open_quiet_boss(dsn, pool_size=20) as other, trio.open_nursery() as nursery:
        other._store.context.now = clock.now
        for _ in range(20):
            nursery.start_soon(fire_too, other)

    assert sorted(fired) == [False] * 19 + [True]
    assert await take_all(boss, "q") == ["ticked"]


async def test_a_tick_of_a_schedule_that_is_being_deleted_waits_and_is_not_fired(
    boss, dsn, clock, schedule, database
):
    due = clock.now + timedelta(minutes=1)
    clock.advance(60)
    fired = []

    async def fire_it():
        fired.append(await fire(boss, schedule, due))

    with psycopg.connect(dsn) as deleting:
        deleting.execute("delete from trioboss.schedule")
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fire_it)
                await until_blocked(database)
                deleting.commit()

    assert fired == [False]


async def test_a_boss_whose_clock_is_fast_fires_nothing_too_early(boss, clock, schedule):
    assert not await fire(boss, schedule, clock.now + timedelta(minutes=1))
    assert await take_all(boss, "q") == []


async def test_a_schedule_made_half_a_minute_past_does_not_fire_for_the_minute(boss, clock, schedule):
    clock.advance(30)
    await boss.schedule("q", "* * * * *", "late", key="late")
    (late,) = [found for found in await boss.get_schedules() if found.key == "late"]

    assert not await fire(boss, late, clock.now - timedelta(seconds=30))


async def test_a_tick_whose_job_cannot_be_sent_is_not_in_the_ledger(boss, database, clock, schedule):
    due = clock.now + timedelta(minutes=1)
    clock.advance(60)
    database.execute("alter table trioboss.live_job_common add constraint closed check (false) not valid")
    try:
        with pytest.raises(Exception, match="closed"):
            await fire(boss, schedule, due)
    finally:
        database.execute("alter table trioboss.live_job_common drop constraint closed")

    assert await fire(boss, schedule, due)
