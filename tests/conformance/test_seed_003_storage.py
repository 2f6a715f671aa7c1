"""Seed 003, up to line 260: the storage, plain SQL, events and plans of pg-boss 10."""

from datetime import timedelta

import psycopg
import pytest
import trio
from conformance_rows import METADATA, row

import trioboss
from trioboss import JobState, events
from trioboss.sql.plans import LATEST

# The columns of the view are those fields; only the queue has another name there.
COLUMNS = {"name" if field == "queue" else field for field in METADATA}


@row("003:65", "003:71", "003:67b", "004:63")
def test_several_instances_run_each_job_once(seen):
    assert seen.runs["both"] == 100
    assert {type(event).__name__ for event in seen.elsewhere} >= {"JobStarted", "JobCompleted"}


@row("003:67", "003:817", "003:352", "004:437")
def test_a_job_that_is_never_completed_expires(seen):
    assert seen.values["forgotten"].state == "failed"
    assert [event.outcome for event in seen.of(events.JobsRecovered) if event.queue == "forgotten"] == [
        "expired"
    ]


@row("003:69", "003:146")
def test_live_jobs_are_in_tables_by_queue(b, make, sql):
    assert b.get_queue(make()).table_name == "live_job_common"
    assert sql("select pg_get_partkeydef('trioboss.live_job'::regclass)") == [("LIST (queue)",)]
    key = "select pg_get_constraintdef(oid) from pg_constraint where conname = 'live_job_pkey'"
    assert sql(key) == [("PRIMARY KEY (queue, id)",)]


@row("003:76")
def test_the_states_of_a_job():
    assert list(JobState) == ["created", "retry", "active", "completed", "cancelled", "failed"]


@row("004:69", "004:184")
def test_a_job_that_expired_has_failed_and_its_attempt_says_why(b, make, sql, advance):
    q = make(expire_in=5, retry_limit=0)
    id = b.send(q)
    b.fetch(q)
    advance(10)
    b._execute(b._store.maintenance.rescue_leases(5.0, 0.0, warnings=False, certain=False, queue=q))

    assert b.get_job_by_id(q, id).state == "failed"
    assert sql("select outcome from trioboss.attempt where job_id = %s", id) == [("expired",)]
    assert "expired" not in list(JobState)


@row("003:78", "003:325", "003:331")
def test_a_job_that_has_ended_is_in_the_archive_at_once(b, make, sql):
    q, fifo = make(retry_limit=0), make(policy="key_strict_fifo", retry_limit=0)
    b.send(q)
    b.complete(q, b.fetch(q))
    b.send(q)
    b.fail(q, b.fetch(q))
    b.send(fifo, singleton_key="k")
    b.fail(fifo, b.fetch(fifo))

    assert sql("select count(*) from trioboss.archive where queue = %s", q) == [(2,)]
    assert sql("select live from trioboss.all_jobs where name = %s", fifo) == [(True,)]  # it blocks its key


@row("003:111")
def test_queues_are_made_and_deleted_by_plain_sql(b, sql):
    sql("""select trioboss.create_queue('by-sql', '{"policy": "short", "retry_limit": 7}')""")

    assert (b.get_queue("by-sql").policy, b.get_queue("by-sql").retry_limit) == ("short", 7)
    sql("select trioboss.delete_queue('by-sql')")
    assert b.get_queue("by-sql") is None


@row("003:118", "004:119")
def test_jobs_that_plain_sql_inserts_wake_workers(seen):
    assert seen.runs["plain-sql"] == 3


@row("003:122", "003:126", "003:131")
def test_an_inserted_job_needs_a_name_and_has_the_options_of_its_queue(b, make, sql, shared_sql):
    q = make(retry_limit=5, expire_in=60)
    sql("insert into trioboss.job (name) values (%s)", q)
    cursor = shared_sql.execute("select * from trioboss.job limit 0")

    assert {column.name for column in cursor.description} >= COLUMNS
    (job,) = b.fetch(q)
    assert (job.retry_limit, job.expire_in, job.keep_until - job.start_after) == (
        5,
        60,
        timedelta(days=14),
    )


@row("003:152", "003:154", "004:151")
def test_events_are_those_of_one_instance(seen):
    here, there = (
        {event.id for event in each if isinstance(event, events.JobStarted)}
        for each in (seen.events, seen.elsewhere)
    )

    assert here
    assert there
    assert here & there == set()


@row("003:169")
def test_an_error_of_a_call_is_raised_and_no_event(seen):
    assert seen.values["refused"].queue == "nowhere"
    assert seen.of(events.ErrorEvent) == []


@row("003:173", "003:175", "003:181", "003:187", "003:199")
def test_monitor_states_counts_every_state_of_every_queue(seen):
    *before, states = seen.of(events.MonitorStates)

    assert before
    assert set(states.queues["long"]) == {*JobState, "all"} == set(states.totals)
    assert (
        states.queues["long"]["created"],
        states.queues["long"]["failed"],
        states.queues["long"]["all"],
    ) == (3, 0, 3)
    assert states.totals["all"] == sum(queue["all"] for queue in states.queues.values())


@row("003:210", "003:215", "003:217", "003:220", "003:221", "003:222", "003:225", "004:212")
def test_wip_describes_every_worker(seen):
    (worker,) = [worker for worker in seen.of(events.Wip)[-1].workers if worker.queue == "outcomes"]

    assert (worker.state, worker.count, worker.options["concurrency"]) == ("idle", 0, 4)
    assert worker.created_on <= worker.last_fetched_on
    assert worker.last_job_started_on <= worker.last_job_ended_on
    assert worker.last_job_duration >= 0
    assert worker.last_error
    assert worker.last_error_on


@row("003:233")
def test_stopped_is_the_last_event(seen):
    assert isinstance(seen.events[-1], events.Stopped)


@row("003:69b", "004:65", "003:88", "003:239", "003:246", "003:254", "003:266", "003:362", "004:81")
def test_a_schema_is_installed_by_a_boss_or_by_plans(shared_dsn):
    uri = "postgresql:///?" + "&".join(
        f"{name}={value}" for name, value in psycopg.conninfo.conninfo_to_dict(shared_dsn).items()
    )
    with (
        pytest.raises(trioboss.SchemaOutOfDate),
        trioboss.SyncBoss(uri, schema="other", migrate=False) as boss,
    ):
        boss.get_queues()
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute(trioboss.construction_plans("other"))
        with trioboss.SyncBoss(uri, schema="other", migrate=False) as boss:
            boss.create_queue("only-here")
            latest = boss.schema_version()
        with trioboss.SyncBoss(shared_dsn, migrate=False) as boss:
            assert boss.get_queue("only-here") is None
        connection.execute(trioboss.rollback_plans("other", latest, latest - 1))
        with (
            pytest.raises(trioboss.SchemaOutOfDate, match="trioboss migrate"),
            trioboss.SyncBoss(uri, schema="other", migrate=False) as boss,
        ):
            boss.get_queues()
        connection.execute(trioboss.migration_plans("other", latest - 1))
        connection.execute(trioboss.rollback_plans("other", latest, 0))
        assert connection.execute("select to_regnamespace('other')").fetchone() == (None,)


@row("003:1023", "003:1027")
def test_the_version_of_the_schema_is_read(b, shared_dsn):
    assert b.is_installed()
    assert b.schema_version() >= 6
    with trioboss.SyncBoss(shared_dsn, schema="nowhere", migrate=False) as boss:
        assert (boss.is_installed(), boss.schema_version()) == (False, None)


@row("003:82", "003:422")
async def test_instances_that_install_at_the_same_time_wait_for_each_other(shared_dsn):
    def install():
        with trioboss.SyncBoss(shared_dsn, schema="at_once") as boss:
            assert boss.schema_version() == LATEST

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(trio.to_thread.run_sync, install)
    with psycopg.connect(shared_dsn, autocommit=True) as connection:
        connection.execute("drop schema at_once cascade")
