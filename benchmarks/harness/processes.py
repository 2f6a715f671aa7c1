"""Programs that run beside the harness: it starts them, sends commands, waits for events, and ends them.

Commands and events are lines of JSON. `benchmarks/programs/protocol.py` is the program's side.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.meters import tree_cpu

__all__ = ["Program", "ProgramFailed", "python_module", "run_program", "started"]

_ROOT = Path(__file__).parents[2]
_STDERR_LINES = 12  # how many lines of standard error an exception quotes


class ProgramFailed(Exception):
    """A program ended early, did not answer in time, or sent another event than the expected one."""


def python_module(module: str, python: str = sys.executable) -> list[str]:
    """Return the command that runs a module of this repository."""
    return [python, "-W", "ignore", "-m", module]


class Program:
    """One running program. `spec` is the first line of its standard input."""

    def __init__(
        self,
        command: Sequence[str],
        spec: Mapping[str, Any],
        environment: Mapping[str, str] | None = None,
        folder: Path = _ROOT,
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=folder,
            env={**os.environ, **(environment or {})},
        )
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.entries = 0
        """Handler entries so far, of a program that reports its progress."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.send(spec)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if not line.startswith(b'{"event"'):
                    continue  # printed by a library
                event = json.loads(line)
                if event["event"] == "progress":
                    self.entries = event["n"]
                else:
                    self._events.put(event)
        self._events.put({"event": "ended"})

    def send(self, message: Mapping[str, Any]) -> None:
        """Send the specification or a command."""
        assert self._process.stdin is not None
        # The program has ended: the next `wait` raises with its standard error.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, event: str, timeout: float = 60.0) -> dict[str, Any]:
        """Return the next event, which must be this one."""
        try:
            found = self._events.get(timeout=timeout)
        except queue.Empty:
            raise ProgramFailed(f"no {event!r} within {timeout:g} s{self.stderr_tail()}") from None
        if found["event"] != event:
            raise ProgramFailed(f"{found} instead of {event!r}{self.stderr_tail()}")
        return found

    def poll(self) -> dict[str, Any] | None:
        """Return the next event if there is one already."""
        with contextlib.suppress(queue.Empty):
            return self._events.get_nowait()
        return None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def request(self, message: Mapping[str, Any], event: str, timeout: float = 60.0) -> dict[str, Any]:
        """Send a command and return the event that answers it."""
        self.send(message)
        return self.wait(event, timeout)

    def stderr_tail(self) -> str:
        """Return the last lines of standard error, indented."""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").splitlines()
        return "".join(f"\n    {line}" for line in lines[-_STDERR_LINES:])

    def cpu(self) -> float:
        """Return the CPU seconds that the program and its children have used."""
        return tree_cpu(self.pid)

    def stop(self, timeout: float) -> None:
        """Wait for the program to end by itself, then kill it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.kill()

    def kill(self) -> None:
        """End the program at once, and release its pipes."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)  # a grandchild may still hold the pipe
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # a command that it has not read
                pipe.close()


@contextlib.contextmanager
def started(
    command: Sequence[str],
    spec: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    folder: Path = _ROOT,
) -> Iterator[Program]:
    """Run a program for the length of a block."""
    program = Program(command, spec, environment, folder)
    try:
        yield program
    finally:
        program.kill()


def run_program(
    command: Sequence[str],
    spec: Mapping[str, Any],
    event: str,
    environment: Mapping[str, str] | None = None,
    timeout: float = 300.0,
    folder: Path = _ROOT,
) -> dict[str, Any]:
    """Run a program until its first event, which must be this one, and return that."""
    with started(command, spec, environment, folder) as program:
        return program.wait(event, timeout)
