"""Runs a program of docs/snippets in a process of its own, forked from one that has imported trioboss already."""

import multiprocessing
import os
import runpy
import sys
from pathlib import Path

__all__ = ["run_program"]

_TIMEOUT = 120  # seconds
# A new interpreter would import trio, psycopg and trioboss again for each program: half a second of CPU.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["trioboss.api.app", "trioboss.api.sync", "trioboss.runtime.opening"])


def run_program(program: Path, dsn: str, output: Path) -> int | None:
    """Run a program as `python program` would, on a database; its output goes to a file. Return its exit code."""
    process = _CONTEXT.Process(target=_run, args=(program, dsn, output))
    process.start()
    process.join(_TIMEOUT)
    if process.exitcode is None:
        process.kill()
        process.join()
    return process.exitcode


def _run(program: Path, dsn: str, output: Path) -> None:
    with output.open("wb", buffering=0) as file:
        os.dup2(file.fileno(), 1)
    # Logs of trioboss go to stderr: pages show the program's own output.
    with output.with_suffix(".err").open("wb", buffering=0) as file:
        os.dup2(file.fileno(), 2)
    os.environ["TRIOBOSS_DSN"] = dsn
    os.chdir(program.parent)
    sys.path.insert(0, str(program.parent))
    sys.argv = [str(program)]
    runpy.run_path(str(program), run_name="__main__")
    sys.stdout.flush()
