"""Programs beside the harness: started, told what to do, listened to, ended. They speak lines of JSON."""

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
_QUOTED = 12  # lines of a program's complaint


class ProgramFailed(Exception):
    """A program ended, or said nothing in time, or said something else."""


def python_module(module: str, python: str = sys.executable) -> list[str]:
    """The command that runs a module of this repository."""
    return [python, "-W", "ignore", "-m", module]


class Program:
    """One running program. `spec` is its first line of input."""

    def __init__(
        self, command: Sequence[str], spec: Mapping[str, Any], environment: Mapping[str, str] | None = None
    ) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            cwd=_ROOT,
            env={**os.environ, **(environment or {})},
        )
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.count = 0
        """Handler entries so far, of a program that reports its progress."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.tell(spec)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                if not line.startswith(b'{"event"'):
                    continue  # a library that prints
                event = json.loads(line)
                if event["event"] == "progress":
                    self.count = event["n"]
                else:
                    self._events.put(event)
        self._events.put({"event": "ended"})

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a line."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # its complaint is what `wait` will raise
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def wait(self, event: str, timeout: float = 60.0) -> dict[str, Any]:
        """The next thing it says, which has to be this event."""
        try:
            found = self._events.get(timeout=timeout)
        except queue.Empty:
            raise ProgramFailed(f"no {event!r} within {timeout:g} s{self.complaint()}") from None
        if found["event"] != event:
            raise ProgramFailed(f"{found} instead of {event!r}{self.complaint()}")
        return found

    def poll(self) -> dict[str, Any] | None:
        """The next thing it has said already, if it has."""
        with contextlib.suppress(queue.Empty):
            return self._events.get_nowait()
        return None

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def ask(self, message: Mapping[str, Any], event: str, timeout: float = 60.0) -> dict[str, Any]:
        """Send a line and wait for the answer."""
        self.tell(message)
        return self.wait(event, timeout)

    def complaint(self) -> str:
        """The last lines of its standard error."""
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").splitlines()
        return "".join(f"\n    {line}" for line in lines[-_QUOTED:])

    def cpu(self) -> float:
        """CPU seconds that it and its children have used."""
        return tree_cpu(self.pid)

    def end(self, seconds: float) -> None:
        """Give it some time to end by itself, then end it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.kill()

    def kill(self) -> None:
        """End it, whatever it is doing."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)  # a grandchild may still hold the pipe
        for pipe in (self._process.stdin, self._process.stdout, self._complaints):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # a line that it never read
                pipe.close()


@contextlib.contextmanager
def started(
    command: Sequence[str], spec: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """Run a program for the length of a block."""
    program = Program(command, spec, environment)
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
) -> dict[str, Any]:
    """Run a program that says one thing."""
    with started(command, spec, environment) as program:
        return program.wait(event, timeout)
