"""The rows of the audit: every statement of the documents that trioboss is made after, and the result.

``rows.txt`` has one row a line: its seed and line, the statement, and what trioboss has for it. A row has a test in
this folder (`row`), or is tested elsewhere (ELSEWHERE), or is a statement that no program can check (READ).
A row differs if the guide "Coming from pg-boss" names it, and works otherwise.
"""

import re
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parent.parent.parent
FILE = Path(__file__).parent / "rows.txt"
GUIDE = ROOT / "docs" / "guides" / "from-pg-boss.md"

# The fields of a job that pg-boss returns with its metadata.
METADATA = (
    *(
        "id",
        "queue",
        "data",
        "priority",
        "state",
        "retry_limit",
        "retry_count",
        "retry_delay",
        "retry_backoff",
    ),
    *(
        "start_after",
        "started_on",
        "singleton_key",
        "singleton_on",
        "expire_in",
        "created_on",
        "completed_on",
    ),
    *("keep_until", "dead_letter", "policy", "output"),
)

SEEDS = {
    "000": "Queues (pg-boss 12)",
    "001": "Strict FIFO (a design for pg-boss)",
    "002": "Queue internals and delivery (PURISTA)",
    "003": "pg-boss 10",
    "004": "pg-boss 6",
    "card": "The design card",
}

KILLED = "tests/worker/test_crashes.py::test_the_jobs_of_a_killed_worker_run_elsewhere"
INSTALLING = "tests/sql/test_installing.py::"
FIFO = "tests/store/test_fifo.py::"
LIFECYCLE = "tests/sql/test_lifecycle_machine.py::test_jobs_live_as_the_model_says"

ELSEWHERE = {
    "000:79": [KILLED],
    "000:91": [KILLED],
    "001:174": [
        FIFO + "test_jobs_of_one_key_run_in_the_order_they_were_sent",
        FIFO + "test_different_keys_run_side_by_side",
        FIFO + "test_an_active_job_blocks_its_key",
        FIFO + "test_a_retrying_job_blocks_its_key_until_it_has_run_again",
        FIFO + "test_a_failed_job_blocks_its_key_and_no_other",
        FIFO + "test_deleting_the_failed_job_unblocks_its_key",
        FIFO + "test_retrying_the_failed_job_unblocks_its_key_and_it_goes_first",
        FIFO + "test_blocked_keys_are_listed_by_name",
    ],
    "001:185": ["tests/test_examples.py::test_an_example_runs"],
    "002:13b": ["tests/worker/test_operating.py::test_queues_are_created_changed_and_deleted"],
    "002:17": ["tests/otel/test_otel.py::test_a_send_and_its_handler_are_two_traces_with_a_link"],
    "002:24": [KILLED],
    "003:72": ["tests/worker/test_pooler.py::test_a_worker_behind_a_pooler_works_in_polling_mode"],
    "003:82b": [INSTALLING + "test_a_schema_that_exists_needs_no_right_to_create_schemas"],
    "003:90": [
        INSTALLING + "test_a_schema_that_exists_needs_no_right_to_create_schemas",
        "tests/sql/test_migrations.py::test_a_migration_that_fails_leaves_nothing_half_done",
    ],
    "003:97": [INSTALLING + "test_a_schema_that_trioboss_made_goes"],
    "003:102": [INSTALLING + "test_a_schema_that_somebody_else_made_stays_when_everything_is_removed"],
    "003:157": [
        "tests/actors/test_scheduler.py::test_a_tick_that_could_not_be_fired_is_repeated",
        "tests/actors/test_listener.py::test_after_a_lost_connection_everything_is_polled_again",
    ],
    "003:159": ["tests/actors/test_supervisor.py::test_six_crashes_in_a_minute_are_too_many"],
    "003:418": ["tests/sql/test_migrations.py::test_an_older_schema_is_brought_up_to_date"],
    "003:436": ["tests/postgres/test_pool.py::test_leaving_the_block_closes_every_connection"],
    "003:857b": ["tests/actors/test_scheduler.py::test_six_fields_are_exact_to_the_second"],
    "003:871": [
        "tests/actors/test_scheduler.py::test_bosses_with_wrong_clocks_fire_each_tick_once_and_none_too_early",
    ],
    "004:109": [INSTALLING + "test_a_schema_that_somebody_else_made_stays_when_everything_is_removed"],
    "card:2": [
        "tests/actors/test_dispatcher.py::test_it_claims_once_and_then_waits",
        "tests/actors/test_listener.py::test_when_idle_it_polls_every_twenty_seconds_and_pings_in_between",
    ],
    "card:3": ["tests/actors/test_listener.py::test_it_is_listening_only_when_its_probe_has_arrived"],
    "card:7": ["tests/actors/test_supervisor.py::test_an_actor_that_crashes_is_restarted"],
    "card:11": [LIFECYCLE],
    "card:12": [LIFECYCLE],
    "card:13": [LIFECYCLE],
    "card:14": [LIFECYCLE],
    "card:15": [
        "tests/test_examples.py::test_the_web_service_answers_requests_and_ends_jobs_before_it_stops",
    ],
    "card:16": ["tests/worker/test_crashes.py::test_two_workers_share"],
    "card:17": ["tests/benchmarks/test_bench_commands.py::test_latency_is_measured_printed_stored_and_drawn"],
    "card:18": ["tests/pipeline/test_pipeline_example.py::test_the_example_of_the_pipeline_runs"],
}
"""The tests of rows that need more than one boss and one database."""

READ = {"002:24b": "advice for handlers"}
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
    """Decorate a test with the rows that it is about: it has a result for each, and one run."""

    def decorate(test: Any) -> Any:
        run = _run_once(test)
        run.rows = ids
        parametrize = pytest.mark.parametrize("row", ids, indirect=True)
        return parametrize(pytest.mark.usefixtures("row")(run))

    return decorate


def _run_once(test: Any) -> Any:
    """A test that has nothing to do any more once it has passed."""
    passed: list[bool] = []

    @wraps(test)
    def run(**fixtures: Any) -> None:
        if not passed:
            test(**fixtures)
            passed.append(True)

    @wraps(test)
    async def run_async(**fixtures: Any) -> None:
        if not passed:
            await test(**fixtures)
            passed.append(True)

    return run_async if iscoroutinefunction(test) else run


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
