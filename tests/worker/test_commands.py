"""The command line: what each command does, and that a user's mistake is one sentence and an exit code."""

import gc
import io
import json
import subprocess
import sys
from types import SimpleNamespace

import psycopg
import pytest
import trio

import trioboss
from trioboss.cli import main
from trioboss.cli.logs import LogHandler
from trioboss.cli.parser import make_parser
from trioboss.cli.processes import _child_command
from trioboss.cli.worker import _spare_collector

PASSWORD = "pw-canary-7341"
COMMANDS = (
    *(
        "worker",
        "demo",
        "send",
        "queues",
        "jobs",
        "why",
        "retry",
        "cancel",
        "resume",
        "delete",
        "pause",
        "unpause",
    ),
    *("schedules", "migrate", "doctor", "grants", "rollback", "version", "plans", "uninstall", "pipeline"),
    *("create-queue", "update-queue", "delete-queue", "schedule", "unschedule", "redrive"),
    *("workers", "show", "top", "dashboard"),
)


# -- commands


def test_send_prints_the_id(run, sync_boss, queue):
    code, printed, _ = run("send", queue, '{"to": "you"}', "-o", "priority=5", "-o", "singleton_key=k")

    job = sync_boss.get_job_by_id(queue, printed.strip())
    assert code == 0
    assert (job.data, job.priority, job.singleton_key) == ({"to": "you"}, 5, "k")


@pytest.mark.parametrize(("given", "key"), [("42", "42"), ("true", "true"), ('"k"', "k"), ("null", None)])
def test_options_that_are_text_are_not_read_as_json(run, sync_boss, queue, given, key):
    _, printed, _ = run("send", queue, "-o", f"singleton_key={given}")

    assert sync_boss.get_job_by_id(queue, printed.strip()).singleton_key == key


def test_send_without_data(run, sync_boss, queue):
    _, printed, _ = run("send", queue)

    assert sync_boss.get_job_by_id(queue, printed.strip()).data is None


def test_queues_lists_them_with_the_number_of_their_jobs(run, sync_boss, queue):
    sync_boss.send(queue)

    code, printed, _ = run("queues")
    head, row = printed.splitlines()
    assert code == 0
    assert dict(zip(head.split(), row.split(), strict=True))["ready"] == "1"

    (listed,) = json.loads(run("queues", "--json")[1])
    assert (listed["queue"], listed["ready"], listed["policy"]) == ("mail", 1, "standard")


def test_jobs_lists_them_by_state_and_shows_payloads_only_when_asked(run, sync_boss, queue):
    id = sync_boss.send(queue, {"secret": 5})

    code, printed, _ = run("jobs", queue, "--state", "created")
    assert code == 0
    assert str(id) in printed
    assert "secret" not in printed
    assert '"secret"' in run("jobs", queue, "--data")[1]  # as JSON
    assert "(none)" in run("jobs", queue, "--state", "failed")[1]
    assert [job["id"] for job in json.loads(run("jobs", queue, "--json")[1])] == [str(id)]


def test_why_explains_what_a_job_waits_for(run, sync_boss, queue):
    id = sync_boss.send(queue, start_after=3600)

    code, printed, _ = run("why", queue, str(id))
    assert code == 0
    assert "deferred" in printed
    assert json.loads(run("why", queue, str(id), "--json")[1])


def test_cancel_resume_retry_and_delete(run, sync_boss, queue):
    id = sync_boss.send(queue)

    def state():
        job = sync_boss.get_job_by_id(queue, id)
        return None if job is None else job.state.value

    assert run("cancel", queue, str(id))[:2] == (0, "1 of 1 cancelled\n")
    assert state() == "cancelled"
    assert run("resume", queue, str(id))[:2] == (0, "1 of 1 resumed\n")
    assert state() == "created"
    (job,) = sync_boss.fetch(queue)
    sync_boss.fail(queue, job)
    assert state() == "failed"
    assert run("retry", queue, str(id))[:2] == (0, "1 of 1 retried\n")
    assert state() == "retry"
    assert run("delete", queue, str(id))[:2] == (0, "1 of 1 deleted\n")
    assert state() is None


def test_pause_and_unpause(run, sync_boss, queue):
    sync_boss.send(queue)

    assert run("pause", queue)[0] == 0
    assert sync_boss.fetch(queue) == []
    assert run("unpause", queue)[0] == 0
    assert len(sync_boss.fetch(queue)) == 1


async def add_schedule(dsn):
    async with trioboss.open_boss(dsn) as boss:
        await boss.schedule("mail", "0 3 * * *", tz="Europe/Berlin", key="nightly")


def test_schedules_lists_them(run, dsn, queue):
    trio.run(add_schedule, dsn)

    code, printed, _ = run("schedules")
    assert code == 0
    assert "0 3 * * *" in printed
    (listed,) = json.loads(run("schedules", "--json")[1])
    assert (listed["key"], listed["timezone"]) == ("nightly", "Europe/Berlin")


def test_schedules_lists_one_whose_data_is_nested_deeply(run, dsn, queue):
    """Plain SQL may write it."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "insert into trioboss.schedule (queue, cron, data) values ('mail', '0 3 * * *', %s)",
            ["[" * 900 + "]" * 900],
        )

    assert run("schedules")[0] == run("schedules", "--json")[0] == 0


def test_migrate_creates_the_schema_and_its_plan_only_prints(run, empty_dsn):
    code, plan, _ = run("migrate", "--plan", dsn=empty_dsn)
    assert code == 0
    assert plan == trioboss.migration_plans("trioboss", 0)
    assert run("queues", dsn=empty_dsn)[0] == 1

    assert run("migrate", dsn=empty_dsn)[0] == 0
    assert "nothing to do" in run("migrate", "--plan", dsn=empty_dsn)[1]
    assert run("queues", dsn=empty_dsn)[0] == 0


def test_a_server_of_the_environment_is_migrated_only_by_migrate(run, dsn, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_DSN", dsn)

    code, _, errors = run("queues", "--schema", "typo_schema", dsn=None)

    assert (code, "trioboss migrate" in errors) == (1, True)
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select to_regnamespace('typo_schema')").fetchone() == (None,)


def test_grants_prints_sql(run):
    code, printed, _ = run("grants", "--worker", "somebody")

    assert code == 0
    assert "GRANT" in printed


def test_another_schema(run, dsn):
    assert run("migrate", "--schema", "other")[0] == 0
    assert "(none)" in run("queues", "--schema", "other")[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help_text(run, command):
    code, printed, _ = run(command, "-h", dsn=None)

    assert code == 0
    assert "usage: trioboss " + command in printed


def test_as_a_module_it_is_the_same():
    shown = subprocess.run(
        [sys.executable, "-m", "trioboss", "--version"], capture_output=True, text=True, check=True
    )

    assert shown.stdout == f"trioboss {trioboss.__version__}\n"


def keep_logging(level, as_json, color):
    """Leave the logging of the tests as it is."""
    return LogHandler(io.StringIO())


@pytest.mark.parametrize(
    ("app", "arguments", "message"),
    [
        ("worker_apps", [], "is not MODULE:APP"),
        (":app", [], "is not MODULE:APP"),
        (".x:app", [], "is not MODULE:APP"),
        ("no_such_module:app", [], "cannot import"),
        ("no_such_package.module:app", [], "cannot import"),
        ("worker_apps:nobody", [], "is not a trioboss.App"),
        ("worker_apps:nothing", [], "declares no worker"),
        ("worker_apps:app", ["-q", "other"], "no worker for 'other'"),
        ("worker_apps:app", ["--processes", "0"], "not a number of processes"),
        ("worker_apps:app", ["--health", "much"], "is not [HOST:]PORT"),
        ("worker_apps:app", ["--concurrency", "0"], "concurrency"),
        ("worker_apps:app", ["--wait", "nan"], "wait"),
        ("worker_apps:app", ["--wait=-3"], "wait"),
        ("worker_apps:app", ["--grace", "nan"], "grace"),
    ],
)
def test_a_mistake_of_the_worker_is_one_sentence_and_exit_code_2(run, monkeypatch, app, arguments, message):
    monkeypatch.setattr("trioboss.cli.worker.set_up_logging", keep_logging)

    code, printed, errors = run("worker", app, *arguments)

    assert (code, printed) == (2, "")
    line, _ = errors.splitlines()  # and the address of a page
    assert line.startswith("trioboss: ")
    assert message in line


@pytest.fixture
def boss_options(monkeypatch):
    """The options with which a worker opens its boss, which is then refused."""
    given = {}

    def open_boss(dsn, **options):
        given.update(options)
        raise trioboss.UsageError("enough")

    monkeypatch.setattr("trioboss.cli.worker.set_up_logging", keep_logging)
    monkeypatch.setattr("trioboss.cli.worker.open_boss", open_boss)
    monkeypatch.setattr("trioboss.cli.worker.os._exit", sys.exit)
    return given


def test_the_times_of_a_worker_reach_its_boss(run, boss_options):
    times = ["--presence-grace", "7", "--grace", "3", "--wait", "2"]

    assert run("worker", "worker_apps:app", *times)[2].startswith("trioboss: enough\n")
    assert [boss_options[name] for name in ("presence_grace", "grace", "connect_wait")] == [7, 3, 2]

    # And through the command of each of several processes.
    arguments = make_parser().parse_args(["worker", "worker_apps:app", "--processes", "2", *times])
    child = make_parser().parse_args(_child_command(arguments, 1)[3:])
    assert (child.presence_grace, child.grace, child.wait) == (7, 3, 2)


def test_without_a_presence_grace_the_default_of_the_boss_counts(run, boss_options):
    run("worker", "worker_apps:app")

    assert "grace" in boss_options
    assert "presence_grace" not in boss_options


@pytest.mark.parametrize("code", ["import no_such_thing", "def f(:", "1 / 0", "from os import nothing"])
def test_a_module_that_cannot_be_imported_shows_its_own_traceback(capsys, monkeypatch, tmp_path, dsn, code):
    monkeypatch.setattr("trioboss.cli.worker.set_up_logging", keep_logging)
    monkeypatch.syspath_prepend(tmp_path)
    tmp_path.joinpath("users_module.py").write_text(code)

    ended = main(["worker", "users_module:app", "--dsn", dsn])

    *shown, line, _ = capsys.readouterr().err.splitlines()
    assert ended == 2
    assert line.startswith("trioboss: app: cannot import 'users_module': ")
    assert any("users_module.py" in line for line in shown)
    assert not any("trioboss" in line.partition("File ")[2] for line in shown)


# -- psql


def test_psql_runs_statements_and_files_and_ends_at_the_first_error(dsn, capfd, tmp_path):
    file = tmp_path / "two.sql"
    file.write_text("SELECT 2 AS two")

    assert main(["psql", "--dsn", dsn, "-c", "SELECT 1 AS one", "-f", str(file)]) == 0
    printed = capfd.readouterr().out
    assert "one" in printed
    assert "two" in printed
    assert main(["psql", "--dsn", dsn, "-c", "SELECT nothing", "-c", "SELECT 3"]) != 0


def test_psql_gets_the_options_that_are_its_own(dsn, capfd, tmp_path):
    config = tmp_path / "trioboss.toml"
    config.write_text(f'dsn = "{dsn}"')

    assert main(["psql", "--dsn", dsn, "-At", "-c", "SELECT 1 AS one", "-F", ":", "-c", "SELECT 2, 3"]) == 0
    assert main(["psql", "--config", str(config), "-Atc", "SELECT 4"]) == 0
    assert capfd.readouterr().out.split() == ["1", "2:3", "4"]
    assert main(["psql", "--dsn", dsn, "--wings"]) != 0
    assert "wings" in capfd.readouterr().err


def test_psql_gets_a_password_in_its_environment_and_not_as_an_argument(dsn, monkeypatch):
    started = []

    def start(command, env, check):
        started.append((command, env))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("trioboss.cli.psql.subprocess.run", start)
    monkeypatch.setenv("TRIOBOSS_DSN", f"{dsn} password={PASSWORD}")

    assert main(["psql"]) == 0
    ((command, environment),) = started
    assert PASSWORD not in " ".join(command)
    assert environment["PGPASSWORD"] == PASSWORD


# -- demo


def test_demo_ends_by_itself_with_a_summary_and_a_hint(run, monkeypatch, tmp_path):
    for name in ("TRIOBOSS_DSN", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIOBOSS_HOME", str(tmp_path))

    code, printed, errors = run("demo", "--seconds", "0.1", dsn=None)

    assert (code, errors) == (0, "")
    for part in ("an embedded Postgres", "p99", "from send to handler, 10 jobs", "jobs/s", "Try next:"):
        assert part in printed


def test_a_dashboard_without_a_schema_tells_so_when_it_starts(run, empty_dsn, monkeypatch):
    monkeypatch.setattr("trioboss.cli.dashboard.trio", SimpleNamespace(run=lambda *_: 0))

    code, _, errors = run("dashboard", dsn=empty_dsn)

    assert code == 0
    assert "is not installed: run `trioboss migrate`; the dashboard has nothing to show until then" in errors


@pytest.mark.parametrize(("own", "then"), [(700, 10_000), (50_000, 50_000), (0, 0)])
def test_a_worker_process_spares_the_garbage_collector_unless_its_app_has_done_so(own, then):
    before = gc.get_threshold()
    try:
        gc.set_threshold(own, *before[1:])
        _spare_collector()
        assert gc.get_threshold()[0] == then
        assert gc.get_freeze_count() > 10_000
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
