"""Observes and controls other processes: those of a server, and clients that share it."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from trioboss.postgres.embedded.binaries import find_binaries

TIMEOUT = 60.0  # seconds; reached only by a test that fails

# Prints the dsn of the server and the value of `{expression}`; holds its share until its standard input ends.
CLIENT = """
import os, subprocess, sys, time
from trioboss.postgres.embedded import EmbeddedPostgres
with EmbeddedPostgres(durable=False, timeout=60) as server:
    value = {expression}
    print(server.dsn, value, flush=True)
    sys.stdin.read()
"""


def wait_until(condition, within=TIMEOUT):
    """Poll a condition that sends no event until it is true, and return its value."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.005)
    return value


def wait_for_exit(pid, within=TIMEOUT):
    """Wait for the end of a process, which need not be a child of ours."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], within)[0], f"process {pid} is still there"
    finally:
        os.close(descriptor)


def processes_of(home):
    """The processes whose command line names this folder, by pid: its server's main process, its reaper."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{home}/" in command:
            found[int(path.parent.name)] = command
    return found


def wait_until_gone(home):
    """Wait for the end of all processes of a home."""
    while found := processes_of(home):
        for pid in found:
            wait_for_exit(pid)


def reapers_of(home):
    return [pid for pid, command in processes_of(home).items() if "postmaster.py" in command]


def servers_of(home):
    # A process that the server has just forked still has its parent's command line, and may be gone a moment later.
    found = [pid for pid, command in processes_of(home).items() if "/postgres -D" in command]
    return [pid for pid in found if state_and_parent_of(pid)[1] not in (None, *found)]


def state_and_parent_of(pid):
    try:
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None, None
    return state, int(parent)


def reaper_of(home):
    (pid,) = reapers_of(home)
    return pid


def server_of(home):
    (pid,) = servers_of(home)
    return pid


def freeze(pid):
    """Stop a process until SIGCONT. A signal that is sent before it is stopped would still be handled."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: state_and_parent_of(pid)[0] == "T")


def kill_hard(pid):
    os.kill(pid, signal.SIGKILL)
    wait_for_exit(pid)


def query(dsn, statement):
    """Run one statement; return the first column of its first row."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None


class Client:
    """A process that holds a share of the server of TRIOBOSS_HOME."""

    def __init__(self, package, *, expression="None", python=(sys.executable,), **options):
        self.process = subprocess.Popen(
            [*python, "-c", CLIENT.format(expression=expression)],
            env={"TRIOBOSS_PG_BIN": str(find_binaries().folder), **os.environ, "PYTHONPATH": str(package)},
            cwd="/",  # not the repository, which would be imported before the package
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **options,
        )

    def wait_for_answer(self):
        assert select.select([self.process.stdout], [], [], TIMEOUT)[0], "the client prints nothing"
        answer = self.process.stdout.readline().split()
        assert answer, "the client ended instead of starting a server"
        return answer

    def wait_for_dsn(self):
        return self.wait_for_answer()[0]

    def leave(self):
        self.process.stdin.close()
        assert self.process.wait(TIMEOUT) == 0

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        assert self.process.wait(TIMEOUT) == -number

    def clean_up(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
