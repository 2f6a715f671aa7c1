"""`trioboss pipeline archive --follow` as a process: what it costs at rest, and how signals end it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest
from pipeline_helpers import end_jobs, files_of_lake, rows_of_history, rows_of_lake
from small_spark import preloading_path, small_environment

LIMIT = 180.0  # seconds after which something hangs


def seconds_used(pid):
    """The processor time of a process and of those that it has started, in seconds."""
    used, ticks = {}, os.sysconf("SC_CLK_TCK")
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(fields[1])
        used[int(path.parent.name)] = (int(fields[11]) + int(fields[12])) / ticks
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(used.get(member, 0.0) for member in family)


def until(condition, what):
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


@pytest.fixture
def follow(dsn, tmp_path):
    """Start an export that follows; returns the process."""
    started = []

    def start(**more):
        environment = os.environ | small_environment(tmp_path / "conf") | {"PYTHONPATH": preloading_path()}
        command = [
            "-m",
            "trioboss",
            "pipeline",
            "archive",
            "--to",
            str(tmp_path / "lake"),
            "--follow",
            "--nice",
            "0",
        ]
        process = subprocess.Popen(
            [sys.executable, *command, "--interval", "1", "--master", "local[1]"],
            env=environment | {"TRIOBOSS_DSN": dsn},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.soak
def test_at_rest_it_costs_next_to_nothing_and_sigterm_ends_it_well(dsn, tmp_path, follow):
    with psycopg.connect(dsn, autocommit=True) as database:
        end_jobs(database, 5)
        process = follow()
        until(lambda: (tmp_path / "lake" / "_manifest" / "0000000001.json").exists(), "the first batch")
        end_jobs(database, 5)
        until(lambda: len(files_of_lake(tmp_path / "lake")) == 2, "the second batch")
        before = least = seconds_used(process.pid)
        for _ in range(3):  # Java compiles for a while after it has worked
            time.sleep(2.0)
            before, now = seconds_used(process.pid), before
            least = min(least, before - now)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=LIMIT)

        assert least / 2.0 < 0.05
        assert process.returncode == 0, err
        assert out.splitlines()[-1].startswith("10 jobs and 0 attempts exported, up to transaction")
        assert "Traceback" not in err
        assert rows_of_lake(tmp_path / "lake") == rows_of_history(database)


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_ends_it_well(dsn, tmp_path, follow, number):
    """As a terminal does it, or a supervisor of services: Java gets the signal, too, and may end first."""
    with psycopg.connect(dsn, autocommit=True) as database:
        end_jobs(database, 5)
        process = follow(start_new_session=True)
        until(lambda: (tmp_path / "lake" / "_manifest" / "0000000001.json").exists(), "the first batch")
        os.killpg(process.pid, number)
        out, err = process.communicate(timeout=LIMIT)

        assert process.returncode == 0, err
        assert "exported" in out
        assert "Traceback" not in err
        assert rows_of_lake(tmp_path / "lake") == rows_of_history(database)
