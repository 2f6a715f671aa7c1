"""Every statement file: it prepares in any schema, says what it guarantees, and can be pasted into psql."""

import re
import subprocess
from importlib import resources

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import trioboss
from trioboss.postgres.embedded.binaries import find_binaries
from trioboss.sql import Catalog
from trioboss.testing import temporary_database

ELSEWHERE = "Else_Where"
FILES = resources.files("trioboss.sql").joinpath("statements")
NAMES = sorted(file.name.removesuffix(".sql") for file in FILES.iterdir())

# What psql is told about the parameters. What is not listed is NULL, which every statement bears.
VALUES = {
    "queue": "'email'",
    "name": "'email'",
    "table_name": "'job_common'",
    "policy": "'standard'",
    "history": "'archive'",
    "day": "'2000-01-01'",
    "limit": "10",
    "lock": "42",
    "before": "'active'",
    "ids": "'{}'",
    "queues": "'{email}'",
    "leases": "'{}'",
    "id": "'01920000-0000-7000-8000-000000000001'",
    "singleton_seconds": "60",
}
# A queue has no option that is NULL, a mark belongs to somebody, and some words mean something else here and there.
VALUES_OF = {
    "create_queue": {
        **dict.fromkeys(
            ("partition", "retry_backoff", "auto_heartbeat", "commit_order", "keep_completed"), "true"
        ),
        **dict.fromkeys(("retry_limit", "retry_delay", "retry_jitter", "max_lease_extensions"), "0"),
        **dict.fromkeys(("expire_in", "retention", "delete_after"), "60"),
        "queue": "'orders'",
        "table_name": "'j0123456789abcdef0123456789abcdef'",
    },
    "tell_completions": {"history": "true"},
    "pause": {"paused": "true"},
    "update_queue": {"given": "'{}'"},
    "schedule": {
        "key": "''",
        "cron": "'* * * * *'",
        "timezone": "'UTC'",
        "missed": "'skip'",
        "options": "'{}'",
    },
    "subscribe": {"event": "'paid'"},
    "watch": {"watcher": "gen_random_uuid()"},
    "mark_all_asleep": {"worker": "gen_random_uuid()"},
    "mark_asleep": {"worker": "gen_random_uuid()"},
    "register_worker": {
        "worker": "gen_random_uuid()",
        "id": "gen_random_uuid()",
        "boss": "gen_random_uuid()",
    },
}
BINARY = {"copy_jobs", "copy_staging"}  # read binary data, which nobody can paste


def source(name: str) -> str:
    return FILES.joinpath(f"{name}.sql").read_text("utf-8")


@pytest.fixture(scope="module")
def schemas_dsn(server_dsn, template):
    """A database with two schemas, and a queue in each."""
    with temporary_database(server_dsn, template) as dsn:
        for schema in ("trioboss", ELSEWHERE):
            with trioboss.SyncBoss(dsn, schema=schema) as boss:
                boss.create_queue("email")
        with psycopg.connect(dsn) as connection:
            # A day to be dropped.
            connection.execute("SELECT trioboss.add_days('2000-01-01', 0)")
        yield dsn


@pytest.mark.parametrize("schema", ["trioboss", ELSEWHERE])
@pytest.mark.parametrize("name", NAMES)
def test_it_prepares(schemas_dsn, name, schema):
    statement = Catalog(schema).get(name)
    with psycopg.connect(schemas_dsn, autocommit=True) as connection:
        prepared = connection.pgconn.prepare(b"it", statement.text.encode())
        described = connection.pgconn.describe_prepared(b"it")

    assert prepared.error_message == b""
    assert described.nparams == len(statement.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_it_belongs_to_one_schema(name):
    assert not re.search(r"\btrioboss\b", Catalog(ELSEWHERE).get(name).text)


@pytest.mark.parametrize("name", NAMES)
def test_it_begins_with_what_it_guarantees(name):
    first, *rest = source(name).splitlines()

    assert re.match(r"-- [A-Z]?\w.{8,}", first)
    assert any(not line.startswith("--") for line in rest)


@pytest.mark.parametrize("name", sorted(set(NAMES) - BINARY))
def test_it_can_be_pasted_into_psql(schemas_dsn, name):
    values = VALUES | VALUES_OF.get(name, {})
    quoted = {p: values.get(p, "NULL").replace("'", "''") for p in Catalog("trioboss").get(name).parameters}
    settings = "".join(f"\\set {parameter} '{value}'\n" for parameter, value in quoted.items())
    pasted = f"\\set ON_ERROR_STOP 1\n{settings}BEGIN;\n{source(name)}\nROLLBACK;\n"

    run = subprocess.run(
        [find_binaries().folder / "psql", "-X", "-q", "-d", to_libpq(schemas_dsn)],
        input=pasted,
        text=True,
        capture_output=True,
    )

    assert (run.returncode, run.stderr) == (0, "")


def to_libpq(dsn: str) -> str:
    return make_conninfo("", **conninfo_to_dict(dsn))
