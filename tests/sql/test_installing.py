"""Installing into schemas of others, leaving them, and the versions that a program in mid-deployment accepts."""

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import trioboss
from trioboss.sql.plans import LATEST, migration_plans, rollback_plans
from trioboss.testing import temporary_database

ROLE = "installer"


@pytest.fixture(scope="module")
def role(server_dsn):
    """A role that may log in and nothing else."""
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        owner.execute(f"create role {ROLE} login")
        yield ROLE
        owner.execute(f"drop role {ROLE}")


@pytest.fixture
def prepared_dsn(server_dsn, role):
    """The dsn, for that role, of a database in which it owns the schema jobs and may create no others."""
    with temporary_database(server_dsn) as dsn:
        execute(dsn, f"create schema jobs authorization {role}")
        yield make_conninfo(dsn, user=role)


def execute(dsn, text):
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(text)
        return cursor.fetchall() if cursor.description else []


def tables(dsn, schema="trioboss"):
    return [
        name
        for (name,) in execute(
            dsn, f"select tablename from pg_tables where schemaname = '{schema}' order by 1"
        )
    ]


def exists(dsn, schema):
    return execute(dsn, f"select to_regnamespace('{schema}') is not null") == [(True,)]


# -- a schema that exists


def test_a_schema_that_exists_needs_no_right_to_create_schemas(prepared_dsn):
    with trioboss.SyncBoss(prepared_dsn, schema="jobs") as boss:
        boss.create_queue("q", partition=True)
        assert boss.send("q")

    with (
        pytest.raises(trioboss.SchemaOutOfDate, match=r"'other' is not installed, and .* role may not"),
        trioboss.SyncBoss(prepared_dsn, schema="other"),
    ):
        pass


async def test_without_create_schema_a_missing_schema_is_refused_with_its_name(prepared_dsn):
    with (
        pytest.raises(trioboss.SchemaOutOfDate, match=r"'other' does not exist: .*CREATE SCHEMA"),
        trioboss.SyncBoss(prepared_dsn, schema="other", create_schema=False),
    ):
        pass

    async with trioboss.open_boss(prepared_dsn, schema="jobs", create_schema=False) as boss:
        assert await boss.schema_version() == LATEST


def test_a_schema_that_somebody_else_made_stays_when_everything_is_removed(prepared_dsn):
    with trioboss.SyncBoss(prepared_dsn, schema="jobs"):
        pass

    execute(prepared_dsn, rollback_plans("jobs", LATEST, to=0))

    assert exists(prepared_dsn, "jobs")
    assert tables(prepared_dsn, "jobs") == []


def test_a_schema_that_holds_things_of_others_stays_with_them(empty_dsn):
    with trioboss.SyncBoss(empty_dsn) as boss:
        boss.create_queue("q", partition=True)
    execute(empty_dsn, "create table trioboss.theirs (x int)")

    execute(empty_dsn, rollback_plans("trioboss", LATEST, to=0))

    assert tables(empty_dsn) == ["theirs"]


def test_a_schema_that_trioboss_made_goes(empty_dsn):
    with trioboss.SyncBoss(empty_dsn):
        pass

    execute(empty_dsn, rollback_plans("trioboss", LATEST, to=0))

    assert not exists(empty_dsn, "trioboss")


def test_nothing_is_removed_while_something_of_others_depends_on_it(empty_dsn):
    with trioboss.SyncBoss(empty_dsn):
        pass
    execute(empty_dsn, "create view public.mine as select id from trioboss.job")
    before = tables(empty_dsn)

    with pytest.raises(psycopg.errors.DependentObjectsStillExist):
        execute(empty_dsn, rollback_plans("trioboss", LATEST, to=0))

    assert tables(empty_dsn) == before


@pytest.mark.parametrize("to", [-1, LATEST, LATEST + 1])
def test_a_rollback_goes_back(to):
    with pytest.raises(ValueError, match=r"^to: "):
        rollback_plans("trioboss", LATEST, to=to)


# -- is_installed, and plans with nothing to do


def test_an_empty_database_opens_and_is_not_installed(empty_dsn):
    with trioboss.SyncBoss(empty_dsn, migrate=False) as boss:
        assert not boss.is_installed()
        assert boss.schema_version() is None
        with pytest.raises(trioboss.SchemaOutOfDate, match="trioboss migrate"):
            boss.get_queues()
        with pytest.raises(trioboss.SchemaOutOfDate, match="trioboss migrate"), boss.transaction():
            pass

        with trioboss.SyncBoss(empty_dsn):
            pass
        assert boss.is_installed()
        assert boss.get_queues() == []


def test_the_plan_from_the_latest_version_says_that_there_is_nothing_to_do():
    assert migration_plans("jobs", LATEST) == f"-- schema 'jobs' is at version {LATEST}: nothing to do\n"


# -- rolling upgrades


@pytest.mark.parametrize("oldest", [1, LATEST])
async def test_a_newer_schema_that_is_declared_compatible_is_accepted(dsn, oldest):
    execute(dsn, f"insert into trioboss.version (version, compatible) values ({LATEST + 1}, {oldest})")

    for migrate in (True, False):
        with trioboss.SyncBoss(dsn, migrate=migrate) as boss:
            boss.create_queue("q")
            assert boss.schema_version() == LATEST + 1
        async with trioboss.open_boss(dsn, migrate=migrate) as boss:
            assert await boss.send("q")


@pytest.mark.parametrize("oldest", ["null", str(LATEST + 1)])
async def test_any_other_newer_schema_is_refused(dsn, oldest):
    execute(dsn, f"insert into trioboss.version (version, compatible) values ({LATEST + 1}, {oldest})")

    for migrate in (True, False):
        with trioboss.SyncBoss(dsn, migrate=False) as boss, pytest.raises(trioboss.SchemaOutOfDate):
            boss.get_queues()
        with pytest.raises(trioboss.SchemaOutOfDate, match="upgrade trioboss"):
            async with trioboss.open_boss(dsn, migrate=migrate):
                pass
