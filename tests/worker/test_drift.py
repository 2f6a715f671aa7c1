"""The doctor compares the schema with what the migrations make, and each statement that it advises repairs it."""

import json

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from trioboss.cli import main
from trioboss.sql.parts import split_statements


@pytest.fixture
def drift(run):
    """The findings about drift, as text and advice."""

    def find(**options):
        findings = json.loads(run("doctor", "--json", **options)[1])
        return [(each["text"], each["advice"]) for each in findings if each["check"] == "drift"]

    return find


FINE = [("the schema is what the migrations make", "")]

CHANGES = {
    "index": ("drop index trioboss.live_job_ready", "index live_job_ready of live_job is missing"),
    "changed index": (
        "drop index trioboss.archive_id; create index archive_id on trioboss.archive (queue)",
        "index archive_id of archive was changed",
    ),
    "trigger": (
        "drop trigger queues_changed on trioboss.queue",
        "trigger queues_changed of queue is missing",
    ),
    "disabled trigger": (
        "alter table trioboss.queue disable trigger renew_revision",
        "trigger renew_revision of queue was changed",
    ),
    "function": (
        "create or replace function trioboss.make_id() returns uuid language sql as 'select gen_random_uuid()'",
        "function make_id() was changed",
    ),
    "column": ("alter table trioboss.tick drop column fired_on", "column fired_on of tick is missing"),
    "default": ("alter table trioboss.queue alter paused drop default", "column paused of queue was changed"),
    "type": ("alter table trioboss.load alter staged type int", "column staged of load was changed"),
    "not null": ("alter table trioboss.load alter staged drop not null", "column staged of load was changed"),
    "constraint": (
        "alter table trioboss.schedule drop constraint schedule_missed_check",
        "constraint schedule_missed_check of schedule is missing",
    ),
    "table": ("drop table trioboss.subscription", "table subscription is missing"),
    "another's trigger": (
        "create trigger mine after insert on trioboss.queue execute function trioboss.notify_queues_changed()",
        "trigger mine of queue is not one of trioboss: it runs in every statement",
    ),
    "rights": (
        "grant select on trioboss.live_job to public",
        "everybody has SELECT on table live_job",
    ),
    "rights on functions": (
        "grant execute on function trioboss.drop_day(text, date) to public",
        "everybody has EXECUTE on function drop_day(history text, day date)",
    ),
}


@pytest.mark.parametrize(("change", "finding"), CHANGES.values(), ids=CHANGES)
def test_a_difference_is_found_and_its_advice_repairs_it(drift, dsn, change, finding):
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(change)

        found = drift()
        assert finding in [text for text, _ in found]

        owner.execute("set search_path = trioboss")
        for _, advice in found:
            owner.execute(advice)
    assert drift() == FINE


def test_a_schema_in_use_with_tables_of_its_own_has_not_drifted(drift, sync_boss):
    sync_boss.create_queue("q", partition=True)
    sync_boss.send("q")

    assert drift() == FINE


def test_another_schema_is_compared_as_well(run, dsn):
    run("migrate", "--schema", "Other_Jobs")
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute('drop index "Other_Jobs".throttle_until')

    findings = json.loads(run("doctor", "--json", "--schema", "Other_Jobs")[1])
    (found,) = [each for each in findings if each["check"] == "drift"]
    assert found["advice"] == 'CREATE INDEX throttle_until ON "Other_Jobs".throttle (until);'


def test_nothing_is_left_behind(drift, dsn):
    drift()

    with psycopg.connect(dsn) as conn:
        left = conn.execute(
            "select nspname from pg_namespace where nspname like 'trioboss_doctor%'"
        ).fetchall()
    assert left == []


# -- roles


@pytest.fixture(scope="module")
def role(server_dsn):
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        owner.execute("create role drift_worker login")
        yield "drift_worker"
        owner.execute("drop role drift_worker")


@pytest.fixture
def granted_dsn(dsn, role, capsys):
    assert main(["grants", "--dsn", dsn, "--apply", "--worker", role]) == 0
    capsys.readouterr()
    return dsn


def test_rights_that_a_role_lacks_are_found_with_the_command_that_grants_them(drift, granted_dsn, role):
    assert drift(dsn=granted_dsn) == FINE
    with psycopg.connect(granted_dsn, autocommit=True) as owner:
        owner.execute(f"revoke delete on trioboss.live_job from {role}")

    assert drift(dsn=granted_dsn) == [
        (f"role {role!r}, a worker, lacks DELETE on live_job", f"trioboss grants --worker {role!r} --apply")
    ]


def test_a_role_that_may_not_create_a_schema_is_told_who_may(drift, granted_dsn, role):
    assert drift(dsn=make_conninfo(granted_dsn, user=role)) == [
        (
            "not compared with the migrations: this role may not create the schema to compare with",
            "run doctor as the owner of the database",
        )
    ]


def test_a_script_is_split_into_its_statements():
    script = "-- one; two\nselect ';' -- three;\n;\ndo $$ begin; end $$;\n\n-- last\n"

    assert list(split_statements(script)) == ["select ';' -- three;", "do $$ begin; end $$"]
