"""The commands about the schema: plans, rollback, uninstall."""

import json

import psycopg

import trioboss


def tables(dsn):
    with psycopg.connect(dsn) as conn:
        found = conn.execute("select tablename from pg_tables where schemaname = 'trioboss'").fetchall()
    return [name for (name,) in found]


def test_uninstall_shows_its_plan_asks_and_leaves_things_of_others(run, dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("create table trioboss.theirs (x int)")

    code, plan, _ = run("uninstall", "--plan")
    assert (code, plan) == (0, trioboss.rollback_plans("trioboss", to=0))
    assert run("uninstall")[0] == 2
    assert "queue" in tables(dsn)

    code, printed, _ = run("uninstall", "--yes")
    assert (code, printed) == (0, "everything of trioboss is removed from schema 'trioboss'\n")
    assert tables(dsn) == ["theirs"]
    assert run("uninstall", "--yes")[0] == 1


def test_uninstall_changes_nothing_while_others_depend_on_it(run, dsn):
    with psycopg.connect(dsn) as conn:
        conn.execute("create view public.mine as select id from trioboss.job")
    before = tables(dsn)

    code, printed, errors = run("uninstall", "--yes")

    assert (code, printed) == (1, "")
    assert "view public.mine depends on view trioboss.job; nothing was changed" in errors
    assert tables(dsn) == before


def test_rollback_goes_back_and_migrate_forward_again(run, dsn):
    latest = json.loads(run("version", "--json")[1])["version"]

    assert run("rollback", "--plan")[1] == trioboss.rollback_plans("trioboss")
    assert run("rollback", "--yes")[:2] == (0, f"schema 'trioboss' is at version {latest - 1}\n")
    code, printed, _ = run("version")
    assert (code, f"is at version {latest - 1}; run `trioboss migrate`" in printed) == (1, True)
    assert run("rollback", "--to", "1", "--yes")[0] == 0
    assert run("migrate")[0] == 0
    assert json.loads(run("version", "--json")[1])["fits"]


def test_plans_need_no_database(run):
    nowhere = "host=/nowhere"

    assert run("plans", "install", dsn=nowhere)[1] == trioboss.construction_plans()
    assert run("plans", "migrate", "--from", "2", dsn=nowhere)[1] == trioboss.migration_plans("trioboss", 2)
    assert run("plans", "rollback", "--schema", "jobs", dsn=nowhere)[1] == trioboss.rollback_plans("jobs")
    assert run("plans", "uninstall", dsn=nowhere)[1] == trioboss.rollback_plans("trioboss", to=0)
