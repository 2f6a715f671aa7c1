"""Names, keys and payloads of somebody who means harm, through the API, the command line and plain SQL."""

import io
import json
import logging
from contextlib import redirect_stderr, redirect_stdout

import psycopg
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

import trioboss
from trioboss.cli import main
from trioboss.cli.logs import set_up_logging
from trioboss.events import JobFailed
from trioboss.model.ids import make_id

HOSTILE = [
    "'; drop table trioboss.job; --",
    '"; drop table trioboss.job; --',
    "$$; drop table trioboss.job; $$",
    "%s%(x)s{0}{}",
    ":queue ::text :'x' :\"x\"",
    "\\'; \\g \\! touch x",
    "a\nb",
    "a\r\nb",
    "a\0b",
    "\x1b[31mred\x1b]0;title\x07",
    "<script>alert(1)</script>",
    "&lt;'\"`${7*7}",
    "\u202egnp.exe",
    "a\u0301\u200b\ufeff",
    "\U0001d596\U0001d59a",
    "../../etc/passwd",
    "=cmd()|'/C calc'!A0",
    "*queues",
    "__proto__",
    "x" * 201,
    "x" * 100_000,
    "",
    " ",
    "\udc80",
]
NO_NAMES = [text for text in HOSTILE if text not in ("../../etc/passwd", "__proto__")]


def methods(boss, name):
    """Every way a name gets in."""
    yield lambda: boss.create_queue(name)
    yield lambda: boss.create_queue("fine", dead_letter=name)
    yield lambda: boss.update_queue(name, retry_limit=1)
    yield lambda: boss.delete_queue(name)
    yield lambda: boss.get_queue(name)
    yield lambda: boss.pause(name)
    yield lambda: boss.get_queue_stats(name)
    yield lambda: boss.get_queue_size(name)
    yield lambda: boss.get_blocked_keys(name)
    yield lambda: boss.send(name)
    yield lambda: boss.send("q", dead_letter=name)
    yield lambda: boss.insert(name, [{}])
    yield lambda: boss.complete(name, make_id())
    yield lambda: boss.cancel(name, make_id())
    yield lambda: boss.find_jobs(name)
    yield lambda: boss.get_job_by_id(name, make_id())
    yield lambda: boss.why(name, make_id())
    yield lambda: boss.subscribe(name, "q")
    yield lambda: boss.subscribe("event", name)
    yield lambda: boss.publish(name)
    yield lambda: boss.fetch_completed(name)


@pytest.mark.parametrize("name", NO_NAMES, ids=ascii)
def test_a_name_that_is_none_is_refused_by_every_operation_before_any_sql(quarry, name):
    if "*" not in name:  # which makes it a pattern there
        with pytest.raises(trioboss.UsageError):
            quarry.fetch(name)
    for number, method in enumerate(methods(quarry, name)):
        with pytest.raises(trioboss.UsageError) as refusal:
            method()
        assert str(refusal.value).isprintable(), number


@pytest.mark.parametrize("schema", [*NO_NAMES, "pg catalog", "x" * 51, "1x"], ids=ascii)
def test_a_schema_that_is_none_is_refused_before_any_sql(schema):
    with pytest.raises(ValueError, match="is not a schema name"):
        trioboss.SyncBoss("host=nowhere.invalid", schema=schema)


def test_the_database_refuses_such_names_too(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name in NO_NAMES:
            if (
                "\0" in name or "\udc80" in name or name == "x" * 201
            ):  # cannot be said, or is one for completions
                continue
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("insert into trioboss.queue (name) values (%s)", [name])


TEXT = st.text(max_size=300) | st.sampled_from(HOSTILE)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=60)
@given(key=TEXT, data=JSON, output=JSON, error=TEXT)
def test_an_accepted_value_comes_back_as_it_was_and_settles(quarry, key, data, output, error):
    try:
        id = quarry.send("q", data, singleton_key=key)
    except trioboss.UsageError:
        return
    (job,) = quarry.fetch("q")
    try:
        quarry.complete("q", job, output)
    except trioboss.PayloadError:
        quarry.fail("q", job, error)
        quarry.delete_job("q", id)
        return
    ended = quarry.get_job_by_id("q", id)

    assert (ended.singleton_key, ended.data, ended.output) == (key, data, output)
    assert (job.singleton_key, job.data) == (key, data)


@settings(max_examples=60)
@given(name=TEXT)
def test_any_accepted_name_means_that_queue_alone(quarry, name):
    try:
        quarry.create_queue(name)
    except trioboss.UsageError:
        return
    try:
        id = quarry.send(name, name)
        assert [job.id for job in quarry.fetch(name)] == [id]
        assert quarry.get_queue(name).name == name
    finally:
        quarry.delete_queue(name)


# -- the command line


def run(*arguments):
    """The exit code and what was printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(list(arguments))
        except SystemExit as end:
            code = end.code
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("command", ["send", "jobs", "pause"])
def test_the_command_line_answers_a_hostile_name_with_a_harmless_line_and_a_page(dsn, command):
    for text in (
        "'; drop table trioboss.job; --",
        "a\r\nb",
        "\x1b[31mred\x1b]0;title\x07",
        "\u202egnp.exe",
        "\udc80",
    ):
        code, out, err = run(command, "--dsn", dsn, "--", text)
        assert code == 2, err
        assert out == ""
        message, page, end = err.split("\n")
        assert message.isprintable(), ascii(err)
        assert page.startswith("  documentation: https://")
        assert page.isprintable(), ascii(err)
        assert end == ""


async def test_data_of_jobs_sends_no_control_characters_to_the_terminal(dsn, boss):
    await boss.create_queue("q", policy="key_strict_fifo")
    key = "\x1b[2J\n'; drop\u202e"
    first = await boss.send("q", key, singleton_key=key)
    second = await boss.send("q", key, singleton_key=key)
    await boss.fail("q", await boss.fetch("q"), key)
    for command in (["jobs", "q", "--data"], ["why", "q", str(second)], ["why", "q", str(first)]):
        code, out, err = await trio.to_thread.run_sync(run, command[0], "--dsn", dsn, *command[1:])
        assert code == 0
        assert err == ""
        assert all(line.isprintable() for line in out.split("\n")), ascii(out)
    _, out, _ = await trio.to_thread.run_sync(run, "jobs", "q", "--data", "--json", "--dsn", dsn)
    assert {job["data"] for job in json.loads(out)} == {key}


@pytest.mark.parametrize("as_json", [False, True])
def test_one_event_is_one_line_of_the_log(capsys, as_json):
    root = logging.getLogger()
    before = root.handlers[:], root.level
    set_up_logging("info", as_json=as_json)
    try:
        event = JobFailed("q", make_id(), 1, 0.0, 0.0, "a\n2026 ERROR forged\x1b[31m", "failed")
        logging.getLogger("trioboss").warning("%s", "text", extra={"event": event})
    finally:
        root.handlers[:], root.level = before
    said = capsys.readouterr().err

    assert said.count("\n") == 1
    assert said.rstrip("\n").isprintable()
