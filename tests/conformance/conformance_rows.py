"""The rows of the audit: every statement of the documents that trioboss is made after, and the verdict on it.

``rows.txt`` has one row a line: its seed and line, the statement, and what trioboss has for it. A row has a test in
this folder (`row`), or is tested elsewhere (ELSEWHERE), or is a statement that no program can check (READ).
A row differs if the guide "Coming from pg-boss" names it, and works otherwise.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parent.parent.parent
FILE = Path(__file__).parent / "rows.txt"
GUIDE = ROOT / "docs" / "guides" / "from-pg-boss.md"

SEEDS = {
    "000": "Queues (pg-boss 12)",
    "001": "Strict FIFO (a design for pg-boss)",
    "002": "Queue internals and delivery (PURISTA)",
    "003": "pg-boss 10",
    "004": "pg-boss 6",
    "card": "The design card",
}

ELSEWHERE = {
    "000:79": "tests/worker/test_crashes.py",
    "000:91": "tests/worker/test_crashes.py",
    "001:174": "tests/store/test_fifo.py",
    "001:185": "tests/test_examples.py",
    "002:13b": "tests/worker/test_operating.py",
    "002:17": "tests/otel",
    "002:24": "tests/worker/test_crashes.py",
    "003:72": "tests/worker/test_pooler.py",
    "003:82b": "tests/sql/test_installing.py",
    "003:90": "tests/sql/test_installing.py",
    "003:97": "tests/sql/test_installing.py",
    "003:102": "tests/sql/test_installing.py",
    "003:157": "tests/faults",
    "003:159": "tests/actors/test_supervisor.py",
    "003:418": "tests/sql/test_migrations.py",
    "003:436": "tests/worker/test_stopping.py",
    "003:857b": "tests/actors/test_scheduler.py",
    "003:871": "tests/faults/test_clocks.py",
    "004:109": "tests/sql/test_installing.py",
    "card:2": "tests/actors/test_dispatcher.py",
    "card:3": "tests/actors/test_listener.py",
    "card:7": "tests/actors/test_supervisor.py",
    "card:11": "tests/sql/test_lifecycle_machine.py",
    "card:12": "tests/mutants",
    "card:13": "tests/mutants",
    "card:14": "tests/mutants",
    "card:15": "tests/test_examples.py",
    "card:16": "tests/worker",
    "card:17": "tests/benchmarks",
    "card:18": "tests/pipeline",
}
"""The test, or the folder of tests, of rows that need more than one boss and one database."""

READ = {
    "002:24b": "advice for handlers",
    "003:327": "does not arise",
    "003:794": "there is no such option",
    "003:873": "there is no such option",
    "004:603b": "there is no such option",
}
"""Rows that nothing can be run for, and why."""


@attrs.frozen
class Row:
    """A statement, and what trioboss has for it."""

    id: str
    statement: str
    here: str

    @property
    def seed(self) -> str:
        """The document that it is from."""
        return self.id.partition(":")[0]


def read_rows() -> list[Row]:
    """All rows, in the order of the documents."""
    return [Row(*line.split(" | ")) for line in FILE.read_text("utf-8").splitlines()]


def row(*ids: str) -> Callable[[Any], Any]:
    """Decorate a test with the rows that it is about: it runs once for each."""

    def decorate(test: Any) -> Any:
        test.rows = ids
        parametrize = pytest.mark.parametrize("row", ids, indirect=True)
        return parametrize(pytest.mark.usefixtures("row")(test))

    return decorate


def read_differences() -> dict[str, str]:
    """The rows that differ, and the heading of the guide's section that names each."""
    found: dict[str, str] = {}
    heading = ""
    for line in GUIDE.read_text("utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("|"):
            found |= dict.fromkeys(re.findall(r"\b(?:00\d|card):\d+[a-e]?\b", line), heading)
    return found
