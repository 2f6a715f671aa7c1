"""Seed 003, lines 260 to 450: how pg-boss 10 is opened and stopped."""

from datetime import timedelta

import psycopg
import pytest
import trio
from conformance_rows import row

import trioboss


@row("003:269")
def test_ssl_in_a_connection_string_is_refused_with_the_right_name():
    with pytest.raises(trioboss.UsageError, match="sslmode"), trioboss.SyncBoss("postgres://h/d?ssl=require"):
        pass


@row("003:278", "003:298")
def test_connection_parameters_are_options(shared_dsn):
    with trioboss.SyncBoss(shared_dsn, migrate=False) as boss, boss.transaction() as conn:
        assert conn.execute("show application_name").fetchone() == ("trioboss",)
    with (
        trioboss.SyncBoss(shared_dsn, migrate=False, application_name="mine") as boss,
        boss.transaction() as conn,
    ):
        assert conn.execute("show application_name").fetchone() == ("mine",)
    parameters = psycopg.conninfo.conninfo_to_dict(shared_dsn)
    assert parameters.keys() >= {"host", "port", "user", "dbname"}
    with trioboss.SyncBoss(migrate=False, **parameters) as boss:
        assert boss.is_installed()
    with pytest.raises(TypeError, match="dbname"):
        trioboss.SyncBoss(host="x", database="y")


@row("003:327", "003:794", "003:873", "004:603b")
async def test_intervals_that_do_not_exist_are_refused_with_the_reason(shared_dsn, make):
    refused = {
        "archiveCompletedAfterSeconds": "jobs that have ended are archived at once",
        "clockMonitorIntervalSeconds": "schedules go by the clock of the database",
        "clockMonitoringInterval": "schedules go by the clock of the database",
    }
    for name, reason in refused.items():
        with pytest.raises(TypeError, match=f"^open_boss: unexpected option '{name}'.* not needed: {reason}"):
            async with trioboss.open_boss(shared_dsn, **{name: 30}):
                pass

    async def handle(job):
        pass

    with pytest.raises(TypeError, match=r"'pollingIntervalSeconds'.* not needed: a notification wakes"):
        async with trioboss.open_boss(shared_dsn, migrate=False, supervise=False, schedule=False) as boss:
            await boss.work(make(), handle, pollingIntervalSeconds=2)


@row("003:294")
def test_the_program_has_a_pool_and_the_boss_another(seen):
    assert [pool.size for pool in seen.values["pools"]] == [10, 4]


@row("003:300", "003:527")
def test_a_connection_of_the_caller_commits_or_rolls_back(b, make, shared_sql):
    q = make()
    with shared_sql.transaction():
        b.send(q, "kept", conn=shared_sql)
    with shared_sql.transaction(force_rollback=True):
        b.send(q, "lost", conn=shared_sql)

    assert [job.data for job in b.find_jobs(q)] == ["kept"]


@row("003:302", "003:354", "003:358", "003:873b", "004:603", "003:409", "003:428")
async def test_a_boss_opens_connections_as_it_is_told_and_does_no_more_than_it_is_told(shared_dsn, b, make):
    opened = []

    async def connect(conninfo, **arguments):
        opened.append(conninfo)
        return await trioboss.Connection.connect(conninfo, **arguments)

    q = make()
    options = {"migrate": False, "supervise": False, "schedule": False}
    async with trioboss.open_boss(shared_dsn, connect=connect, **options) as boss:
        statistics = boss.statistics()
        await boss.send(q)

    assert (statistics.maintenance, statistics.scheduler) == (None, None)
    assert opened
    assert len(b.find_jobs(q)) == 1


@row("003:316")
def test_the_name_of_a_schema():
    assert trioboss.SyncBoss("host=x").schema == "trioboss"
    trioboss.SyncBoss("host=x", schema="a" * 50)
    for bad in ("a" * 51, "a-b", "1a", ""):
        with pytest.raises(ValueError, match="schema"):
            trioboss.SyncBoss("host=x", schema=bad)


@row("003:339", "003:343", "003:394", "003:443", "003:370", "003:471", "004:284")
async def test_times_are_seconds_or_timedeltas_and_queues_have_defaults(shared_dsn, make):
    with pytest.raises(trioboss.UsageError, match="monitor_interval"):
        async with trioboss.open_boss(shared_dsn, monitor_interval=0.5):
            pass
    minute = timedelta(minutes=1)
    options = {"maintenance_interval": minute, "prune_interval": minute, "grace": timedelta(0)}
    defaults = {"delete_after": timedelta(days=3), "retry_limit": 0, "retention": timedelta(days=30)}
    async with trioboss.open_boss(
        shared_dsn, migrate=False, monitor_interval=minute, defaults=defaults, **options
    ) as boss:
        await boss.create_queue("with-defaults")
        queue = await boss.get_queue("with-defaults")
        with pytest.raises(TypeError):
            boss.stop(timeout=5)

    assert (queue.delete_after, queue.retry_limit, queue.retention) == (3 * 86400, 0, 30 * 86400)


@row("003:439")
async def test_a_boss_without_grace_gives_running_jobs_back_at_once(shared_dsn, b, make):
    q = make()
    started = trio.Event()

    async def handle(job):
        started.set()
        await trio.sleep_forever()

    id = b.send(q)
    with trio.fail_after(60):
        async with trioboss.open_boss(shared_dsn, migrate=False, supervise=False, grace=0) as boss:
            await boss.work(q, handle)
            await started.wait()

    job = b.get_job_by_id(q, id)
    assert (job.state, job.retry_count) == ("retry", 0)


@row("003:430", "003:430b", "004:314")
def test_a_stop_returns_at_once_and_waits_for_running_jobs(seen):
    completed = {event.id for event in seen.events if isinstance(event, trioboss.JobCompleted)}

    assert seen.values["stop returned"]
    assert seen.values["last"] in completed
    assert seen.values["ended"]
