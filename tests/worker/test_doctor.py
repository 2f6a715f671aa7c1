"""The doctor: what it finds, also where nothing can be examined, and what it advises."""

import json
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

PASSWORD = "pw-canary-7341"


def test_doctor_finds_no_fault_in_a_good_database(run, queue, server_dsn):
    code, printed, _ = run("doctor")

    # Servers for tests are not durable: it finds that.
    assert code == 1
    failures = [line for line in printed.splitlines() if line.startswith("failure")]
    assert all("durability" in line for line in failures)
    for check in (
        "connection",
        "schema",
        "notify",
        "pooler",
        "clock",
        "encryption",
        "vacuum",
        "table live_job_common",
    ):
        assert f"ok       {check}: " in printed


def test_doctor_advises_what_to_do(run):
    findings = {finding["check"]: finding for finding in json.loads(run("doctor", "--json")[1])}

    assert findings["durability"]["status"] == "failure"
    assert findings["durability"]["advice"] == "set fsync = on"


@pytest.fixture
def findings(run):
    """The exit code, and the findings by check."""

    def find(*arguments, **options):
        code, printed, errors = run("doctor", "--json", *arguments, **options)
        return code, {finding["check"]: finding for finding in json.loads(printed)}, errors

    return find


def test_a_missing_schema_is_found_and_not_created(findings, dsn, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", dsn)

    code, found, errors = findings("--schema", "missing", dsn=None)

    assert (code, errors) == (1, "")
    assert found["connection"]["status"] == "ok"
    assert (found["schema"]["status"], found["schema"]["text"]) == ("failure", "'missing' is not installed")
    assert "trioboss migrate" in found["schema"]["advice"]


@pytest.mark.parametrize(("version", "advice"), [(1, "run `trioboss migrate`"), (9999, "upgrade trioboss")])
def test_a_schema_of_another_version_is_found(findings, dsn, version, advice):
    with psycopg.connect(dsn) as conn:
        conn.execute("delete from trioboss.version")
        conn.execute("insert into trioboss.version (version) values (%s)", [version])

    code, found, _ = findings()

    assert code == 1
    assert (found["schema"]["status"], found["schema"]["advice"]) == ("failure", advice)
    assert f"version {version}" in found["schema"]["text"]


def test_a_queue_with_jobs_and_no_worker_is_found(findings, sync_boss, queue):
    assert f"queue {queue}" not in findings()[1]
    sync_boss.send(queue)

    _, found, _ = findings()
    assert found[f"queue {queue}"]["status"] == "warning"
    assert "1 job waits" in found[f"queue {queue}"]["text"]
    assert "no worker takes them" in found[f"queue {queue}"]["text"]


def test_a_key_that_limits_nothing_and_a_blocked_one_are_found(findings, sync_boss, queue):
    sync_boss.send(queue, singleton_key="k", start_after=3600)
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    sync_boss.send("orders", singleton_key="k")
    sync_boss.fail("orders", sync_boss.fetch("orders"))

    _, found, _ = findings()
    assert "limits nothing under the policy standard" in found[f"queue {queue}"]["text"]
    assert found["queue orders"]["text"] == "1 key is blocked by a failed job"


def test_dead_letters_need_a_redrive_and_no_worker(findings, sync_boss):
    sync_boss.create_queue("failed")
    sync_boss.create_queue("orders", policy="singleton", retry_limit=0, dead_letter="failed")
    sync_boss.send("orders", singleton_key="k")
    sync_boss.fail("orders", sync_boss.fetch("orders"))

    _, found, _ = findings()
    assert "1 dead letter waits" in found["queue failed"]["text"]
    assert "trioboss redrive failed" in found["queue failed"]["advice"]

    sync_boss.send("failed")
    assert "2 jobs wait" in findings()[1]["queue failed"]["text"]


def test_keys_of_throttles_of_send_once_and_of_dead_letters_have_a_purpose(findings, sync_boss, queue):
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0, dead_letter=queue)
    sync_boss.send("orders", singleton_key="k")
    sync_boss.fail("orders", sync_boss.fetch("orders"))
    sync_boss.send_throttled(queue, 1, 60, "k")
    sync_boss.send_once(queue, 1, "k")
    sync_boss.send_singleton(queue, 1, singleton_key="k")
    assert len(sync_boss.find_jobs(queue, singleton_key="k")) == 4

    assert "limits nothing" not in findings()[1][f"queue {queue}"]["text"]


@pytest.mark.parametrize("declared", ["queue", "schedule"])
def test_schedules_that_no_app_declares_are_found_where_apps_declare_others(
    findings, sync_boss, queue, dsn, declared
):
    sync_boss.schedule(queue, "0 3 * * *", key="loose")
    assert findings()[1]["schedules"]["status"] == "ok"
    with psycopg.connect(dsn) as conn:
        if declared == "queue":
            conn.execute("update trioboss.queue set label = 'jobs:app'")
        else:
            sync_boss.schedule(queue, "0 4 * * *", key="declared")
            conn.execute("update trioboss.schedule set label = 'jobs:app' where key = 'declared'")

    _, found, _ = findings()
    assert (found["schedules"]["status"], found["schedules"]["text"]) == (
        "warning",
        "no app declares mail/loose",
    )
    assert "trioboss unschedule" in found["schedules"]["advice"]


def test_a_schedule_that_its_app_has_dropped_is_found(findings, sync_boss, queue, dsn):
    sync_boss.schedule(queue, "0 3 * * *", key="kept")
    sync_boss.schedule(queue, "0 4 * * *", key="dropped")
    with psycopg.connect(dsn) as conn:
        conn.execute("update trioboss.schedule set label = 'jobs:app'")
        declared = json.dumps({"schedules": [["mail", "kept"]]})
        conn.execute("insert into trioboss.deployment values ('jobs:app', '2', 2, %s)", [declared])
        conn.execute("insert into trioboss.deployment values ('jobs:app', '1', 1, '{}')")

    _, found, _ = findings()

    assert found["schedules"]["text"] == "their app no longer declares mail/dropped"
    assert found["schedules"]["advice"].startswith(
        "trioboss migrate MODULE:APP --prune, for the app 'jobs:app'"
    )


@pytest.mark.parametrize("kind", ["worker", "reader", "producer"])
def test_a_right_that_the_role_lacks_is_found(findings, run, dsn, server_dsn, kind):
    table = {"worker": "warning", "reader": "warning", "producer": "idle_dispatcher"}[kind]
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        owner.execute(f"create role doctor_{kind} login")
    try:
        assert run("grants", f"--{kind}", f"doctor_{kind}", "--apply")[0] == 0
        role_dsn = make_conninfo(dsn, user=f"doctor_{kind}")
        assert (
            findings(dsn=role_dsn)[1]["rights"]["text"] == f"role 'doctor_{kind}' has the rights of a {kind}"
        )
        with psycopg.connect(dsn) as owner:
            owner.execute(f"revoke all on trioboss.{table} from doctor_{kind}")

        code, found, _ = findings(dsn=role_dsn)

        assert (code, found["rights"]["status"]) == (1, "failure")
        assert f"SELECT on {table}" in found["rights"]["text"]
        assert found["rights"]["advice"].endswith(f"trioboss grants --{kind} doctor_{kind} --apply")
    finally:
        with psycopg.connect(dsn, autocommit=True) as owner:
            owner.execute(f"drop owned by doctor_{kind}")
            owner.execute(f"drop role doctor_{kind}")


def test_the_owner_of_the_schema_has_the_rights_of_the_admin(findings):
    assert findings()[1]["rights"]["text"] == "role 'postgres' has the rights of the admin"


def test_migrate_advises_grants_where_roles_have_rights(run, dsn, server_dsn):
    assert run("rollback", "--yes")[0] == 0
    assert "grants" not in run("migrate")[1]
    assert run("rollback", "--yes")[0] == 0
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("create role doctor_old login")
        owner.execute("grant usage on schema trioboss to doctor_old")
        try:
            printed = run("migrate")[1]
            assert "roles 'doctor_old' have rights here, and none on new tables" in printed
            assert "trioboss grants" not in run("migrate")[1]
        finally:
            owner.execute("drop owned by doctor_old")
            owner.execute("drop role doctor_old")


def test_timeouts_that_break_the_listener_are_found(findings, dsn):
    assert findings()[1]["sessions"]["status"] == "ok"

    _, found, _ = findings(dsn=f"{dsn} options='-c idle_session_timeout=60000 -c statement_timeout=1000'")

    assert found["sessions"]["status"] == "warning"
    assert "idle_session_timeout = 1min, statement_timeout = 1s" in found["sessions"]["text"]
    assert "ALTER ROLE" in found["sessions"]["advice"]


def test_a_read_only_server_is_found(findings, dsn):
    code, found, _ = findings(dsn=f"{dsn} options='-c default_transaction_read_only=on'")

    assert (code, found["writing"]["status"]) == (1, "failure")
    assert "target_session_attrs" in found["writing"]["advice"]


def test_a_newer_schema_that_is_compatible_is_fine(findings, dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("insert into trioboss.version (version, compatible) values (9999, 1)")

    _, found, _ = findings()

    assert found["schema"]["status"] == "ok"
    assert "newer than" in found["schema"]["text"]
    assert found["drift"]["status"] == "skipped"


@pytest.mark.parametrize(
    ("change", "advice"),
    [
        ({"dbname": "missing_database"}, "createdb"),
        ({"user": "missing_role"}, "createuser"),
        ({"host": "no-such-host.invalid"}, "name of the host"),
    ],
    ids=["database", "role", "host"],
)
def test_causes_of_a_refused_connection_are_told_apart(findings, dsn, change, advice):
    code, found, errors = findings(dsn=make_conninfo(dsn, **change))

    assert (code, errors) == (1, "")
    assert found["connection"]["status"] == "failure"
    assert advice in found["connection"]["advice"]


@pytest.fixture
def guarded_dsn(dsn):
    """The dsn of a role that needs a password, with a wrong one."""
    with psycopg.connect(dsn, autocommit=True) as owner:
        ((hba,),) = owner.execute("show hba_file")
        before = Path(hba).read_text("utf-8")
        owner.execute(f"create role doctor_guarded login password '{PASSWORD}'")
        Path(hba).write_text("local all doctor_guarded scram-sha-256\n" + before, "utf-8")
        try:
            owner.execute("select pg_reload_conf()")
            guarded = make_conninfo(dsn, user="doctor_guarded", password="wrong")
            with suppress(psycopg.OperationalError):
                while True:  # until the server has read the file
                    psycopg.connect(guarded).close()
            yield guarded
        finally:
            Path(hba).write_text(before, "utf-8")
            owner.execute("select pg_reload_conf()")
            owner.execute("drop role doctor_guarded")


def test_a_wrong_password_is_told_apart_from_a_missing_database(findings, guarded_dsn, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", guarded_dsn)

    code, found, errors = findings(dsn=None)

    assert (code, errors) == (1, "")
    assert found["connection"]["status"] == "failure"
    assert "PGPASSWORD" in found["connection"]["advice"]


def test_the_remedy_for_an_old_schema_is_that_of_the_role(findings, dsn, server_dsn):
    with psycopg.connect(dsn, autocommit=True) as owner:
        owner.execute("create role doctor_nobody login")
        owner.execute("grant usage on schema trioboss to doctor_nobody")
        owner.execute("grant select on trioboss.version to doctor_nobody")
        owner.execute("delete from trioboss.version where version > 1")
        try:
            _, found, _ = findings(dsn=make_conninfo(dsn, user="doctor_nobody"))
        finally:
            owner.execute("drop owned by doctor_nobody")
            owner.execute("drop role doctor_nobody")

    assert found["schema"]["advice"] == (
        "run `trioboss migrate`, as role 'postgres', which owns the schema: role 'doctor_nobody' may not"
    )


def test_a_server_that_cannot_be_reached_is_found(findings, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", f"postgresql://me:{PASSWORD}@127.0.0.1:9/x")

    code, found, errors = findings(dsn=None)

    assert (code, errors) == (1, "")
    assert found["connection"]["status"] == "failure"
    assert "TRIOBOSS_DSN" in found["connection"]["advice"]
    assert PASSWORD not in str(found)
