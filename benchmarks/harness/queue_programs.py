"""Queues that are run as programs: trioboss and its peers, by the protocol of `benchmarks/adapters/base.py`."""

import contextlib
import time
from collections.abc import Mapping
from typing import Any

import attrs
import psycopg

from benchmarks.harness.processes import Program, ProgramFailed, python_module, run_program, started
from benchmarks.harness.server import Server, Template

__all__ = ["TRIOBOSS", "QueueProgram", "count_pending", "wait_drained"]

# The settings that change what a database looks like before the first run. All others belong to the worker.
_OF_THE_QUEUE = frozenset({"policy", "keep_completed", "keys", "driver", "notify"})


@attrs.frozen
class QueueProgram:
    """The command of a queue's adapter, and the environment that it needs."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = attrs.field(factory=dict)

    def template(self, server: Server, settings: Mapping[str, Any], jobs: int = 0) -> Template:
        """Return a template with the queue's schema and so many jobs; its facts are `version` and `pending_sql`."""
        of_queue = {name: value for name, value in settings.items() if name in _OF_THE_QUEUE}
        key = f"{self.name} {sorted(of_queue.items())}"

        def set_up(dsn: str) -> dict[str, Any]:
            return self._run_to_end("setup", dsn, of_queue, timeout=120)

        empty = server.template(key, set_up)
        if not jobs:
            return empty

        def fill(dsn: str) -> Mapping[str, Any]:
            self._run_to_end("fill", dsn, of_queue, timeout=900, n=jobs)
            return empty.facts

        return server.template(f"{key} {jobs:,} jobs", fill, empty.name)

    def _run_to_end(
        self, role: str, dsn: str, settings: Mapping[str, Any], timeout: float, **more: Any
    ) -> dict[str, Any]:
        spec = {"role": role, "dsn": dsn, "settings": settings, **more}
        return run_program(self.command, spec, "done", self.environment, timeout)

    def run(
        self, role: str, dsn: str, settings: Mapping[str, Any], **more: Any
    ) -> contextlib.AbstractContextManager[Program]:
        """Run the adapter in a role for the length of a block."""
        spec = {"role": role, "dsn": dsn, "settings": dict(settings), **more}
        return started(self.command, spec, self.environment)


TRIOBOSS = QueueProgram("trioboss", tuple(python_module("benchmarks.adapters.trioboss")))


def count_pending(connection: psycopg.Connection[Any], template: Template) -> int:
    """Return how many jobs are not durably finished."""
    row = connection.execute(str(template.facts["pending_sql"]).encode()).fetchone()
    assert row is not None
    return int(row[0])


def wait_drained(dsn: str, template: Template, timeout: float, pause: float = 0.003) -> float:
    """Wait until every job is durably finished; return the time at which that was seen."""
    deadline = time.monotonic() + timeout
    with psycopg.connect(dsn, autocommit=True) as connection:
        while count_pending(connection, template) > 0:
            if time.monotonic() > deadline:
                raise ProgramFailed(f"jobs are still pending after {timeout:g} s")
            time.sleep(pause)
        return time.monotonic()
