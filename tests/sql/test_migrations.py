"""The schema: how it is created, upgraded and removed, and which versions a boss accepts."""

import contextlib
import subprocess
import sys

import attrs
import psycopg
import pytest

import trioboss
from trioboss.postgres import migrate
from trioboss.postgres.embedded.binaries import find_binaries
from trioboss.sql import plans
from trioboss.sql.plans import LATEST, construction_plans, migration_plans, rollback_plans
from trioboss.testing import temporary_database

BINARIES = find_binaries().folder


def run_psql(dsn, text):
    """Run SQL as an operator would, and fail with the message of psql."""
    if not (BINARIES / "psql").exists():
        pytest.skip("the server's binaries have no psql")
    command = [BINARIES / "psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", dsn]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def dump(dsn):
    """The schema of a database, as pg_dump writes it, without the lines that differ in each run."""
    if not (BINARIES / "pg_dump").exists():
        pytest.skip("the server's binaries have no pg_dump")
    command = [BINARIES / "pg_dump", "--schema-only", "--no-owner", dsn]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line for line in text.splitlines() if not line.startswith((r"\restrict", r"\unrestrict", "--"))]


def execute(dsn, statement):
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def schemas(dsn):
    found = execute(dsn, "select nspname from pg_namespace where nspname !~ '^(pg_|information_schema)'")
    return {name for (name,) in found}


def open_and_close(dsn, **options):
    with trioboss.SyncBoss(dsn, **options) as boss:
        boss.get_queues()


@pytest.fixture(scope="module")
def migrated(server_dsn):
    """The schema of a database that a boss has migrated."""
    with temporary_database(server_dsn) as dsn:
        open_and_close(dsn)
        return dump(dsn)


# -- by a boss


async def test_an_empty_database_is_migrated_by_the_first_boss(empty_dsn):
    async with trioboss.open_boss(empty_dsn) as boss:
        assert await boss.is_installed()
        assert await boss.schema_version() == LATEST

    versions = execute(empty_dsn, "select version from trioboss.version order by version")
    assert versions == [(version,) for version in range(1, LATEST + 1)]


def test_a_schema_that_is_gone_has_no_version(empty_dsn):
    with trioboss.SyncBoss(empty_dsn) as boss:
        assert (boss.is_installed(), boss.schema_version()) == (True, LATEST)
        execute(empty_dsn, "drop schema trioboss cascade")

        assert (boss.is_installed(), boss.schema_version()) == (False, None)


def test_a_second_boss_changes_nothing(empty_dsn):
    open_and_close(empty_dsn)
    execute(empty_dsn, "insert into trioboss.queue (name) values ('kept')")
    before = dump(empty_dsn)

    open_and_close(empty_dsn)

    assert dump(empty_dsn) == before
    assert execute(empty_dsn, "select name from trioboss.queue") == [("kept",)]


# Twenty processes that wait for a lock; forked, because importing everything twenty times would take most of the time.
TWENTY_PROCESSES = """
import os, sys, psycopg, trio, trioboss

async def open_boss(dsn):
    async with trioboss.open_boss(dsn) as boss:
        await boss.get_queues()

def start(dsn, with_trio):
    with psycopg.connect(dsn, autocommit=True) as barrier:
        barrier.execute("select pg_advisory_lock_shared(1)")
    if with_trio:
        trio.run(open_boss, dsn)
    else:
        with trioboss.SyncBoss(dsn) as boss:
            boss.get_queues()

children = []
for i in range(20):
    if pid := os.fork():
        children.append(pid)
    else:
        start(sys.argv[1], i % 2)
        sys.exit()
sys.exit(sum(os.waitpid(pid, 0)[1] != 0 for pid in children))
"""
WAITING = """
select count(*) from pg_locks
where locktype = 'advisory' and not granted
  and database = (select oid from pg_database where datname = current_database())
"""


def test_twenty_processes_that_start_at_once_all_succeed(empty_dsn, migrated):
    with psycopg.connect(empty_dsn, autocommit=True) as barrier:
        barrier.execute("select pg_advisory_lock(1)")
        command = [sys.executable, "-c", TWENTY_PROCESSES, empty_dsn]
        with subprocess.Popen(command, stderr=subprocess.PIPE) as processes:
            while barrier.execute(WAITING).fetchone() != (20,) and processes.poll() is None:
                barrier.execute("select pg_sleep(0.01)")
            barrier.execute("select pg_advisory_unlock(1)")
            errors = processes.communicate(timeout=60)[1].decode()

    # Twenty bosses that end at once may be too slow for their cancel requests, and log that.
    unexpected = [line for line in errors.splitlines() if "a cancel request failed" not in line]
    assert (unexpected, processes.returncode) == ([], 0)
    assert dump(empty_dsn) == migrated


def test_a_migration_that_fails_leaves_nothing_half_done(empty_dsn):
    execute(empty_dsn, "create schema trioboss")
    execute(empty_dsn, "create table trioboss.archive (mine int)")

    with pytest.raises(trioboss.StatementFailed, match="already exists"):
        open_and_close(empty_dsn)

    assert execute(empty_dsn, "select tablename from pg_tables where schemaname = 'trioboss'") == [
        ("archive",)
    ]


def test_an_upgrade_that_fails_leaves_the_version_before(empty_dsn, migrated, monkeypatch):
    open_and_close(empty_dsn)
    broken = attrs.evolve(
        plans.migrations()[-1], version=LATEST + 1, up="alter table trioboss.queue add x int; select 1/0;"
    )
    monkeypatch.setattr(migrate, "migrations", lambda: [*plans.migrations(), broken])
    monkeypatch.setattr(migrate, "LATEST", LATEST + 1)

    with pytest.raises(trioboss.StatementFailed, match="division by zero"):
        open_and_close(empty_dsn)

    assert dump(empty_dsn) == migrated
    assert execute(empty_dsn, "select max(version) from trioboss.version") == [(LATEST,)]


def test_an_upgrade_applies_what_is_missing_and_no_more(empty_dsn, monkeypatch):
    open_and_close(empty_dsn)
    more = attrs.evolve(
        plans.migrations()[-1], version=LATEST + 1, up="alter table trioboss.queue add x int;\n"
    )
    monkeypatch.setattr(migrate, "migrations", lambda: [*plans.migrations(), more])
    monkeypatch.setattr(migrate, "LATEST", LATEST + 1)

    open_and_close(empty_dsn)

    assert execute(empty_dsn, "select x from trioboss.queue") == []
    assert execute(empty_dsn, "select max(version) from trioboss.version") == [(LATEST + 1,)]


# -- migrate=False


@pytest.fixture
def versions(empty_dsn):
    """Bring the schema to a version."""

    def bring(version):
        for step in plans.migrations():
            if version is not None and step.version <= version:
                execute(empty_dsn, step.apply_text("trioboss"))
        if version is not None and version > LATEST:
            execute(empty_dsn, f"insert into trioboss.version values ({version})")

    return bring


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (None, "schema 'trioboss' is not installed: run `trioboss migrate`"),
        (1, f"schema 'trioboss' is at version 1, {LATEST} is needed: run `trioboss migrate`"),
        (LATEST - 1, f"schema 'trioboss' is at version {LATEST - 1}, {LATEST} is needed"),
        (LATEST + 1, f"schema 'trioboss' is at version {LATEST + 1}, newer than {LATEST}: upgrade trioboss"),
    ],
)
async def test_without_migrating_any_other_version_is_refused(empty_dsn, versions, found, message):
    versions(found)
    before = dump(empty_dsn)

    with pytest.raises(trioboss.SchemaOutOfDate, match=message) as refusal:
        open_and_close(empty_dsn, migrate=False)
    with pytest.raises(trioboss.SchemaOutOfDate, match=message):
        async with trioboss.open_boss(empty_dsn, migrate=False):
            pass

    assert (refusal.value.schema, refusal.value.found, refusal.value.needed) == ("trioboss", found, LATEST)
    assert dump(empty_dsn) == before


def test_without_migrating_the_right_version_is_fine(empty_dsn, versions):
    versions(LATEST)

    open_and_close(empty_dsn, migrate=False)


async def test_a_newer_schema_is_refused_even_when_migrating(empty_dsn, versions):
    versions(LATEST + 1)

    with pytest.raises(trioboss.SchemaOutOfDate, match="upgrade trioboss"):
        open_and_close(empty_dsn)
    with pytest.raises(trioboss.SchemaOutOfDate, match="upgrade trioboss"):
        async with trioboss.open_boss(empty_dsn):
            pass


@pytest.mark.parametrize("found", [1, LATEST - 1])
def test_an_older_schema_is_brought_up_to_date(empty_dsn, versions, migrated, found):
    versions(found)

    open_and_close(empty_dsn)

    assert dump(empty_dsn) == migrated


# -- by psql


def test_the_construction_plan_makes_what_a_boss_makes(empty_dsn, migrated):
    run_psql(empty_dsn, construction_plans())

    assert dump(empty_dsn) == migrated
    open_and_close(empty_dsn, migrate=False)


def test_a_plan_for_another_schema_makes_only_that(empty_dsn):
    run_psql(empty_dsn, construction_plans("My_Jobs"))

    assert schemas(empty_dsn) == {"public", "My_Jobs"}
    with trioboss.SyncBoss(empty_dsn, schema="My_Jobs", migrate=False) as boss:
        boss.create_queue("q")
        boss.send("q", 1)
        assert [job.data for job in boss.fetch("q")] == [1]


@pytest.mark.parametrize("found", [1, LATEST - 1])
def test_a_migration_plan_goes_from_any_version_to_the_latest(empty_dsn, versions, migrated, found):
    versions(found)

    run_psql(empty_dsn, migration_plans("trioboss", found))

    assert dump(empty_dsn) == migrated


def test_the_plan_from_the_latest_version_changes_nothing(empty_dsn, versions, migrated):
    versions(LATEST)

    run_psql(empty_dsn, migration_plans("trioboss", LATEST))

    assert dump(empty_dsn) == migrated


def test_a_plan_that_fails_leaves_nothing_half_done(empty_dsn):
    run_psql(empty_dsn, construction_plans())
    before = dump(empty_dsn)

    with contextlib.suppress(AssertionError):
        run_psql(empty_dsn, construction_plans())

    assert dump(empty_dsn) == before


def test_rollback_plans_go_back_step_by_step_to_nothing_and_forward_again(empty_dsn, migrated):
    before = {}
    for step in plans.migrations():
        before[step.version] = dump(empty_dsn)
        execute(empty_dsn, step.apply_text("trioboss"))

    for version in range(LATEST, 0, -1):
        run_psql(empty_dsn, rollback_plans("trioboss", version))
        assert dump(empty_dsn) == before[version]
        if version > 1:
            assert execute(empty_dsn, "select max(version) from trioboss.version") == [(version - 1,)]

    run_psql(empty_dsn, construction_plans())
    assert dump(empty_dsn) == migrated


def test_rollbacks_remove_everything(empty_dsn):
    with trioboss.SyncBoss(empty_dsn) as boss:
        boss.create_queue("dead")
        boss.create_queue("q", policy="stately", partition=True, dead_letter="dead", retry_limit=0)
        boss.send_throttled("q", 1, 60)
        boss.fail("q", boss.fetch("q"))

    for version in range(LATEST, 0, -1):
        run_psql(empty_dsn, rollback_plans("trioboss", version))

    assert schemas(empty_dsn) == {"public"}


@pytest.mark.parametrize("version", [0, LATEST + 1, "2", None])
def test_a_version_that_does_not_exist_cannot_be_rolled_back(version):
    with pytest.raises(ValueError, match=r"^version: "):
        rollback_plans("trioboss", version)


@pytest.mark.parametrize("version", [-1, LATEST + 1, "2", None])
def test_a_version_that_does_not_exist_cannot_be_upgraded(version):
    with pytest.raises(ValueError, match=r"^version: "):
        migration_plans("trioboss", version)


def test_migrations_are_numbered_without_gaps_and_each_can_be_rolled_back():
    steps = plans.migrations()

    assert [step.version for step in steps] == list(range(1, LATEST + 1))
    assert all(step.up.strip() and step.down.strip() for step in steps)
