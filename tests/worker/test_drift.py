"""The doctor compares the schema with what the migrations make, and each statement that it advises repairs it."""

import hashlib
import json

import psycopg
import pytest
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


ROLE = "drift_worker"
FINE = [("the schema is what the migrations make", "")]

OWN = f"trioboss.j{hashlib.md5(b'own').hexdigest()}"  # the table of the queue `own`

CHANGES = {
    "index": ("drop index trioboss.live_job_ready", "index live_job_ready of live_job is missing"),
    "changed index": (
        "drop index trioboss.archive_id; create index archive_id on trioboss.archive (queue)",
        "index archive_id of archive was changed: definition",
    ),
    "invalid index": (
        "update pg_index set indisvalid = false where indexrelid = 'trioboss.throttle_until'::regclass",
        "index throttle_until of throttle was changed: valid",
    ),
    "invalid index of a partition": (
        "update pg_index set indisvalid = false where indexrelid = 'trioboss.live_job_common_queue_id_idx'::regclass",
        "index live_job_common_queue_id_idx of live_job_common is invalid: no statement uses it",
    ),
    "another's unique index": (
        "create unique index mine on trioboss.schedule (cron)",
        "index mine of schedule is not one of trioboss: it refuses rows",
    ),
    "trigger": (
        "drop trigger queues_changed on trioboss.queue",
        "trigger queues_changed of queue is missing",
    ),
    "disabled trigger": (
        "alter table trioboss.queue disable trigger renew_revision",
        "trigger renew_revision of queue was changed: enabled",
    ),
    "disabled foreign keys": (
        "alter table trioboss.queue disable trigger all",
        "table queue was changed: constraint triggers",
    ),
    "disabled trigger of the common table": (
        "alter table trioboss.live_job_common disable trigger fill_in_job",
        "trigger fill_in_job of live_job_common was changed: enabled",
    ),
    "disabled triggers of a queue's own table": (
        f"alter table {OWN} disable trigger all",
        f"trigger fill_in_job of {OWN[9:]} was changed: enabled",
    ),
    "another's trigger": (
        "create trigger mine after insert on trioboss.queue execute function trioboss.notify_queues_changed()",
        "trigger mine of queue is not one of trioboss: it runs in every statement",
    ),
    "another's rule": (
        "create rule mine as on insert to trioboss.queue do instead nothing",
        "rule mine of queue is not one of trioboss: it changes statements",
    ),
    "function": (
        "create or replace function trioboss.make_id() returns uuid language sql as 'select gen_random_uuid()'",
        "function make_id() was changed: body, parallel",
    ),
    "missing function": (
        "drop function trioboss.notify(text) cascade",
        "function notify(payload text) is missing",
    ),
    "missing function with a type of ours": (
        "drop function trioboss.take_throttle_slot",
        "function take_throttle_slot(queue text, key text, seconds trioboss.seconds, next boolean, "
        "moment timestamp with time zone, job uuid) is missing",
    ),
    "function that acts for its owner": (
        "alter function trioboss.create_queue(text, jsonb) security definer",
        "function create_queue(name text, options jsonb) was changed: security definer",
    ),
    "column": ("alter table trioboss.tick drop column fired_on", "column fired_on of tick is missing"),
    "column of queues": (
        "alter table trioboss.queue drop column warning_queue_size cascade",
        "column warning_queue_size of queue is missing",
    ),
    "renamed column": (
        "alter table trioboss.queue rename paused to stopped",
        "column paused of queue is missing",
    ),
    "another's column": (
        "alter table trioboss.subscription add mine int not null",
        "column mine of subscription is not one of trioboss: it must have a value",
    ),
    "default": (
        "alter table trioboss.queue alter paused drop default",
        "column paused of queue was changed: default",
    ),
    "default of a type of ours": (
        "alter table trioboss.queue alter retry_limit set default 5",
        "column retry_limit of queue was changed: default",
    ),
    "default of the common table": (
        "alter table trioboss.live_job_common alter priority set default 5",
        "column priority of live_job_common was changed: default",
    ),
    "type": ("alter table trioboss.load alter staged type int", "column staged of load was changed: type"),
    "type of ours": (
        "alter table trioboss.tick alter fired_on type timestamptz",
        "column fired_on of tick was changed: type",
    ),
    "collation": (
        "alter table trioboss.deployment alter digest type text",
        "column digest of deployment was changed: type",
    ),
    "not null": (
        "alter table trioboss.load alter staged drop not null",
        "column staged of load was changed: not null",
    ),
    "constraint": (
        "alter table trioboss.schedule drop constraint schedule_missed_check",
        "constraint schedule_missed_check of schedule is missing",
    ),
    "foreign key": (
        "alter table trioboss.queue drop constraint queue_dead_letter_fkey",
        "constraint queue_dead_letter_fkey of queue is missing",
    ),
    "another's constraint": (
        "alter table trioboss.queue add constraint mine check (retry_limit < 3)",
        "constraint mine of queue is not one of trioboss: it refuses rows",
    ),
    "another's constraint on a queue's own table": (
        f"alter table {OWN} add constraint mine check (priority < 5)",
        f"constraint mine of {OWN[9:]} is not one of trioboss: it refuses rows",
    ),
    "check of a domain": (
        "alter domain trioboss.seconds drop constraint seconds_check",
        "check seconds_check of seconds is missing",
    ),
    "another's check of a domain": (
        "alter domain trioboss.seconds add constraint mine check (value < 5e8)",
        "check mine of seconds is not one of trioboss: it refuses values",
    ),
    "changed domain": (
        "alter domain trioboss.seconds set default 5",
        "type seconds was changed: default",
    ),
    "table": ("drop table trioboss.subscription", "table subscription is missing"),
    "table of locks": ("drop table trioboss.lock_seed", "table lock_seed is missing"),
    "unlogged table": (
        "alter table trioboss.subscription set unlogged",
        "table subscription was changed: unlogged",
    ),
    "table of queues": ("drop table trioboss.queue cascade", "table queue is missing"),
    "table of jobs": ("drop table trioboss.live_job cascade", "table live_job is missing"),
    "common table": ("drop table trioboss.live_job_common", "table live_job_common is missing"),
    "detached common table": (
        "alter table trioboss.live_job detach partition trioboss.live_job_common",
        "table live_job_common was changed: bound, parent",
    ),
    "history without its last resort": (
        "drop table trioboss.archive_default",
        "table archive_default is missing",
    ),
    "table of a queue": (f"drop table {OWN}", f"table {OWN[9:]} is missing"),
    "detached table of a queue": (
        f"alter table trioboss.live_job detach partition {OWN}",
        f"table {OWN[9:]} was changed: bound, parent",
    ),
    "detached table of a queue without an index": (
        f"alter table trioboss.live_job detach partition {OWN}; drop index {OWN}_queue_id_idx",
        f"table {OWN[9:]} was changed: bound, parent",
    ),
    "option": (
        "alter table trioboss.live_job_common set (fillfactor = 100)",
        "option fillfactor of live_job_common was changed: value",
    ),
    "option of a queue's own table": (
        f"alter table {OWN} reset (fillfactor)",
        f"option fillfactor of {OWN[9:]} is missing",
    ),
    "another's option": (
        "alter table trioboss.live_job_common set (autovacuum_enabled = false)",
        "option autovacuum_enabled of live_job_common was set",
    ),
    "row security": (
        "alter table trioboss.queue enable row level security, force row level security",
        "table queue was changed: forced row security, row security",
    ),
    "row that is always there": ("delete from trioboss.lock_seed", "table lock_seed is empty"),
    "sequence": ("drop sequence trioboss.job_seq cascade", "sequence job_seq is missing"),
    "changed sequence": (
        "alter sequence trioboss.job_seq cycle cache 20 increment 2",
        "sequence job_seq was changed: cache, cycle, increment by",
    ),
    "view": ("drop view trioboss.all_jobs cascade", "view all_jobs is missing"),
    "enumeration": ("drop type trioboss.policy cascade", "type policy is missing"),
    "owner": (f"alter table trioboss.queue owner to {ROLE}", "table queue was changed: owner"),
    "owner of a function": (
        f"alter function trioboss.add_days(date, integer) owner to {ROLE}",
        "function add_days(today date, ahead integer) was changed: owner",
    ),
    "rights": (
        "grant select on trioboss.live_job to public",
        "everybody has SELECT on table live_job",
    ),
    "rights on functions": (
        "grant execute on function trioboss.take_throttle_slot to public",
        "everybody has EXECUTE on function take_throttle_slot(queue text, key text, seconds trioboss.seconds, "
        "next boolean, moment timestamp with time zone, job uuid)",
    ),
}


@pytest.mark.parametrize(("change", "finding"), CHANGES.values(), ids=CHANGES)
def test_a_difference_is_found_and_its_advice_repairs_it(drift, sync_boss, dsn, role, change, finding):
    sync_boss.create_queue("own", partition=True)
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute(change)

        found = drift()
        assert finding in [text for text, _ in found]

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
