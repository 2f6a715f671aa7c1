"""The rights of a program that never changes the schema: it needs these, and no others."""

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.sql import Catalog, plans
from trioboss.testing import temporary_database

# To be given by the owner of the schema, who ran the migrations. A table that a function of the owner makes for a queue
# or a load has the rights of its model.
GRANTS = {
    "schema": "GRANT USAGE ON SCHEMA trioboss TO app",
    "version": "GRANT SELECT ON trioboss.version TO app",
    "tables": (
        "GRANT SELECT, INSERT, UPDATE, DELETE ON trioboss.queue, trioboss.live_job, trioboss.live_job_common,"
        " trioboss.archive, trioboss.archive_default, trioboss.attempt_default,"
        " trioboss.attempt, trioboss.backlog_check, trioboss.throttle, trioboss.staging, trioboss.schedule,"
        " trioboss.tick, trioboss.subscription, trioboss.idle_dispatcher, trioboss.completion_waiter, trioboss.worker,"
        " trioboss.leader, trioboss.lake, trioboss.deleted_history, trioboss.reader, trioboss.queue_sample,"
        " trioboss.sampling, trioboss.warning, trioboss.audit, trioboss.deployment TO app; GRANT EXECUTE ON FUNCTION"
        " trioboss.add_counts(integer[], integer[]) TO app"
    ),
    "views": "GRANT SELECT ON trioboss.all_jobs, trioboss.job TO app; GRANT INSERT ON trioboss.job TO app",
    "seed": "GRANT SELECT ON trioboss.lock_seed TO app",
    "sequences": "GRANT USAGE ON SEQUENCE trioboss.job_seq, trioboss.queue_revision TO app",
    "leadership": "GRANT EXECUTE ON FUNCTION trioboss.lead(uuid, double precision, boolean) TO app",
    "locks": (
        "GRANT EXECUTE ON FUNCTION trioboss.lock_number(text, bigint), trioboss.notify(text),"
        " trioboss.key_lock(text, text, bigint) TO app"
    ),
    "rules": (
        "GRANT EXECUTE ON FUNCTION trioboss.check_job_options(jsonb), trioboss.check_job_notes(jsonb),"
        " trioboss.make_id(),"
        " trioboss.find_problem(jsonb, jsonb, jsonb, timestamptz, double precision, timestamptz, timestamptz),"
        " trioboss.text_size(jsonb), trioboss.readable(jsonb),"
        " trioboss.answer_size(integer, jsonb, jsonb, jsonb),"
        " trioboss.take_throttle_slot(text, text, trioboss.seconds, boolean, timestamptz, uuid),"
        " trioboss.return_throttle_slot(text, timestamptz, uuid),"
        " trioboss.queued_readiness(timestamptz, timestamptz, text), trioboss.queued_slot(text, text, integer),"
        " trioboss.key_backlog(boolean, text), trioboss.backlog_rank(text, integer), trioboss.kept_owner(text, text),"
        " trioboss.first_fitting(tid[], integer[], bigint), trioboss.retry_delay("
        "double precision, boolean, double precision, double precision, double precision, integer, double precision),"
        " trioboss.completion_of(uuid, text, jsonb, text, jsonb, timestamptz, timestamptz, timestamptz, integer) TO app"
    ),
    "ids": "GRANT EXECUTE ON FUNCTION trioboss.drop_if_ended(text, uuid[]), trioboss.drop_sent(text, uuid[]) TO app",
    "own tables": (
        "GRANT EXECUTE ON FUNCTION trioboss.add_job_table(text, text), trioboss.drop_job_table(text),"
        " trioboss.set_up_queue(text, text), trioboss.delete_queue(text) TO app"
    ),
    "days": (
        "GRANT EXECUTE ON FUNCTION trioboss.add_days(date, integer), trioboss.drop_day(text, date) TO app"
    ),
    "clear_storage": (
        "GRANT TRUNCATE ON trioboss.live_job, trioboss.archive, trioboss.attempt, trioboss.backlog_check,"
        " trioboss.throttle, trioboss.staging TO app"
    ),
    "pipeline": (
        "GRANT SELECT, INSERT, UPDATE, DELETE ON trioboss.load, trioboss.rejected, trioboss.stage, trioboss.stage_row,"
        " trioboss.history_audit TO app;"
        "GRANT EXECUTE ON FUNCTION trioboss.add_stage(text, text), trioboss.drop_stage(text),"
        " trioboss.gather_stage(text, text, bigint),"
        " trioboss.register_read(uuid, text, date, date, double precision, pg_snapshot) TO app"
    ),
}


@pytest.fixture(scope="module")
def app_role(server_dsn):
    """A role that may log in and nothing else, for all databases of this file."""
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute("create role app login")
        yield "app"
        connection.execute("drop role app")


@pytest.fixture
def owned_dsn(server_dsn, template, app_role):
    """The dsn, for the owner, of a migrated database."""
    with temporary_database(server_dsn, template) as dsn:
        yield dsn


def grant(owned_dsn, *left_out):
    """Give the role all rights but some; return the dsn for it."""
    with psycopg.connect(owned_dsn, autocommit=True) as owner:
        for name, statement in GRANTS.items():
            if name not in left_out:
                owner.execute(statement)
    return make_conninfo(owned_dsn, user="app")


def use_every_operation(boss):
    """Everything that a program can do with a boss that never changes the schema."""
    boss.create_queue("dead")
    for partition in (False, True):
        boss.create_queue(
            "q", policy="key_strict_fifo", partition=partition, dead_letter="dead", retry_limit=0
        )
        boss.create_queue("plain", partition=partition)
        boss.update_queue("q", expire_in=60)
        boss.pause("q")
        boss.resume_queue("q")
        id = boss.send("q", 1, singleton_key="k")
        boss.send_throttled("q", 2, 60, "k")
        boss.send_once("plain", 3, "k")
        boss.insert("plain", [{}, {"id": id}])
        boss.insert("q", [{"singleton_key": "k"}])
        boss.subscribe("event", "plain")
        boss.publish("event")
        boss.touch("q", boss.fetch("q"))
        boss.fail("q", id)
        boss.retry("q", id)
        boss.complete("q", boss.fetch("q"))
        boss.fetch_completed("q")
        boss.cancel("plain", id)
        boss.resume("plain", id)
        boss.find_jobs("q")
        boss.why("plain", id)
        boss.get_queue_stats("q")
        boss.get_queue_size("q")
        boss.get_blocked_keys("q")
        boss.delete_job("plain", id)
        boss.delete_all_jobs()
        boss.unsubscribe("event", "plain")
        boss.delete_queue("q")
        boss.delete_queue("plain")


def test_with_these_rights_every_operation_works(owned_dsn):
    dsn = grant(owned_dsn)

    with trioboss.SyncBoss(dsn, migrate=False) as boss:
        use_every_operation(boss)
    with trioboss.SyncBoss(dsn):  # there is nothing to migrate
        pass


async def test_with_these_rights_a_whole_boss_works(owned_dsn):
    async with trioboss.open_boss(grant(owned_dsn), migrate=False) as boss:
        await boss.create_queue("q")
        await boss.schedule("q", "0 0 1 1 *")
        await boss.unschedule("q")

        async def handler(job):
            return job.data + 1

        await boss.work("q", handler)
        id = await boss.send("q", 1)
        job = await boss.wait_for("q", id, timeout=60)

        assert job.output == 2
        await boss.clear_storage()


UTILITIES = {
    "copy_jobs",
    "copy_staging",
    "clear_storage",
    "listen",
}  # cannot be explained, and are used above
STATEMENTS = sorted(
    {path.stem for path in Path(plans.__file__).with_name("statements").glob("*.sql")} - UTILITIES
)


def test_with_these_rights_every_statement_may_run(owned_dsn):
    """The server plans a statement only for a role that may run it."""
    catalog = Catalog("trioboss")
    refused = []
    with psycopg.connect(grant(owned_dsn), autocommit=True) as app:
        if app.info.server_version < 160000:
            pytest.skip("a plan without values takes Postgres 16")
        for name in STATEMENTS:
            try:
                app.execute("explain (generic_plan) " + catalog.get(name).text)
            except psycopg.errors.InsufficientPrivilege as refusal:
                refused.append(f"{name}: {refusal.diag.message_primary}")

    assert refused == []


@pytest.mark.parametrize(
    "name",
    ["schema", "version", "tables", "views", "seed", "sequences", "locks", "rules", "ids", "own tables"],
)
def test_each_of_these_rights_is_needed(owned_dsn, name):
    dsn = grant(owned_dsn, name)

    with (
        pytest.raises(trioboss.StatementFailed, match="denied"),
        trioboss.SyncBoss(dsn, migrate=False) as boss,
    ):
        use_every_operation(boss)


def test_a_role_may_do_nothing_that_is_not_granted(owned_dsn):
    dsn = grant(owned_dsn, "clear_storage", "days")

    with psycopg.connect(dsn, autocommit=True) as app:
        for statement in (
            "create table trioboss.mine (x int)",
            "drop table trioboss.live_job",
            "alter table trioboss.live_job add x int",
            "insert into trioboss.version values (99)",
            "truncate trioboss.archive",
            "select trioboss.add_days(current_date, 1)",
            "select trioboss.add_backlog_check()",
            "select trioboss.fill_in_job()",
            "select trioboss.copy_rights('trioboss.queue', 'trioboss.queue')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute(statement)


def test_a_role_without_rights_can_do_nothing(owned_dsn):
    with psycopg.connect(make_conninfo(owned_dsn, user="app"), autocommit=True) as app:
        for statement in (
            "select * from trioboss.job",
            "select * from trioboss.live_job",
            "select trioboss.key_lock('a', 'b', 1)",
            "select trioboss.make_id()",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute(statement)


def test_no_function_that_acts_for_the_owner_uses_the_callers_objects(owned_dsn):
    """A search_path without pg_temp at its end lets a caller's temporary table take the place of ours."""
    with psycopg.connect(owned_dsn) as owner:
        functions = owner.execute(
            "select proname, prosecdef, array_to_string(proconfig, ' ') from pg_proc "
            "where pronamespace = 'trioboss'::regnamespace"
        ).fetchall()

    assert any(definer for _, definer, _ in functions)
    for name, definer, config in functions:
        if definer:
            assert "search_path=pg_catalog, pg_temp" in config, name


@pytest.mark.parametrize(
    "call",
    [
        "trioboss.add_job_table('q', 'queue')",
        "trioboss.add_job_table('q', 'j1; drop table trioboss.live_job')",
        "trioboss.drop_job_table('live_job')",
        "trioboss.drop_job_table('live_job_common')",
        "trioboss.drop_day('queue', current_date)",
        "trioboss.add_stage('load', 'queue')",
        "trioboss.drop_stage('live_job')",
    ],
)
def test_functions_that_act_for_the_owner_touch_nothing_but_what_they_are_for(owned_dsn, call):
    dsn = grant(owned_dsn)

    with (
        psycopg.connect(dsn) as app,
        pytest.raises(
            psycopg.errors.InvalidParameterValue, match=r"is not a (table of one queue|history table|stage)"
        ),
    ):
        app.execute(f"select {call}")
