"""The doctor compares the schema with what the migrations make, and each statement that it advises repairs it."""

import json
from datetime import UTC, datetime

import psycopg
import pytest
from drift_changes import GROUPS, OWN, ROLE
from psycopg.conninfo import make_conninfo

from trioboss.cli import main
from trioboss.sql.parts import split_statements
from trioboss.sql.plans import LATEST


@pytest.fixture
def drift(run):
    """The findings about drift, as text and advice."""

    def find(**options):
        findings = json.loads(run("doctor", "--json", **options)[1])
        return [(each["text"], each["advice"]) for each in findings if each["check"] == "drift"]

    return find


@pytest.fixture(scope="module")
def role(server_dsn):
    """A role without rights."""
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        owner.execute(f"create role {ROLE} login")
        yield ROLE
        owner.execute(f"drop role {ROLE}")


FINE = [("the schema is what the migrations make", "")]


@pytest.mark.parametrize("changes", GROUPS, ids=lambda changes: next(iter(changes)))
def test_differences_are_found_and_their_advice_repairs_them(drift, sync_boss, dsn, role, changes):
    sync_boss.create_queue("own", partition=True)
    with psycopg.connect(dsn, autocommit=True) as owner:
        for change, _ in changes.values():
            owner.execute(change)

        found = drift()
        assert {finding for _, finding in changes.values()} <= {text for text, _ in found}

        for _, advice in found:
            owner.execute(advice)
    assert drift() == FINE


@pytest.mark.parametrize(
    "loss", [f"drop table {OWN}", f"alter table trioboss.live_job detach partition {OWN}"]
)
def test_a_queue_whose_table_is_repaired_has_all_jobs_that_are_left(drift, sync_boss, dsn, loss):
    sync_boss.create_queue("own", partition=True)
    sync_boss.send("own", "before")
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(loss)
        owner.execute("insert into trioboss.job (name, data) values ('own', '\"meanwhile\"')")
        for _, advice in drift():
            owner.execute(advice)

    left = [job.data for job in sync_boss.fetch("own", batch_size=10)]
    assert left == (["meanwhile"] if "drop" in loss else ["before", "meanwhile"])


@pytest.mark.parametrize("days", [0, 30])
def test_a_schema_that_nobody_has_maintained_for_a_while_has_not_drifted(drift, dsn, days):
    # Maintenance makes the tables of the next days, and drops those of old ones.
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(
            """DO $$ DECLARE made text; BEGIN
            FOR made IN SELECT relname FROM pg_class WHERE relkind = 'r' AND relname ~ '^(archive|attempt)_[0-9]{8}$'
            LOOP
                EXECUTE 'DROP TABLE trioboss.' || made;
            END LOOP; END $$"""
        )
        if days:
            owner.execute("select trioboss.add_days(current_date - %s::int, 7)", [days])

    assert drift() == FINE


def test_a_day_whose_jobs_are_in_the_default_table_needs_no_table(drift, sync_boss, dsn):
    # add_days makes none for it: the table could not be attached beside these rows.
    sync_boss.create_queue("q")
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(f"drop table trioboss.archive_{datetime.now(UTC):%Y%m%d}")
        sync_boss.send("q")
        sync_boss.complete("q", sync_boss.fetch("q"))
        assert owner.execute("select count(*) from trioboss.archive_default").fetchone() == (1,)

    assert drift() == FINE


def test_a_sequence_that_is_made_again_continues_after_the_jobs(drift, sync_boss, dsn):
    sync_boss.create_queue("q")
    for number in range(3):
        sync_boss.send("q", number)
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("drop sequence trioboss.job_seq cascade")
        for _, advice in drift():
            owner.execute(advice)
    sync_boss.send("q", 3)

    assert [job.data for job in sync_boss.fetch("q", batch_size=10)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "change",
    [
        "drop table trioboss.queue cascade",
        "drop table trioboss.live_job cascade",
        "alter table trioboss.queue drop column warning_queue_size cascade",
        "alter table trioboss.queue rename paused to stopped",
        "drop function trioboss.notify(text)",
        "drop schema trioboss cascade; create schema trioboss; "
        "create table trioboss.version (version int, applied_on timestamptz, compatible int); "
        f"insert into trioboss.version values ({LATEST})",
    ],
)
def test_checks_that_the_schema_breaks_are_findings_beside_the_others(run, dsn, change):
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(change)

    code, printed, errors = run("doctor", "--json")
    findings = json.loads(printed)

    assert (code, errors) == (1, "")
    assert {"connection", "schema", "drift", "sessions"} <= {each["check"] for each in findings}
    broken = [each for each in findings if each["text"].startswith("not checked: ")]
    assert {each["advice"] for each in broken} <= {"repair what `drift` has found"}


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
