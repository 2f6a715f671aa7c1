"""Where the options of a command come from, times as people write and read them, and what a command imports."""

import json
import os
import subprocess
import sys

import pytest

from trioboss.cli.times import parse_instant, parse_seconds
from trioboss.model.texts import show_seconds

# -- where options come from


def test_the_schema_of_the_environment(run, monkeypatch):
    monkeypatch.setenv("TRIOBOSS_SCHEMA", "elsewhere")

    assert "'elsewhere' is not installed" in run("queues")[2]
    assert run("queues", "--schema", "trioboss")[0] == 0


@pytest.fixture
def config(tmp_path):
    def write(text):
        (tmp_path / "boss.toml").write_text(text)
        return str(tmp_path / "boss.toml")

    return write


def test_options_of_a_file_go_before_the_environment_and_after_the_command_line(
    run, config, dsn, queue, monkeypatch
):
    monkeypatch.setenv("TRIOBOSS_DSN", "host=/nowhere")
    monkeypatch.setenv("TRIOBOSS_SCHEMA", "nowhere")
    path = config(f'dsn = "{dsn}"\nschema = "trioboss"\n[queues]\njson = true\n[jobs]\nlimit = 0\n')

    assert json.loads(run("queues", "--config", path, dsn=None)[1])[0]["queue"] == queue
    assert "limit" in run("jobs", queue, "--config", path, dsn=None)[2]
    assert run("jobs", queue, "--config", path, "--limit", "3", dsn=None)[0] == 0
    assert (
        "schema 'other' is not installed" in run("queues", "--config", path, "--schema", "other", dsn=None)[2]
    )


def test_options_with_a_short_name_and_flags_with_a_negation_are_accepted(run, config, queue, sync_boss):
    text = """
        [cancel]
        yes = true
        [create-queue]
        partition = true
        keep-completed = false
        [update-queue]
        retry-backoff = true
    """

    sync_boss.send(queue)

    assert run("cancel", queue, "--all", "--config", config(text))[0] == 0
    assert run("create-queue", "own", "--config", config(text))[0] == 0
    assert run("update-queue", "own", "--config", config(text))[0] == 0
    own = sync_boss.get_queue("own")
    assert (own.partition, own.keep_completed, own.retry_backoff) == (True, False, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dsn = ", "is not TOML"),
        ("[quues]", "there is no command 'quues' (did you mean 'queues'?)"),
        ("grace = 3", "'grace' is not an option of all commands"),
        ("[queues]\njsn = true", "queues has no option 'jsn' (did you mean 'json'?)"),
        ("[queues]\njson = 3", "json: 3 is not true or false"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(run, config, text, message):
    code, printed, errors = run("queues", "--config", config(text))

    assert (code, printed) == (2, "")
    line, _ = errors.splitlines()  # and the address of a page
    assert message in line


def test_a_file_that_is_not_there(run):
    code, _, errors = run("queues", "--config", "/nowhere.toml")

    assert (code, "cannot read /nowhere.toml" in errors) == (2, True)


# -- times


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172800), ("0.5h", 1800)],
)
def test_durations_are_read_as_people_write_them(text, seconds):
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1x", "nan", "inf", "h"])
def test_anything_else_is_no_duration(text):
    with pytest.raises(ValueError, match="field: "):
        parse_instant("field", text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0.4 ms"),
        (0.035, "35 ms"),
        (4.23, "4.2 s"),
        (42, "42 s"),
        (239.9402, "4 min"),
        (250, "4 min 10 s"),
        (12000, "3 h 20 min"),
        (190000, "2 d 4 h"),
    ],
)
def test_durations_are_shown_in_human_units(seconds, text):
    assert show_seconds(seconds) == text


# -- how much a command costs


def loaded_by(*arguments):
    """The modules that a command imports."""
    program = (
        "import sys\nfrom trioboss.cli import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print('\\n' + ' '.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ.copy()
    )
    return set(done.stderr.splitlines()[-1].split())


def test_help_and_version_import_nothing_that_takes_long():
    """Which keeps them below 0.2 s of CPU: the interpreter and argparse are nearly all of it."""
    for arguments in (["--version"], ["-h"], ["worker", "-h"]):
        assert not loaded_by(*arguments) & {"trio", "psycopg", "attr", "asyncio", "croniter"}


@pytest.mark.parametrize("command", ["queues", "doctor"])
def test_a_command_needs_neither_trio_nor_croniter_nor_the_embedded_server(dsn, command):
    """Which keeps it below 0.25 s of CPU, of which psycopg is nearly a half."""
    loaded = loaded_by(command, "--dsn", dsn)

    assert "psycopg" in loaded
    assert not loaded & {
        *("trio", "croniter", "tomllib", "trioboss.postgres.embedded.server", "trioboss.actors")
    }


def test_plans_need_no_driver():
    assert not loaded_by("plans", "install") & {"trio", "psycopg"}
