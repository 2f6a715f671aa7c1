"""Queues that can be run: trioboss and its peers, through the same protocol (`benchmarks/adapters/base.py`)."""

import contextlib
import time
from collections.abc import Mapping
from typing import Any

import attrs
import psycopg

from benchmarks.harness.processes import Program, ProgramFailed, python_module, run_program, started
from benchmarks.harness.server import Server, Template

__all__ = ["TRIOBOSS", "Contender", "count_pending", "wait_drained"]

# The settings that decide what a database looks like before the first run. The others are the worker's.
_OF_THE_QUEUE = frozenset({"policy", "keep_completed", "keys", "driver", "notify"})


@attrs.frozen
class Contender:
    """A queue's program, and the environment that it needs."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = attrs.field(factory=dict)

    def template(self, server: Server, settings: Mapping[str, Any], jobs: int = 0) -> Template:
        """A template database with its schema and so many jobs. Its facts have `version` and `pending_sql`."""
        of_queue = {name: value for name, value in settings.items() if name in _OF_THE_QUEUE}
        key = f"{self.name} {sorted(of_queue.items())}"

        def set_up(dsn: str) -> dict[str, Any]:
            return self._ask("setup", dsn, of_queue, timeout=120)

        empty = server.template(key, set_up)
        if not jobs:
            return empty

        def fill(dsn: str) -> Mapping[str, Any]:
            self._ask("fill", dsn, of_queue, timeout=900, n=jobs)
            return empty.facts

        return server.template(f"{key} {jobs:,} jobs", fill, empty.name)

    def _ask(
        self, role: str, dsn: str, settings: Mapping[str, Any], timeout: float, **more: Any
    ) -> dict[str, Any]:
        spec = {"role": role, "dsn": dsn, "settings": settings, **more}
        return run_program(self.command, spec, "done", self.environment, timeout)

    def run(
        self, role: str, dsn: str, settings: Mapping[str, Any], **more: Any
    ) -> contextlib.AbstractContextManager[Program]:
        """Run its program in a role for the length of a block."""
        spec = {"role": role, "dsn": dsn, "settings": dict(settings), **more}
        return started(self.command, spec, self.environment)


TRIOBOSS = Contender("trioboss", tuple(python_module("benchmarks.adapters.trioboss")))


def count_pending(connection: psycopg.Connection[Any], template: Template) -> int:
    """How many jobs are not durably finished."""
    row = connection.execute(str(template.facts["pending_sql"]).encode()).fetchone()
    assert row is not None
    return int(row[0])


def wait_drained(dsn: str, template: Template, timeout: float, pause: float = 0.003) -> float:
    """Wait until every job is durably finished; return when that was."""
    deadline = time.monotonic() + timeout
    with psycopg.connect(dsn, autocommit=True) as connection:
        while count_pending(connection, template) > 0:
            if time.monotonic() > deadline:
                raise ProgramFailed(f"jobs are still pending after {timeout:g} s")
            time.sleep(pause)
        return time.monotonic()
