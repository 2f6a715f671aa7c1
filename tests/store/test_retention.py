"""Retention: ended jobs go when their time has come, one by one or with their day."""

from datetime import timedelta

import pytest
from store_helpers import take

from trioboss.store import maintenance


async def end(boss, **options):
    """Send a job and complete it; return its id."""
    id = await boss.send("q", **options)
    await boss.complete("q", await take(boss, "q"))
    return id


async def tidy(boss):
    await boss._execute(boss._store.maintenance.tidy())


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


async def test_an_ended_job_goes_after_its_delete_after_and_others_of_its_day_stay(q, clock):
    short, long = await end(q, delete_after=60), await end(q, delete_after=3600)
    clock.advance(61)
    await tidy(q)

    assert await q.get_job_by_id("q", short) is None
    assert (await q.get_job_by_id("q", long)).state == "completed"


async def test_an_ended_job_stays_as_long_as_its_delete_after_lasts(q, clock):
    id = await end(q, delete_after=60)
    clock.advance(59)
    await tidy(q)

    assert (await q.get_job_by_id("q", id)).state == "completed"


async def test_a_delete_after_of_zero_is_for_ever(q, clock):
    id = await end(q, delete_after=0)
    clock.advance(timedelta(days=1).total_seconds() / 2)
    await tidy(q)

    assert (await q.get_job_by_id("q", id)).state == "completed"


async def test_history_of_many_pages_is_gone_through_to_its_end(q, clock, database, monkeypatch):
    monkeypatch.setattr(maintenance, "_PAGES", 3)
    await q.insert(
        "q", [{"data": "x" * 500, "delete_after": 60 + number % 2 * 3600} for number in range(500)]
    )
    await q.complete("q", await q.fetch("q", batch_size=500))
    assert (
        database.execute("select pg_relation_size(tableoid) from trioboss.archive").fetchone()[0] > 10 * 8192
    )
    clock.advance(61)
    await tidy(q)

    assert database.execute("select count(*) from trioboss.archive").fetchone() == (250,)


async def test_a_job_that_ended_on_a_day_without_a_table_goes_as_well(q, clock, database):
    id = await end(q, delete_after=60)
    moved = "update trioboss.archive set completed_on = '2001-01-01Z' returning tableoid::regclass::text"
    assert database.execute(moved).fetchone() == ("trioboss.archive_default",)
    await tidy(q)

    assert await q.get_job_by_id("q", id) is None


@pytest.mark.parametrize("partition", [False, True])
async def test_a_job_that_waited_for_longer_than_its_retention_goes(
    boss, clock, database, monkeypatch, partition
):
    monkeypatch.setattr(maintenance, "_PAGES", 3)
    await boss.create_queue("q", partition=partition)
    await boss.insert(
        "q", [{"data": "x" * 500, "retention": 60 + number % 2 * 3600} for number in range(500)]
    )
    clock.advance(61)
    await tidy(boss)

    assert database.execute("select count(*) from trioboss.job").fetchone() == (250,)


async def test_a_table_that_goes_with_its_queue_meanwhile_keeps_nobody_from_tidying(q, clock, monkeypatch):
    await q.send("q", retention=60)
    monkeypatch.setattr(
        maintenance.MaintenanceOperations, "_count_pages", lambda verbs, table: _gone_and_common()
    )
    clock.advance(61)
    await q._execute(q._store.maintenance._purge_queued())

    assert await q.find_jobs("q") == []


def _gone_and_common():
    yield from ()
    return [("j" + "0" * 32, 1), ("job_common", 1)]
