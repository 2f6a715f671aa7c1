"""Every statement file: it prepares in any schema, opens with its contract, is short, and can be run by psql."""

import re
import subprocess
from importlib import resources
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import trioboss
from trioboss.model.states import STATEMENTS
from trioboss.postgres.embedded.binaries import find_binaries
from trioboss.sql import Catalog, read_source
from trioboss.testing import temporary_database

ELSEWHERE = "Else_Where"
FILES = resources.files("trioboss.sql").joinpath("statements")
NAMES = sorted(file.name.removesuffix(".sql") for file in FILES.iterdir() if file.name.endswith(".sql"))

FRAGMENTS = sorted(file.name for file in FILES.joinpath("fragments").iterdir())
LONGEST = 80  # lines of a statement, with the fragments it includes

# Values of psql variables, as text. A parameter that is not listed is NULL, which every statement accepts.
VALUES = {
    "queue": "'email'",
    "name": "'email'",
    "table_name": "'live_job_common'",
    "policy": "'standard'",
    "history": "'archive'",
    "day": "'2000-01-01'",
    "limit": "10",
    "lock": "42",
    "before": "'active'",
    "ids": "'{}'",
    "queues": "'{email}'",
    "id": "'01920000-0000-7000-8000-000000000001'",
    "singleton_seconds": "60",
}
# A queue has no option that is NULL, an idle marker has a worker, and a few parameters have other types elsewhere.
VALUES_OF = {
    "create_queue": {
        **dict.fromkeys(
            ("partition", "retry_backoff", "auto_heartbeat", "commit_order", "keep_completed"), "true"
        ),
        **dict.fromkeys(("retry_limit", "retry_delay", "retry_jitter", "max_lease_extensions"), "0"),
        "retry_multiplier": "2",
        **dict.fromkeys(("expire_in", "retention", "delete_after"), "60"),
        "queue": "'orders'",
        "table_name": "'j0123456789abcdef0123456789abcdef'",
    },
    "copy_completions": {"history": "true"},
    "purge_queued": {"first": "'(0,0)'", "after": "'(9,0)'"},
    "pause": {"paused": "true"},
    "update_queue": {"given": "'{}'"},
    "schedule": {
        "key": "''",
        "cron": "'* * * * *'",
        "timezone": "'UTC'",
        "missed": "'skip'",
        "options": "'{}'",
    },
    "record_deployment": {"label": "'shop'", "digest": "'0'", "declaration": "'{}'"},
    "subscribe": {"event": "'paid'"},
    "keep_audit": {"who": "'ann'", "action": "'retry'"},
    "keep_warnings": {"queues": "'{}'"},
    "keep_history_audit": {
        "source": "'database'",
        **dict.fromkeys(("jobs", "attempts"), "1"),
        **dict.fromkeys(("violations", "possible"), "'{}'"),
    },
    "add_waiter": {"waiter": "gen_random_uuid()"},
    "set_idle_markers": {"worker": "gen_random_uuid()"},
    "set_idle_marker": {"worker": "gen_random_uuid()"},
    "register_worker": {
        "worker": "gen_random_uuid()",
        "id": "gen_random_uuid()",
        "boss": "gen_random_uuid()",
    },
}
BINARY = {"copy_jobs", "copy_staging"}  # read binary data, which cannot be pasted


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
def test_it_opens_with_its_contract(name):
    first, *rest = source(name).splitlines()

    assert re.match(r"-- [A-Z]?\w.{8,}", first)
    assert any(not line.startswith("--") for line in rest)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_short_with_the_fragments_that_it_includes(name):
    assert len([line for line in read_source(name).splitlines() if not line.startswith("--")]) <= LONGEST


@pytest.mark.parametrize("name", NAMES)
def test_its_file_is_short(name):
    assert len(source(name).splitlines()) <= LONGEST


@pytest.mark.parametrize(
    "path", [*FILES.glob("*.sql"), *FILES.glob("fragments/*.sql")], ids=lambda path: path.stem
)
def test_the_lines_of_statements_and_fragments_are_short(path):
    assert max(map(len, path.read_text("utf-8").splitlines())) <= 140


LISTED = [
    (re.findall(r"`(\w+)`", statements), re.findall(r"`([^`]+)`", used_by))
    for statements, used_by in re.findall(
        r"^\| .* \| (.*) \| (`.*`) \|$", FILES.joinpath("README.md").read_text("utf-8"), re.MULTILINE
    )
]


def test_the_readme_lists_every_statement_once():
    assert sorted(name for names, _ in LISTED for name in names) == NAMES


@pytest.mark.parametrize(("names", "modules"), LISTED, ids=lambda part: part[0])
def test_the_module_that_the_readme_names_uses_the_statements(names, modules):
    """By its name in quotes, or by one that is put together: f"find_{newest}{half}_jobs"."""
    text = "".join((Path(trioboss.__file__).parent.parent / module).read_text("utf-8") for module in modules)
    used = [re.sub(r"\{\w+\}", r"\\w*", literal) for literal in re.findall(r'"([a-z_{}]+)"', text)]

    assert [name for name in names if not any(re.fullmatch(each, name) for each in used)] == []


def test_the_table_of_readiness_names_the_statements_that_change_it():
    named = {name for names in STATEMENTS.values() for name in names}
    change = r"(?:SET|,)\s+readiness = (?!'active' AS)|(?:DELETE FROM|TRUNCATE) trioboss\.live_job"
    changing = {name for name in NAMES if re.search(change, read_source(name))}

    assert named <= set(NAMES)
    assert changing <= named
    assert {event for event, names in STATEMENTS.items() if names and names[0] != event} == set()


@pytest.mark.parametrize("name", NAMES)
def test_it_notifies_only_by_the_function_that_a_role_without_the_right_may_call(name):
    assert "pg_notify" not in read_source(name)


def included_by(text: str) -> list[str]:
    return re.findall(r"^\\ir (\S+)", text, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_its_fragments_are_given_all_that_they_need(name):
    assert re.findall(r"<[a-z]+>|\\ir", re.sub(r"--[^\n]*", "", read_source(name))) == []


def test_every_fragment_is_included_and_says_what_it_is():
    files = [*FILES.glob("*.sql"), *FILES.glob("fragments/*.sql")]
    included = {fragment for file in files for fragment in included_by(file.read_text("utf-8"))}

    assert included == {f"fragments/{name}" for name in FRAGMENTS}
    for name in FRAGMENTS:
        assert FILES.joinpath("fragments", name).read_text("utf-8").startswith("-- "), name


@pytest.mark.parametrize("name", sorted(set(NAMES) - BINARY))
def test_psql_runs_it(schemas_dsn, name):
    values, types = VALUES | VALUES_OF.get(name, {}), parameter_types(schemas_dsn, name)
    typed = {parameter: f"({values.get(parameter, 'NULL')})::{type}" for parameter, type in types.items()}
    quoted = {parameter: value.replace("'", "''") for parameter, value in typed.items()}
    settings = "".join(f"\\set {parameter} '{value}'\n" for parameter, value in quoted.items())
    commands = f"\\set ON_ERROR_STOP 1\n{settings}BEGIN;\n{read_source(name)}\nROLLBACK;\n"

    run = subprocess.run(
        [find_binaries().folder / "psql", "-X", "-q", "-d", to_libpq(schemas_dsn)],
        input=commands,
        text=True,
        capture_output=True,
    )

    assert run.stderr == ""
    assert run.returncode == 0


def parameter_types(dsn: str, name: str) -> dict[str, str]:
    """The type of each parameter, as the server has worked it out."""
    statement = Catalog("trioboss").get(name)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.pgconn.prepare(b"it", statement.text.encode())
        types = "SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'it'"
        ((found,),) = connection.execute(types).fetchall()
    return dict(zip(statement.parameters, found, strict=True))


def to_libpq(dsn: str) -> str:
    return make_conninfo("", **conninfo_to_dict(dsn))
