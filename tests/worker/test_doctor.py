"""The doctor: what it finds, also where nothing can be examined, and what it advises."""

import json

import psycopg
import pytest

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


@pytest.mark.parametrize(("version", "advice"), [(1, "run trioboss migrate"), (9999, "upgrade trioboss")])
def test_a_schema_of_another_version_is_found(findings, dsn, version, advice):
    with psycopg.connect(dsn) as conn:
        conn.execute("delete from trioboss.version")
        conn.execute("insert into trioboss.version (version) values (%s)", [version])

    code, found, _ = findings()

    assert code == 1
    assert (found["schema"]["status"], found["schema"]["advice"]) == ("failure", advice)
    assert f"version {version}" in found["schema"]["text"]


def test_a_server_that_cannot_be_reached_is_found(findings, monkeypatch):
    monkeypatch.setattr("trioboss.cli.opening.CONNECT_WAIT", 0.0)
    monkeypatch.setenv("TRIOBOSS_DSN", f"postgresql://me:{PASSWORD}@127.0.0.1:9/x")

    code, found, errors = findings(dsn=None)

    assert (code, errors) == (1, "")
    assert found["connection"]["status"] == "failure"
    assert "TRIOBOSS_DSN" in found["connection"]["advice"]
    assert PASSWORD not in str(found)
