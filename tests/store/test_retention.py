"""Retention: jobs are deleted when they waited too long or ended long enough ago, one by one or with their day."""

from datetime import timedelta

import pytest
from psycopg import sql
from store_helpers import fail_for_good, take

import trioboss
from trioboss.store import retention

HOUR = 3600
DAY = 24 * HOUR


async def end(boss, **options):
    """Send a job and complete it; return its id."""
    id = await boss.send("q", **options)
    await boss.complete("q", await take(boss, "q"))
    return id


async def prune(boss):
    await boss._execute(boss._store.retention.prune())


def count(database, table):
    query = sql.SQL("select count(*) from trioboss.{}").format(sql.Identifier(table))
    return database.execute(query).fetchone()[0]


def day_tables(database):
    """The tables of the first days of 2030, which are not made unless a test makes them."""
    found = database.execute(
        r"select relname from pg_class where relkind = 'r' and relname ~ '_(2029|2030)\d{4}$' order by 1"
    )
    return [name for (name,) in found]


@pytest.fixture(params=["own table", "default table"])
def days(request, database):
    """The days from noon of which the clock starts have tables of their own, or their rows are in the default table."""
    if request.param == "own table":
        database.execute("select trioboss.add_days('2030-01-01', 20)")
    yield request.param
    for table in day_tables(database):
        database.execute(sql.SQL("drop table trioboss.{}").format(sql.Identifier(table)))


@pytest.fixture
async def q(boss):
    """A boss with a queue `q`."""
    await boss.create_queue("q")
    return boss


# -- ended jobs


async def test_an_ended_job_is_deleted_after_its_delete_after_and_others_of_its_day_stay(q, clock, days):
    short, long = await end(q, delete_after=60), await end(q, delete_after=HOUR)
    clock.advance(61)
    await prune(q)

    assert await q.get_job_by_id("q", short) is None
    assert (await q.get_job_by_id("q", long)).state == "completed"


async def test_an_ended_job_is_kept_for_its_delete_after(q, clock, days):
    id = await end(q, delete_after=60)
    clock.advance(59)
    await prune(q)

    assert (await q.get_job_by_id("q", id)).state == "completed"


async def test_a_delete_after_of_zero_keeps_a_job_for_ever(q, clock, days):
    id, other = await end(q, delete_after=0), await end(q)
    clock.advance(timedelta(days=15).total_seconds())
    await prune(q)

    assert (await q.get_job_by_id("q", id)).state == "completed"
    assert await q.get_job_by_id("q", other) is None


async def test_a_delete_after_of_less_than_a_day_is_honoured_within_the_day(boss, clock, days):
    await boss.create_queue("q", delete_after=HOUR)
    old = await end(boss)
    clock.advance(HOUR - 10)
    young = await end(boss)
    clock.advance(11)
    await prune(boss)

    assert await boss.get_job_by_id("q", old) is None
    assert (await boss.get_job_by_id("q", young)).state == "completed"


async def test_a_longer_delete_after_is_honoured_by_whole_days(boss, clock, database, days):
    await boss.create_queue("q", delete_after=DAY)
    id = await end(boss)  # at noon
    await fail_for_good(boss, "q")
    clock.advance(1.5 * DAY - 1)  # a second before the end of the next day
    await prune(boss)
    assert (await boss.get_job_by_id("q", id)).state == "completed"

    clock.advance(2)
    await prune(boss)
    assert await boss.get_job_by_id("q", id) is None
    assert count(database, "archive") == count(database, "attempt") == 0
    assert not {"archive_20300101", "attempt_20300101"} & set(day_tables(database))


async def test_a_change_of_delete_after_applies_to_jobs_that_have_ended(q, clock, days):
    id = await end(q)
    await q.update_queue("q", delete_after=60)
    clock.advance(61)
    await prune(q)

    assert await q.get_job_by_id("q", id) is None


async def test_ended_jobs_of_a_deleted_queue_are_kept_as_long_as_by_default(q, clock, days):
    id = await end(q)
    await q.delete_queue("q")
    clock.advance(7 * DAY)
    await prune(q)
    assert (await q.get_job_by_id("q", id)).state == "completed"

    clock.advance(DAY)
    await prune(q)
    with pytest.raises(trioboss.UnknownQueue):  # no queue, and no job of it
        await q.get_job_by_id("q", id)


async def test_many_ended_jobs_are_deleted_in_chunks(q, clock, database, monkeypatch, days):
    monkeypatch.setattr(retention, "_CHUNK", 7)
    await q.insert("q", [{"delete_after": 60 + number % 2 * HOUR} for number in range(50)])
    await q.complete("q", await q.fetch("q", batch_size=50))
    clock.advance(61)
    await prune(q)

    assert count(database, "archive") == 25


async def test_a_job_that_ended_on_a_day_of_long_ago_is_deleted(q, clock, database):
    id = await end(q, delete_after=60)
    moved = "update trioboss.archive set completed_on = '2001-01-01Z' returning tableoid::regclass::text"
    assert database.execute(moved).fetchone() == ("trioboss.archive_default",)
    await prune(q)

    assert await q.get_job_by_id("q", id) is None


@pytest.mark.parametrize("holds", [True, False])
async def test_jobs_that_a_lake_which_holds_history_does_not_have_are_kept(q, clock, database, days, holds):
    id = await end(q, delete_after=60)
    exported = (
        "insert into trioboss.lake (id, address, token, batch, exported, holds)"
        " values (gen_random_uuid(), 'file:///lake', 1, 1, '3', %s)"
    )
    database.execute(exported, [holds])
    clock.advance(10 * DAY)
    try:
        await prune(q)
        assert (await q.get_job_by_id("q", id) is not None) == holds

        database.execute("update trioboss.lake set exported = pg_snapshot_xmax(pg_current_snapshot())")
        await prune(q)
        assert await q.get_job_by_id("q", id) is None
    finally:
        database.execute("delete from trioboss.lake")


async def test_a_day_that_somebody_reads_is_kept(q, clock, database, days):
    id = await end(q, delete_after=60)
    clock.advance(10 * DAY)
    try:
        database.execute(
            "select trioboss.register_read(gen_random_uuid(), 'archive', '2030-01-01', '2030-01-01', 60, null)"
        )
        await prune(q)
        assert (await q.get_job_by_id("q", id)).state == "completed"
    finally:
        database.execute("delete from trioboss.reader")

    await prune(q)
    assert await q.get_job_by_id("q", id) is None


# -- queued jobs


@pytest.mark.parametrize("partition", [False, True])
async def test_a_job_that_waited_for_longer_than_its_retention_is_deleted(
    boss, clock, database, monkeypatch, partition
):
    monkeypatch.setattr(retention, "_PAGES", 3)
    await boss.create_queue("q", partition=partition)
    await boss.insert(
        "q", [{"data": "x" * 500, "retention": 60 + number % 2 * HOUR} for number in range(500)]
    )
    clock.advance(61)
    await prune(boss)

    assert count(database, "job") == 250


async def test_jobs_that_wait_behind_a_blocked_key_outlive_their_retention(boss, clock):
    await boss.create_queue("f", policy="key_strict_fifo", retry_limit=0)
    blocked = [await boss.send("f", n, singleton_key="blocked", retention=60) for n in range(3)]
    await boss.fail("f", await boss.fetch("f"), "no")
    for n in range(3):
        await boss.send("f", n, singleton_key="free", retention=60)
    clock.advance(61)
    await prune(boss)

    assert [job.id for job in await boss.find_jobs("f")] == blocked


async def test_a_table_that_is_dropped_with_its_queue_meanwhile_does_not_stop_the_pruning(
    q, clock, monkeypatch
):
    await q.send("q", retention=60)
    monkeypatch.setattr(
        retention.RetentionOperations, "_count_pages", lambda operations, table: _dropped_and_common()
    )
    clock.advance(61)
    await q._execute(q._store.retention._purge_queued())

    assert await q.find_jobs("q") == []


def _dropped_and_common():
    yield from ()
    return [("j" + "0" * 32, 1), ("live_job_common", 1)]
