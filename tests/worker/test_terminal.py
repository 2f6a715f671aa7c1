"""The output on a real terminal: the banner, colours, what a stopping worker waits for, questions, top."""

import asyncio
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
from terminal_helpers import CONTROL_C, on_terminal, rows_of

import trioboss


@pytest.fixture
def long_job(sync_boss):
    """A job that sleeps for ever."""
    for name in ("graves", "long"):
        sync_boss.create_queue(name)
    return sync_boss.send("long")


def test_the_banner_names_the_database_the_queues_and_the_schedules(dsn):
    with on_terminal("worker", "worker_apps:declared", "--dsn", dsn) as terminal:
        text = terminal.reads("taking jobs of 1 queue")
        terminal.types(CONTROL_C)
        assert terminal.ends() == 0

    # Before everything that the worker does: before the queues are made that it names, and before the first job.
    assert text.index("starts") < text.index("0 3 * * * (UTC)") < text.index("create queue 'declared'")
    assert f"trioboss {trioboss.__version__} starts" in text
    assert re.search(r"database +\S+ on \S+:\d+ as postgres, schema trioboss, Postgres \d+", text)
    assert re.search(r"connected +directly", text)
    assert re.search(r"queues +declared +standard +1 at once", text)
    assert "\x1b[32mINFO" in terminal.raw


def test_control_c_shows_what_it_waits_for_and_keeps_it_up_to_date(dsn, long_job):
    with on_terminal("worker", "worker_apps:app", "-q", "long", "--grace", "3600", "--dsn", dsn) as terminal:
        terminal.reads("began")
        terminal.types(CONTROL_C)
        terminal.reads(f" s: long {long_job}", times=9)
        line = re.compile(
            rf"stopping: (\S+ \S+(?: \d+ s)?) left, Ctrl-C again to stop now; 1 job, longest (\d+) s: long {long_job}"
        )
        shown = line.findall(terminal.text)
        assert len({seconds for _, seconds in shown}) > 1
        assert not any("." in left for left, _ in shown)
        terminal.types(CONTROL_C)
        assert terminal.ends() == 0

    assert terminal.raw.count("\r\x1b[2Kstopping: ") >= 3  # the line is rewritten in place
    assert "released: it is queued again" in terminal.text


def test_the_line_of_a_stop_takes_one_row_of_a_narrow_terminal(dsn, long_job):
    arguments = ("-q", "long", "--grace", "3600", "--dsn", dsn)
    with on_terminal("worker", "worker_apps:app", *arguments, columns=80) as terminal:
        terminal.reads("began")
        terminal.types(CONTROL_C)
        terminal.reads("left, Ctrl-C again to stop now; 1 job, longest ", times=5)
        rows = rows_of(terminal.raw, 80)
        terminal.types(CONTROL_C)
        assert terminal.ends() == 0

    assert [row for row in rows if row.startswith("stopping: ")] == rows[-1:]
    assert not rows_of(terminal.raw, 80)[-1].startswith("stopping: ")


def test_the_supervisor_keeps_one_line_about_the_jobs_of_all_processes(dsn, sync_boss, long_job):
    sync_boss.send("long")
    arguments = ("-q", "long", "-p", "2", "-c", "1", "--grace", "3600", "--dsn", dsn)
    with on_terminal("worker", "worker_apps:app", *arguments, columns=80) as terminal:
        terminal.reads("began", times=2)
        terminal.types(CONTROL_C)
        terminal.reads("left, Ctrl-C again to stop now; 2 jobs, longest ", times=4)
        rows = rows_of(terminal.raw, 80)
        terminal.types(CONTROL_C)
        assert terminal.ends() == 0

    assert [row for row in rows if row.startswith("stopping: ")] == rows[-1:]
    assert not rows_of(terminal.raw, 80)[-1].startswith("stopping: ")


def test_a_question_is_asked_and_answered(dsn, sync_boss, queue):
    for answer, state in (("n", "created"), ("y", "cancelled")):
        id = sync_boss.send(queue)
        with on_terminal("cancel", queue, "--state", "created", "--limit", "1", "--dsn", dsn) as terminal:
            terminal.reads("cancel 1 created jobs of queue 'mail'? [y/N]")
            terminal.types(f"{answer}\n")
            assert terminal.ends() == (0 if answer == "y" else 1)
        assert sync_boss.get_job_by_id(queue, id).state == state
        sync_boss.delete_job(queue, id)


def test_top_shows_everything_and_leaves_the_terminal_as_it_was(dsn, sync_boss, long_job):
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    failed = sync_boss.send("orders", singleton_key="key one")
    sync_boss.fail("orders", sync_boss.fetch("orders"), ValueError("it went wrong"))
    with on_terminal("worker", "worker_apps:app", "-q", "long", "--dsn", dsn) as worker:
        worker.reads("began")
        with on_terminal("top", "--interval", "0.2", "--dsn", dsn) as top:
            text = top.reads("WORKERS", "q quits", times=3)
            top.types("q")
            assert top.ends() == 0

    assert "\x1b[?1049h" in top.raw
    assert top.raw.rstrip().endswith("\x1b[?1049l")
    assert re.search(r"long +standard +0 +0 +1 +- +[\d.]+ +[\d.]+ +1", text)
    assert re.search(rf"long +{long_job} +1 +[\d.]+ (ms|s)", text)
    assert re.search(rf"orders +{failed} +1 +failed +[\d.]+ (ms|s) +ValueError: it went wrong", text)
    assert re.search(rf"BLOCKED KEYS\s+queue +key +failed job\s+orders +key one +{failed}", text)
    assert re.search(r"long +\S+:\d+ +present +listening +1", text)


def test_top_shows_a_part_of_every_list_on_a_small_terminal(dsn, sync_boss):
    sync_boss.create_queue("orders", policy="key_strict_fifo", retry_limit=0)
    for number in range(20):
        sync_boss.create_queue(f"queue-{number}")
        sync_boss.send("orders", singleton_key=f"key {number}")
        sync_boss.fail("orders", sync_boss.fetch("orders"), ValueError("it went wrong"))
    with on_terminal("top", "--interval", "0.2", "--dsn", dsn, columns=80, lines=24) as top:
        text = top.reads("WORKERS: none", times=3)
        top.types("q")
        assert top.ends() == 0

    view = text.split("trioboss top")[-2].replace("\r", "").rstrip().split("\n")
    assert len(view) <= 23
    titles = [re.sub(r" \(\d+ more\)", "", line) for line in view if line.isupper() or " more)" in line]
    assert titles == ["QUEUES", "FAILURES, THE NEWEST FIRST", "BLOCKED KEYS"]
    assert "q quits" in view[0]


def test_top_without_a_terminal_is_plain_text(run, queue):
    code, printed, errors = run("top")

    assert (code, errors) == (0, "")
    assert re.match(r"trioboss top   [\d:]+   \S+ on \S+", printed)
    assert "SyncBoss" not in printed
    assert "\x1b" not in printed
    assert re.search(r"mail +standard +0 +0 +0", printed)


# -- the embedded server


@pytest.fixture
def unnamed(monkeypatch, tmp_path):
    """No database is named; an embedded one would have its data here."""
    for name in ("TRIOBOSS_DSN", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRIOBOSS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


async def test_a_worker_without_a_terminal_does_not_use_the_embedded_server_unasked(workers, unnamed):
    worker = await workers.start(app="worker_apps:declared", TRIOBOSS_DSN="")

    assert await worker.ends() == 2
    line, page = worker.lines
    assert "documentation: " in page
    assert line.startswith(
        "trioboss: no database is named: use --dsn, TRIOBOSS_DSN or DATABASE_URL; --embedded"
    )
    assert not unnamed.exists()


async def test_a_worker_uses_the_embedded_server_when_asked_and_names_its_folder(workers, unnamed):
    worker = await workers.start("--embedded", app="worker_apps:declared", TRIOBOSS_DSN="")

    line = await worker.prints("no database is named")
    assert "WARNING" in line
    assert f"using an embedded Postgres, its data is in {unnamed}" in line
    await worker.prints("queues", "declared")
    worker.signal()
    assert await worker.ends() == 0


def test_a_command_on_the_embedded_server_names_its_folder_once(unnamed):
    command = [sys.executable, "-m", "trioboss", "migrate"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stderr == (
        "trioboss: no database is named (dsn, TRIOBOSS_DSN, DATABASE_URL): using an embedded Postgres, "
        f"its data is in {unnamed}\n"
    )


def test_on_a_terminal_the_embedded_server_is_used_and_named(unnamed):
    with on_terminal("worker", "worker_apps:declared") as terminal:
        terminal.reads(f"using an embedded Postgres, its data is in {unnamed}", "1 at once")
        terminal.types(CONTROL_C)
        assert terminal.ends() == 0


SCRIPT = """
import trio, trioboss
async def main():
    async with trioboss.open_boss() as boss:
        print(await boss.get_queues())
trio.run(main)
"""


async def test_a_script_without_any_dsn_logs_one_warning_that_names_the_folder(unnamed):
    done = await trio.run_process([sys.executable, "-c", SCRIPT], capture_stdout=True, capture_stderr=True)

    (line,) = done.stderr.decode().splitlines()
    assert line.endswith(f"using an embedded Postgres, its data is in {unnamed}")


def test_open_boss_under_asyncio_says_what_to_do(dsn):
    async def main():
        async with trioboss.open_boss(dsn):
            pass

    # In a thread: a browser test in this process may have left an event loop in the main one.
    message = r"open_boss needs trio: .* trio\.run\(main\).*SyncBoss"
    with ThreadPoolExecutor(1) as pool, pytest.raises(trioboss.UsageError, match=message):
        pool.submit(lambda: asyncio.run(main())).result()
