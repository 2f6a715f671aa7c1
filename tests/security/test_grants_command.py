"""`trioboss grants`, by whom and for whom; and what a command says to a role that may not run it."""

import shutil
import subprocess

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from security_helpers import ROLES, as_role, role

import trioboss
from trioboss.cli import main
from trioboss.sql.grants import grant_plans
from trioboss.testing import temporary_database

EVERYBODY = {kind: role(kind) for kind in ROLES}


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_printed_grants_paste_into_psql_again_and_again(server_dsn, template, roles, capsys):
    options = [text for kind in ROLES for text in (f"--{kind}", role(kind))]
    with temporary_database(server_dsn, template) as dsn:
        assert main(["grants", *options]) == 0
        printed = capsys.readouterr().out
        for _ in range(2):
            psql = subprocess.run(
                ["psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", dsn],
                input=printed,
                capture_output=True,
                text=True,
            )
            assert psql.returncode == 0, psql.stderr
        with trioboss.SyncBoss(as_role(dsn, "admin")) as admin:
            admin.create_queue("q")


def test_tables_that_were_there_before_the_grants_are_open_to_the_roles(server_dsn, template, roles):
    with temporary_database(server_dsn, template) as dsn:
        with trioboss.SyncBoss(dsn) as owner:
            owner.create_queue("own", partition=True)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(grant_plans("trioboss", EVERYBODY).encode())
        with trioboss.SyncBoss(as_role(dsn, "producer")) as producer:
            id = producer.send("own", 1)
        with trioboss.SyncBoss(as_role(dsn, "worker")) as worker:
            worker.complete("own", worker.fetch("own"), 2)
        with trioboss.SyncBoss(as_role(dsn, "reader")) as reader:
            assert reader.get_job_by_id("own", id).output == 2


def test_a_schema_of_any_name_gets_its_grants(empty_dsn, roles):
    for schema in ("worker", "Select"):
        with trioboss.SyncBoss(empty_dsn, schema=schema):
            pass
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            connection.execute(grant_plans(schema, EVERYBODY | {"worker": role("worker")}).encode())
        with trioboss.SyncBoss(as_role(empty_dsn, "admin"), schema=schema) as admin:
            admin.create_queue("q")
        with trioboss.SyncBoss(as_role(empty_dsn, "worker"), schema=schema) as worker:
            assert worker.fetch("q") == []


@pytest.mark.parametrize("name", ["", "x" * 64, "ü" * 32, "a\0b", "\udc80", "public"])
def test_a_name_that_is_no_role_is_refused_before_any_sql(name):
    with pytest.raises(ValueError, match="is not the name of a role"):
        grant_plans("trioboss", {"producer": name})


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        (["grants"], 2, "no role is given"),
        (["grants", "--worker", "x" * 64], 2, "is not the name of a role"),
        (["grants", "--schema", "a b", "--worker", "w"], 2, "is not a schema name"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, code, printed, capsys):
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    message, address = captured.err.splitlines()
    assert printed in message
    assert address.startswith("  documentation: ")


@pytest.mark.parametrize("kind", ["reader", "admin"])
def test_grants_to_a_role_that_does_not_exist_change_nothing(dsn, capsys, kind):
    assert main(["grants", "--dsn", dsn, f"--{kind}", "nobody at all", "--apply"]) == 2
    assert 'role "nobody at all" does not exist: create it first' in capsys.readouterr().err


@pytest.fixture
def managed_dsn(server_dsn, empty_dsn):
    """The dsn, for its owner, of an empty database: a role that may create roles, and is no superuser."""
    with psycopg.connect(server_dsn, autocommit=True) as superuser:
        superuser.execute("create role managed login createrole")
        superuser.execute(f"alter database {conninfo_to_dict(empty_dsn)['dbname']} owner to managed")
    yield make_conninfo(empty_dsn, user="managed")
    with psycopg.connect(empty_dsn, autocommit=True) as superuser:
        superuser.execute("reassign owned by managed to current_user")
        for name in ("managed_web", "managed_deploy", "managed"):
            superuser.execute(f"drop owned by {name} cascade")
            superuser.execute(f"drop role {name}")


def test_an_owner_of_the_database_without_superuser_hands_over_to_roles_that_it_has_created(managed_dsn):
    with psycopg.connect(managed_dsn, autocommit=True) as owner:
        owner.execute("create role managed_deploy login; create role managed_web login")
    assert main(["migrate", "--dsn", managed_dsn]) == 0
    grants = ["--admin", "managed_deploy", "--producer", "managed_web", "--apply"]

    assert main(["grants", "--dsn", managed_dsn, *grants]) == 0
    assert main(["grants", "--dsn", managed_dsn, *grants]) == 0  # also when the admin owns the schema already
    with trioboss.SyncBoss(make_conninfo(managed_dsn, user="managed_deploy")) as admin:
        admin.create_queue("q")
    with trioboss.SyncBoss(make_conninfo(managed_dsn, user="managed_web"), migrate=False) as producer:
        producer.send("q")


def test_an_admin_that_somebody_else_has_created_is_refused_with_the_statement_that_helps(
    managed_dsn, server_dsn, capsys
):
    with psycopg.connect(server_dsn, autocommit=True) as superuser:
        superuser.execute("create role managed_deploy login; create role managed_web login")
        superuser.execute("alter role managed nocreaterole")  # before Postgres 16 it could grant any role
    assert main(["migrate", "--dsn", managed_dsn]) == 0
    grants = ["grants", "--dsn", managed_dsn, "--admin", "managed_deploy", "--apply"]

    assert main(grants) == 2
    refusal = capsys.readouterr().err
    assert 'as the role that has created it, run `GRANT "managed_deploy" TO` the role that you use' in refusal

    with psycopg.connect(server_dsn, autocommit=True) as superuser:
        superuser.execute('GRANT "managed_deploy" TO managed')
    assert main(grants) == 0


def test_a_queue_that_a_role_may_not_create_is_one_error_and_nothing_is_logged(shown_dsn, caplog):
    with trioboss.SyncBoss(as_role(shown_dsn, "producer"), migrate=False) as producer:
        message = "queue 'new' cannot be created: permission denied to this database role"
        with pytest.raises(trioboss.StatementFailed, match=message):
            producer.create_queue("new")

    assert [record for record in caplog.records if record.name == "psycopg"] == []


def test_a_command_that_a_role_may_not_run_names_the_role_and_its_kind(granted_dsn, capsys):
    with trioboss.SyncBoss(as_role(granted_dsn, "admin")) as admin:
        admin.create_queue("q")

    for kind, command in (("reader", "send"), ("producer", "jobs"), ("worker", "create-queue")):
        assert main([command, "q", "--dsn", as_role(granted_dsn, kind)]) == 2
        refusal = f"role {role(kind)!r}, a {kind}, may not run `trioboss {command}`"
        assert refusal in capsys.readouterr().err


def test_a_queue_that_is_missing_is_no_task_of_its_producer(shown_dsn, capsys):
    assert main(["send", "missing", "--dsn", as_role(shown_dsn, "producer")]) == 2
    remedy = "`trioboss migrate MODULE:APP` for all queues of its app; where roles are separate, as the admin"
    assert remedy in capsys.readouterr().err


def test_a_role_without_a_right_gets_one_sentence(shown_dsn, capsys):
    assert main(["pause", "q", "--dsn", as_role(shown_dsn, "reader")]) == 2
    printed = capsys.readouterr().err
    assert "permission denied" in printed
    assert printed.count("\n") == 2  # and the address of a page
