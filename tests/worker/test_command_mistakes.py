"""The answers of the command line to mistakes: one sentence and an exit code, never a traceback."""

import os
import subprocess
import sys

import pytest

PASSWORD = "pw-canary-7341"
ID = "00000000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["send", "nowhere"], 2, "queue 'nowhere' does not exist"),
        (["send", "mail", "{not json"], 2, "data: not JSON"),
        (["send", "mail", "[" * 100_000], 2, "data: nested too deeply"),
        (["send", "mail", "1", "-o", "priority=" + "[" * 100_000], 2, "priority: nested too deeply"),
        (["demo", "--seconds", "0"], 2, "seconds"),
        (["demo", "--seconds", "nan"], 2, "seconds"),
        (["send", "mail", "1", "-o", "priority"], 2, "is not NAME=VALUE"),
        (["send", "mail", "1", "-o", "priority=high"], 2, "priority"),
        (["send", "mail", "1", "-o", "colour=blue"], 2, "colour"),
        (["send", "", "1"], 2, "queue"),
        (["jobs", "nowhere"], 2, "does not exist"),
        (["jobs", "mail", "--state", "sleepy"], 2, "sleepy"),
        (["jobs", "mail", "--limit", "0"], 2, "limit"),
        (["why", "mail", "not-an-id"], 2, "id"),
        (["why", "mail", ID], 1, ID),
        (["cancel", "mail", ID], 1, ID),
        (["resume", "mail", ID], 1, ID),
        (["retry", "mail", ID], 1, ID),
        (["delete", "mail", ID], 1, ID),
        (["cancel", "mail", "12"], 2, "12"),
        (["pause", "nowhere"], 2, "does not exist"),
        (["unpause", "nowhere"], 2, "does not exist"),
        (["queues", "--schema", "a b"], 2, "schema"),
        (["queues", "--schema", "missing"], 1, "trioboss migrate"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else None,
)
def test_a_mistake_is_one_sentence(run, queue, arguments, code, message):
    ended, printed, errors = run(*arguments)

    assert ended == code
    assert printed == ""
    line = errors.splitlines()[0]
    assert line.startswith("trioboss: ")
    assert message in line


@pytest.mark.parametrize("arguments", [[], ["dance"], ["send"], ["why", "mail"], ["queues", "--state", "x"]])
def test_an_unknown_command_prints_the_usage(run, arguments):
    code, printed, errors = run(*(arguments or [""]), dsn=None)

    assert (code, printed) == (2, "")
    assert errors.startswith("usage: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["quues"], "there is no command 'quues' (did you mean 'queues'?): the commands are worker, "),
        (["queues", "--jsn"], "unknown: --jsn (did you mean '--json'?)"),
        (["create-queue", "q", "--retry_limt=3"], "unknown: --retry_limt=3 (did you mean '--retry-limit'?)"),
        (["queues", "everything"], "unknown: everything"),
        (["--schema", "s", "queues"], "--schema goes after the command: trioboss COMMAND --schema …"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else None,
)
def test_an_unknown_command_or_option_is_answered_with_the_nearest_and_all_others(run, arguments, message):
    code, printed, errors = run(*arguments, dsn=None)

    assert (code, printed) == (2, "")
    assert f"error: {message}" in errors
    if "--retry_limt=3" in arguments:
        assert errors.startswith("usage: trioboss create-queue")
        assert "--retry-jitter X" in errors


@pytest.mark.parametrize("output", ["/dev/full", None])
def test_an_output_that_cannot_be_written_is_no_traceback(dsn, output):
    command = [sys.executable, "-m", "trioboss", "queues", "--dsn", dsn]
    with open(output or os.devnull, "w") as file:
        done = subprocess.run(
            command,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=None if output else (lambda: os.close(1)),
        )

    refused = (1, "trioboss: the output cannot be written: No space left on device\n")
    assert (done.returncode, done.stderr) == (refused if output else (0, ""))


def test_a_variable_that_is_no_app_is_answered_with_the_apps_of_its_module(run):
    code, _, errors = run("worker", "worker_apps:ap")

    assert code == 2
    assert "app: 'worker_apps:ap' is not a trioboss.App: use worker_apps:app or worker_apps:" in errors


def test_a_server_that_cannot_be_reached(run):
    code, printed, errors = run("queues", dsn=f"postgresql://me:{PASSWORD}@127.0.0.1:9/x")

    assert (code, printed) == (1, "")
    assert PASSWORD not in errors
    warning, line, _ = errors.splitlines()
    assert "others can see the password" in warning
    assert line.startswith("trioboss: ")


def test_an_invalid_dsn(run):
    code, _, errors = run("queues", dsn="postgresql//nonsense")

    assert code in (1, 2)
    assert len(errors.splitlines()) == 2


def test_a_job_refused_by_a_policy(run, sync_boss):
    sync_boss.create_queue("one", policy="short")
    assert run("send", "one")[0] == 0

    code, printed, errors = run("send", "one")

    assert (code, printed) == (1, "")
    assert "refused" in errors
