"""`trioboss migrate MODULE:APP`: what an app declares as one plan, run by the admin; and what a worker is told."""

import sys

import psycopg
import pytest
import trio
from psycopg.conninfo import make_conninfo
from worker_helpers import HERE

import trioboss
from trioboss.cli import main
from trioboss.sql.plans import LATEST

APP = """
import trioboss
app = trioboss.App({label})

@app.schedule("0 3 * * *", tz="Europe/Berlin")
@app.worker("nightly", retry_limit=5)
async def nightly(job): ...

@app.worker("email", dead_letter="graves", expire_in=60)
async def email(job): ...

@app.worker("graves")
async def graves(job): ...
"""
OTHER = """
import trioboss
app = trioboss.App()

@app.worker("nightly", retry_limit=9)
async def nightly(job): ...
"""


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Write an app into a module of its own; return how the command line finds it."""
    numbers = iter(range(100))

    def write(text, label=""):
        name = f"deployed_{tmp_path.name.replace('-', '_')}_{next(numbers)}"
        (tmp_path / f"{name}.py").write_text(text.replace("{label}", label))
        return f"{name}:app"

    monkeypatch.syspath_prepend(tmp_path)
    return write


def test_the_plan_is_shown_and_nothing_is_done(run, app, sync_boss):
    code, printed, _ = run("migrate", app(APP), "--plan")

    assert code == 0
    assert printed.splitlines() == [
        "create queue 'nightly': retry_limit=5",
        "create queue 'graves'",
        "create queue 'email': dead_letter='graves', expire_in=60",
        "create schedule 'nightly': 0 3 * * * (Europe/Berlin)",
    ]
    assert sync_boss.get_queues() == []


def test_the_plan_of_an_empty_database_has_the_schema_too(run, app, empty_dsn):
    path = app(APP)

    code, printed, _ = run("migrate", path, "--plan", dsn=empty_dsn)
    assert code == 0
    assert printed.splitlines() == [
        f"install schema 'trioboss': version 0 → {LATEST}",
        "create queue 'nightly': retry_limit=5",
        "create queue 'graves'",
        "create queue 'email': dead_letter='graves', expire_in=60",
        "create schedule 'nightly': 0 3 * * * (Europe/Berlin)",
    ]
    assert run("version", dsn=empty_dsn)[0] == 1

    code, printed, _ = run("migrate", path, dsn=empty_dsn)
    assert (code, "4 changes made" in printed) == (0, True)
    assert run("version", dsn=empty_dsn)[0] == 0


def test_the_plan_for_an_older_schema_has_the_options_too(run, app, dsn):
    with psycopg.connect(dsn) as owner:
        owner.execute(f"delete from trioboss.version where version = {LATEST}")

    code, printed, _ = run("migrate", app(APP), "--plan")

    assert code == 0
    assert printed.splitlines() == [
        f"migrate schema 'trioboss': version {LATEST - 1} → {LATEST}",
        "create or update queue 'nightly': retry_limit=5",
        "create or update queue 'graves'",
        "create or update queue 'email': dead_letter='graves', expire_in=60",
        "create or update schedule 'nightly': 0 3 * * * (Europe/Berlin)",
    ]


def test_everything_is_made_once(run, app, sync_boss):
    path = app(APP)

    assert run("migrate", path)[0] == 0
    assert [queue.name for queue in sync_boss.get_queues()] == ["email", "graves", "nightly"]
    assert sync_boss.get_queue("email").dead_letter == "graves"
    (schedule,) = sync_boss.get_schedules()

    code, printed, _ = run("migrate", path)
    assert (code, printed) == (0, "nothing to do: 3 queues and 1 schedule are as declared\n")
    assert sync_boss.get_schedules() == [schedule]


def test_changed_options_are_changed_and_shown(run, app, sync_boss):
    run("migrate", app(APP, 'label="mine"'))

    changed = APP.replace("retry_limit=5", "retry_limit=7").replace("0 3 * * *", "0 4 * * *")
    code, printed, _ = run("migrate", app(changed, 'label="mine"'))

    assert code == 0
    assert "update queue 'nightly': retry_limit 5 → 7\n" in printed
    assert "update schedule 'nightly': cron '0 3 * * *' → '0 4 * * *'\n" in printed
    assert sync_boss.get_queue("nightly").retry_limit == 7
    assert sync_boss.get_schedules()[0].cron == "0 4 * * *"


def test_a_schedule_that_is_no_longer_declared_is_reported_and_pruned_only_when_asked(run, app, sync_boss):
    run("migrate", app(APP, 'label="mine"'))
    less = APP.replace('@app.schedule("0 3 * * *", tz="Europe/Berlin")', "")
    sync_boss.schedule("email", "0 1 * * *")  # of somebody else

    code, printed, _ = run("migrate", app(less, 'label="mine"'))
    assert code == 0
    assert "report schedule 'nightly': no longer declared; --prune deletes it" in printed
    assert len(sync_boss.get_schedules()) == 2

    code, printed, _ = run("migrate", app(less, 'label="mine"'), "--prune")
    assert (code, "delete schedule 'nightly'" in printed) == (0, True)
    assert [schedule.queue for schedule in sync_boss.get_schedules()] == ["email"]


def test_a_queue_that_is_no_longer_declared_is_reported_and_never_deleted(run, app, sync_boss):
    run("migrate", app(APP, 'label="mine"'))

    _, printed, _ = run("migrate", app(OTHER.replace("App()", 'App(label="mine")')), "--prune")

    assert "report queue 'email': no longer declared; `trioboss delete-queue email` deletes it" in printed
    assert sync_boss.get_queue("email") is not None


def test_an_app_without_a_label_of_its_own_does_not_prune(run, app, sync_boss, tmp_path, monkeypatch):
    """The modules of two services have the same name, and so would their apps have the same label."""
    first = app(APP)
    run("migrate", first)
    name = first.partition(":")[0]
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / f"{name}.py").write_text(OTHER.replace("nightly", "other"))
    monkeypatch.syspath_prepend(tmp_path / "second")
    monkeypatch.delitem(sys.modules, name)

    code, printed, errors = run("migrate", first, "--prune")
    assert (code, printed) == (2, "")
    assert f"the app has no label of its own: '{first}' is the name of its module" in errors
    assert f"App(label='{first}')" in errors

    code, printed, _ = run("migrate", first)
    assert code == 0
    assert (
        f"report schedule 'nightly': declared by another app or version with the label '{first}'; "
        "`trioboss unschedule nightly` deletes it\n"
    ) in printed
    assert [schedule.queue for schedule in sync_boss.get_schedules()] == ["nightly"]


def test_a_queue_that_somebody_else_made_stays_unless_it_is_adopted(run, app, sync_boss):
    sync_boss.create_queue("nightly", retry_limit=1)
    path = app(OTHER)

    code, printed, errors = run("migrate", path)
    assert code == 1
    assert printed.splitlines() == [
        "leave queue 'nightly': it is not declared by an app, and it differs: retry_limit 1 → 9",
        "no change was made",
    ]
    assert "--adopt" in errors
    assert sync_boss.get_queue("nightly").retry_limit == 1

    assert run("migrate", path, "--adopt")[0] == 0
    assert sync_boss.get_queue("nightly").retry_limit == 9
    assert run("migrate", path)[0] == 0


def test_the_queue_of_another_app_stays_as_it_is(run, app, sync_boss):
    first = app(APP)
    run("migrate", first)

    code, printed, _ = run("migrate", app(OTHER))

    assert code == 1
    assert f"app {first!r} declares it" in printed
    assert sync_boss.get_queue("nightly").retry_limit == 5


def test_a_policy_that_cannot_be_changed_is_a_mistake_and_changes_nothing(run, app, sync_boss):
    sync_boss.create_queue("email", policy="short")

    code, printed, errors = run("migrate", app(APP.replace("expire_in=60", "policy='stately'")))

    assert (code, printed) == (2, "")
    assert "policy cannot be changed" in errors
    assert len(sync_boss.get_queues()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:app"], "cannot import"),
        (["--prune"], "name it as MODULE:APP"),
        (["worker_apps:declared", "--prune"], "has no label of its own"),
        (["test_deploying:nothing"], "is not a trioboss.App"),
    ],
)
def test_a_mistake_is_one_sentence(run, arguments, message):
    code, printed, errors = run("migrate", *arguments)

    assert (code, printed) == (2, "")
    line, _ = errors.splitlines()  # and the address of a page
    assert message in line


# -- roles


@pytest.fixture(scope="module")
def roles(server_dsn):
    with psycopg.connect(server_dsn, autocommit=True) as owner:
        for name in ("deploy_admin", "deploy_worker"):
            owner.execute(f"create role {name} login")
        yield
        for name in ("deploy_admin", "deploy_worker"):
            owner.execute(f"drop role {name}")


@pytest.fixture
def granted(dsn, roles, capsys):
    assert (
        main(["grants", "--dsn", dsn, "--apply", "--admin", "deploy_admin", "--worker", "deploy_worker"]) == 0
    )
    capsys.readouterr()
    return {name: make_conninfo(dsn, user=f"deploy_{name}") for name in ("admin", "worker")}


async def test_a_worker_whose_app_needs_a_queue_names_the_command_and_works_after_it(granted, workers):
    """The worker's role may not create queues, the admin's may."""
    workers.dsn = granted["worker"]
    worker = await workers.start(app="worker_apps:declared")
    assert await worker.ends() == 2
    (line,) = worker.matching("trioboss: ")
    assert "create queue 'declared'" in line
    assert "run `trioboss migrate worker_apps:declared` as the role that owns schema 'trioboss'" in line

    command = [sys.executable, "-m", "trioboss", "migrate", "worker_apps:declared", "--dsn", granted["admin"]]
    deployed = await trio.run_process(command, capture_stdout=True, cwd=HERE)
    assert b"2 changes made" in deployed.stdout

    worker = await workers.start(app="worker_apps:declared")
    async with trioboss.open_boss(granted["worker"], migrate=False) as boss:
        id = await boss.send("declared", 1)
        await worker.prints(id, "completed")
    worker.signal()
    assert await worker.ends() == 0


def test_migrating_an_app_as_a_worker_says_who_may(granted, run):
    code, _, errors = run("migrate", "worker_apps:declared", dsn=granted["worker"])

    assert code == 2
    assert "permission denied to this database role: run it as the role that owns the schema" in errors


@pytest.mark.parametrize("is_installed", [True, False])
async def test_a_worker_on_an_older_schema_that_it_may_not_migrate_names_the_versions_and_the_command(
    granted, workers, dsn, empty_dsn, is_installed
):
    if is_installed:
        with psycopg.connect(dsn) as owner:
            owner.execute(f"delete from trioboss.version where version = {LATEST}")
    found = f"is at version {LATEST - 1}, {LATEST} is needed" if is_installed else "is not installed"
    workers.dsn = make_conninfo(dsn if is_installed else empty_dsn, user="deploy_worker")

    worker = await workers.start(app="worker_apps:declared")

    assert await worker.ends() == 2
    line, _ = worker.lines  # and the address of a page
    assert line == (
        f"trioboss: schema 'trioboss' {found}, and this database role may not change that: "
        f"run `trioboss migrate` as a role that {'owns' if is_installed else 'may create'} it"
    )


# -- rolling upgrades of an app


def state_of(boss):
    """All that a deployment decides about."""
    return (boss.get_queues(), boss.get_schedules())


async def test_an_old_worker_that_restarts_after_a_deployment_works_and_changes_nothing(
    granted, workers, run, app, sync_boss, dsn, tmp_path
):
    """Neither the worker's role, which may write schedules, nor the owner's, which may change queues, undoes it."""
    old = app(APP, 'label="mine"')
    changed = APP.replace("retry_limit=5", "retry_limit=7").replace(
        '@app.schedule("0 3 * * *", tz="Europe/Berlin")', ""
    )
    new = app(changed, 'label="mine"')
    for arguments in (["migrate", old], ["migrate", new, "--prune"]):
        assert (await trio.to_thread.run_sync(run, *arguments))[0] == 0
    before = state_of(sync_boss)

    started = []
    for workers.dsn in (granted["worker"], dsn):
        started.append(await workers.start(app=old, PYTHONPATH=str(tmp_path)))
    for worker in started:
        line = await worker.prints(
            "the database was migrated for another version of app 'mine', after this one"
        )
        assert "this worker changes nothing" in line
        assert "update queue 'nightly': retry_limit 7 → 5; create schedule 'nightly': 0 3 * * *" in line
        await worker.prints("taking jobs of")
        worker.signal()
    assert [await worker.ends() for worker in started] == [0, 0]
    assert state_of(sync_boss) == before


# -- rolling upgrades of trioboss


async def test_a_worker_that_restarts_in_mid_deployment_accepts_a_newer_compatible_schema(workers, dsn):
    """The schema is already that of the next version."""
    with psycopg.connect(dsn) as owner:
        owner.execute(f"insert into trioboss.version (version, compatible) values ({LATEST + 1}, {LATEST})")
    worker = await workers.start(app="worker_apps:declared")
    async with trioboss.open_boss(dsn) as boss:
        await worker.prints("taking jobs of 1 queue")
        id = await boss.send("declared", 1)
        await worker.prints(id, "completed")
    worker.signal()
    assert await worker.ends() == 0


async def test_a_worker_ends_where_the_newer_schema_is_not_compatible(workers, dsn):
    with psycopg.connect(dsn) as owner:
        owner.execute(f"insert into trioboss.version (version) values ({LATEST + 1})")

    worker = await workers.start(app="worker_apps:declared")

    assert await worker.ends() == 1
    line, _ = worker.lines  # and the address of a page
    assert line == (
        f"trioboss: schema 'trioboss' is at version {LATEST + 1}, newer than {LATEST}: upgrade trioboss"
    )
