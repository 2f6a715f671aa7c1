"""The whole flow, run by a producer, a worker, a reader and an admin; and what each of them is refused."""

from pathlib import Path

import psycopg
import pytest
import trio
from security_helpers import ROLES, as_role, role

import trioboss
from trioboss.events import TickFired
from trioboss.postgres.blocking import execute_blocking
from trioboss.sql import Catalog, plans
from trioboss.store import Context, make_store
from trioboss.testing import record

EVERYBODY = {kind: role(kind) for kind in ROLES}


async def echo(job):
    if job.data == "bad":
        raise ValueError("bad")
    return job.data


async def test_a_job_goes_its_way_through_the_hands_of_all_roles(granted_dsn):
    with trioboss.SyncBoss(as_role(granted_dsn, "admin")) as admin:
        admin.create_queue("letters")
        admin.create_queue("q", dead_letter="letters", retry_limit=0)
        admin.create_queue("own", partition=True, policy="key_strict_fifo")
    with trio.fail_after(30):
        async with (
            trioboss.open_boss(as_role(granted_dsn, "worker")) as worker,
            trioboss.open_boss(as_role(granted_dsn, "producer")) as producer,
            trioboss.open_boss(as_role(granted_dsn, "reader")) as reader,
        ):
            for queue in ("q", "own"):
                await worker.work(queue, echo)
            sent = [
                ("q", await producer.send("q", "good", id="018f0000-0000-7000-8000-000000000001")),
                ("q", await producer.send("q", "bad")),
                ("q", await producer.send_throttled("q", "slow", 60, "k")),
                ("own", await producer.send("own", "own", singleton_key="k")),
            ]
            await producer.insert("q", [{"data": 1}, {"data": 2, "id": sent[0][1]}])
            jobs = [await reader.wait_for(queue, id) for queue, id in sent]
            dead_letters = await reader.find_jobs("letters")

    assert [job.state for job in jobs] == ["completed", "failed", "completed", "completed"]
    assert [dead_letter.source_id for dead_letter in dead_letters] == [sent[1][1]]


async def test_a_worker_fires_cron_and_leads_but_producers_and_readers_do_not(granted_dsn):
    with trioboss.SyncBoss(as_role(granted_dsn, "admin")) as admin:
        admin.create_queue("q")
    with trio.fail_after(30):
        async with (
            trioboss.open_boss(as_role(granted_dsn, "producer")) as producer,
            trioboss.open_boss(as_role(granted_dsn, "reader")) as reader,
            trioboss.open_boss(as_role(granted_dsn, "worker")) as worker,
            record(worker.events()) as recorder,
        ):
            await worker.schedule("q", "* * * * * *")
            await recorder.wait_for(TickFired)
            await worker.wait_listening()  # then it has looked, and leads if it may
            assert worker.statistics().maintenance.leads
            for boss in (producer, reader):
                assert boss.statistics().maintenance is None
                assert boss.statistics().scheduler is None


def test_a_worker_may_do_all_of_maintenance(granted_dsn):
    with psycopg.connect(granted_dsn, autocommit=True) as owner:
        owner.execute("select trioboss.add_days('2020-01-02', 0)")
    store = make_store(Context(Catalog("trioboss")))
    with psycopg.connect(as_role(granted_dsn, "worker"), autocommit=True) as worker:
        execute_blocking(worker, store.retention.prune(), worker)
        execute_blocking(worker, store.maintenance.rescue_leases(5, 1, warnings=True), worker)
        left = worker.execute("select to_regclass('trioboss.archive_20200101')").fetchone()

    assert left == (None,)


async def test_an_app_whose_queues_the_admin_made_starts_as_a_worker(granted_dsn):
    app = trioboss.App()
    app.schedule("0 0 1 1 *")(app.worker("nightly", retry_limit=5)(echo))
    with trioboss.SyncBoss(as_role(granted_dsn, "admin")) as admin:
        admin.create_queue("nightly", retry_limit=5)
    with trio.fail_after(30):
        async with trioboss.open_boss(as_role(granted_dsn, "worker"), app=app) as boss:
            schedules = await boss.get_schedules()

    assert [schedule.queue for schedule in schedules] == ["nightly"]


def test_the_admin_migrates_back_and_forth(granted_dsn):
    with psycopg.connect(as_role(granted_dsn, "admin"), autocommit=True) as admin:
        admin.execute(plans.rollback_plans().encode())
    with trioboss.SyncBoss(as_role(granted_dsn, "admin")) as boss:
        boss.create_queue("q")
    with psycopg.connect(granted_dsn) as owner:
        owners = owner.execute(
            "select relowner::regrole::text from pg_class where relnamespace = 'trioboss'::regnamespace union "
            "select typowner::regrole::text from pg_type where typnamespace = 'trioboss'::regnamespace"
        ).fetchall()

    assert owners == [(f'"{role("admin").replace(chr(34), chr(34) * 2)}"',)]


# -- what each of them may do, statement by statement

UTILITIES = {"copy_jobs", "copy_staging", "clear_storage", "listen"}  # cannot be explained
STATEMENTS = {path.stem for path in Path(plans.__file__).with_name("statements").glob("*.sql")} - UTILITIES
# Neither read nor write a table of jobs, or only what everybody may know.
HARMLESS = {
    *(
        "count_pages",
        "examine",
        "examine_notify",
        "examine_tables",
        "explain_refusal",
        "find_long_queues",
        "find_next_due",
    ),
    *(
        "find_ended_ids",
        "find_transaction",
        "get_identity",
        "get_isolation",
        "get_queues",
        "get_rights",
        "get_subscribers",
    ),
    *("get_version", "hold_presence", "is_installed", "list_history", "lock_admission", "lock_lake"),
    *("lock_lake_creation", "notify", "notify_changed", "notify_idle", "notify_leftover"),
    *("notify_queue", "poll", "prepare_release", "read_clock", "read_horizon", "read_snapshot"),
    "take_read_permit",
    *(
        "describe_rights",
        "describe_schema",
        "describe_tables",
        "get_own_tables",
        "examine_role",
        "examine_sessions",
        "get_compatible",
    ),
    *("find_long_queues", "schema_exists", "examine_rights"),
}
SENDING = {
    *("drop_if_ended", "drop_sent", "release_staged", "return_throttle_slot", "send", "send_and_notify"),
    *("send_plain", "send_throttled"),
}
READING = {
    *("add_waiter", "check_leases", "count_history", "dead_letter_users"),
    *("explain_job", "find_blocks", "find_bounds", "find_cut", "find_ended_jobs", "find_job_by_id"),
    *("find_live_jobs", "find_new", "find_newest_ended_jobs", "find_newest_live_jobs"),
    *(
        "find_long_queues",
        "find_deleted_history",
        "find_unseen_leases",
        "find_copies",
        "count_jobs_of",
        "find_warnings",
        "get_blocked_keys",
        "get_job",
    ),
    *("get_last_ticks", "get_load", "get_queue_size", "get_queue_stats", "get_rejected"),
    *("get_schedules", "list_days", "measure_queues", "measure_ticks", "notify_waiters", "register_read"),
    "remove_waiter",
    *("examine_queues", "get_attempts", "get_backlog", "get_labels", "get_workers", "observe_blocked"),
    *("observe_failures", "observe_queues", "observe_running", "preview_redrive"),
    *("get_deployments", "list_blocked_keys"),
}
# Tables that the dashboard and statistics read.
READING |= {
    *("find_empty", "find_missing_days", "find_queues_with_jobs", "get_samples", "get_warnings"),
    *("show_attempts", "show_audit"),
    *("show_backlog", "show_backlog_size", "show_dead_letter", "show_ended_jobs", "show_errors"),
    *("show_excerpts", "show_keys", "show_live_jobs", "show_pipeline"),
    *("show_queues", "show_rates", "show_schedules", "show_slowest", "show_workers"),
    *("show_events", "show_history_audits", "show_job", "show_payload", "show_worker_count", "get_end"),
    *("check_lake", "count_jobs_of", "find_copies", "list_lakes"),
}
HARMLESS |= {
    "limit_action",
    "limit_transaction",
    "find_long_queues",
    "show_committed",
    "show_queue_of_job",
    "show_rights",
}
OWNING = {
    *("erase_jobs", "show_pipeline"),
    *(
        "create_queue",
        "delete_queue",
        "pause",
        "lock_queue",
        "copy_completions",
        "update_queue",
        "label_queue",
    ),
    "record_deployment",
    # the pipeline's
    *(
        "add_stage",
        "check_stage",
        "close_load",
        "drop_ended_of_stage",
        "drop_lake",
        "erase_jobs",
        "drop_stage",
    ),
    *("gather_stage", "get_load", "get_rejected", "keep_rejected", "list_stages"),
    *(
        "lock_keys_of_stage",
        "commit_batch",
        "finish_batch",
        "replace_batch",
        "hold_lake",
        "take_lake",
        "open_load",
        "release_stage",
        "release_stage_unless_taken",
    ),
}
MAY = {
    "producer": HARMLESS | SENDING,
    "reader": HARMLESS | READING,
    "worker": STATEMENTS - OWNING,
    "admin": STATEMENTS,
}


@pytest.mark.parametrize("kind", ROLES)
def test_a_role_may_run_its_statements_and_no_others(shown_dsn, kind):
    catalog = Catalog("trioboss")
    allowed = set()
    with psycopg.connect(as_role(shown_dsn, kind), autocommit=True) as connection:
        if connection.info.server_version < 160000:
            pytest.skip("a plan without values takes Postgres 16")
        for name in STATEMENTS:
            try:
                connection.execute(b"explain (generic_plan) " + catalog.get(name).text.encode())
            except psycopg.errors.InsufficientPrivilege:
                continue
            allowed.add(name)

    assert allowed == MAY[kind] & STATEMENTS, "a new statement belongs to one of the sets above"


REFUSED = {
    "producer": [
        "select data from trioboss.job",
        "select output from trioboss.archive",
        "select * from trioboss.all_jobs",
        "update trioboss.live_job set priority = 9",
        "delete from trioboss.live_job",
        "insert into trioboss.live_job (queue, readiness, attempt) values ('q', 'active', 7)",
        "insert into trioboss.archive (queue) values ('q')",
        "select trioboss.drop_job_table('x')",
    ],
    "worker": [
        "update trioboss.queue set policy = 'standard'",
        "delete from trioboss.queue",
        "truncate trioboss.live_job",
        "update trioboss.attempt set error = null",
        "delete from trioboss.attempt",
        "insert into trioboss.version values (99)",
        "insert into trioboss.deployment values ('app', '0', 1, '{}')",
        "select trioboss.drop_job_table('x')",
        "select trioboss.copy_rights('trioboss.live_job', 'trioboss.live_job')",
    ],
    "reader": [
        "insert into trioboss.job (name) values ('q')",
        "update trioboss.live_job set priority = 9",
        "delete from trioboss.archive",
        "insert into trioboss.schedule (queue, cron) values ('q', '* * * * *')",
        "select trioboss.drop_if_ended('q', '{}')",
    ],
}
REFUSED_TO_ALL = [
    "create table trioboss.mine (x int)",
    "create function trioboss.mine() returns int language sql as 'select 1'",
    "drop table trioboss.live_job",
    "alter table trioboss.live_job disable trigger all",
]


@pytest.mark.parametrize("kind", REFUSED)
def test_a_role_is_refused_what_is_not_its_business(shown_dsn, kind):
    with psycopg.connect(as_role(shown_dsn, kind), autocommit=True) as connection:
        for statement in REFUSED[kind] + REFUSED_TO_ALL:
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)


def test_a_producer_sends_by_plain_sql(granted_dsn):
    with trioboss.SyncBoss(as_role(granted_dsn, "admin")) as admin:
        admin.create_queue("q")
    with psycopg.connect(as_role(granted_dsn, "producer"), autocommit=True) as producer:
        producer.execute("insert into trioboss.job (name, data) values ('q', '1')")
    with trioboss.SyncBoss(as_role(granted_dsn, "reader")) as reader:
        assert [job.data for job in reader.find_jobs("q")] == [1]
