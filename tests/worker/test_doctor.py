"""The doctor: what it finds, also where nothing can be examined, and what it advises."""

import json

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.cli.findings import describe_refusal

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
    assert "1 jobs wait" in found[f"queue {queue}"]["text"]
    assert "no worker takes them" in found[f"queue {queue}"]["text"]


def test_a_key_that_limits_nothing_and_a_blocked_one_are_found(findings, sync_boss, queue):
    sync_boss.send(queue, singleton_key="k", start_after=3600)
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    sync_boss.send("orders", singleton_key="k")
    sync_boss.fail("orders", sync_boss.fetch("orders"))

    _, found, _ = findings()
    assert "limits nothing under the policy standard" in found[f"queue {queue}"]["text"]
    assert found["queue orders"]["text"] == "1 keys are blocked by failed jobs"


def test_schedules_that_no_app_declares_are_found_where_apps_declare_others(findings, sync_boss, queue, dsn):
    sync_boss.schedule(queue, "0 3 * * *", key="loose")
    assert findings()[1]["schedules"]["status"] == "ok"
    sync_boss.schedule(queue, "0 4 * * *", key="declared")
    with psycopg.connect(dsn) as conn:
        conn.execute("update trioboss.schedule set label = 'jobs:app' where key = 'declared'")

    _, found, _ = findings()
    assert (found["schedules"]["status"], found["schedules"]["text"]) == (
        "warning",
        "no app declares mail/loose",
    )
    assert "trioboss unschedule" in found["schedules"]["advice"]


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


def test_a_wrong_password_is_told_apart_from_a_missing_database():
    refused = trioboss.DatabaseUnavailable(
        'Postgres cannot be reached: password authentication failed for user "me"'
    )

    assert "PGPASSWORD" in describe_refusal(refused).advice


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
