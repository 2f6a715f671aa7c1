"""Every command line ends with an exit code and a message, whatever its options are."""

import contextlib
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from security_helpers import read_corpus

import trioboss
from trioboss.cli import main
from trioboss.testing import temporary_database

# All commands that neither serve nor wait. `uninstall`, `rollback` and `migrate` would end the database of the others.
COMMANDS = {
    **dict.fromkeys(("queues", "workers", "schedules", "doctor", "plans", "grants"), 0),
    **dict.fromkeys(("jobs", "pause", "unpause", "redrive", "retry", "cancel", "delete", "unschedule"), 1),
    **dict.fromkeys(("show", "why", "resume", "send", "schedule", "create-queue", "update-queue"), 2),
}
words = st.one_of(
    st.sampled_from(["q", "", "-", "%s", "\ud800", "\0", "0", "-1", "1e400", "99999999999999999999", "null"]),
    st.sampled_from(
        ["{", '{"a": 1}', "[]", "NaN", "* * * * *", "2026-11-17", "90s", "1h", "never", "failed"]
    ),
    st.text(max_size=6),
)
options = st.sampled_from(
    [
        *("--schema", "--config", "--json", "--state", "--key", "--since", "--until", "--limit", "--after"),
        *("--newest", "--data", "--yes", "--dry-run", "--all", "--to", "--source", "--tz", "--missed"),
        *("--policy", "--retry-limit", "--expire-in", "--dead-letter", "--priority", "--start-after", "--id"),
        *("--producer", "--worker", "--no-such", "="),
    ]
)


@pytest.fixture(scope="module")
def command_dsn(server_dsn, template):
    """The dsn of a database that all examples share."""
    with temporary_database(server_dsn, template) as dsn:
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            boss.create_queue("q")
            boss.send("q", {"a": 1})
        yield dsn


def run(monkeypatch, dsn, line):
    """Run a command line; the dsn is that of the test, unless the line names another one."""
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr("sys.stdin", io.StringIO())
    if "--dsn" not in line:
        monkeypatch.setenv("TRIOBOSS_DSN", dsn)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(line)
        except SystemExit as ended:
            code = ended.code
    assert code in (0, 1, 2), (line, code)
    assert "Traceback" not in err.getvalue(), (line, err.getvalue())
    assert code != 2 or err.getvalue(), line


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(COMMANDS)), st.data(), st.lists(st.tuples(options, st.none() | words), max_size=3)
)
def test_every_command_line_ends_with_a_code_and_no_traceback(
    command_dsn, monkeypatch, command, data, further
):
    line = [command, *(data.draw(words) for _ in range(COMMANDS[command]))]
    line += [word for pair in further for word in pair if word is not None]
    run(monkeypatch, command_dsn, line)


def test_every_command_line_of_the_corpus_ends_with_a_code_and_no_traceback(command_dsn, monkeypatch):
    for line in read_corpus("commands"):
        run(monkeypatch, command_dsn, line)
