"""Violations in made-up histories are found, and what is legitimate and looks like one is not.

All histories are checked at once, each in queues of its own: one Spark action instead of many.
"""

import pytest
from history_rows import at, make_attempts, make_jobs, table
from violation_builders import SECOND, job
from violation_scenarios import PREFIXED_Q, SCENARIOS

from trioboss.pipeline.history import DEAD_LETTERS, DeadLetters, History
from trioboss.pipeline.jobs.audit import find_violations
from trioboss.pipeline.transforms.trace import trace_jobs
from trioboss.pipeline.transforms.violations.exclusion import overlaps
from trioboss.pipeline.transforms.violations.instants import wrong_instants


@pytest.fixture(scope="module")
def found(spark):
    """The findings of all histories."""
    since = {"job_id": "first", "queue": "first", "started_on": -9, "ended_on": -8}
    jobs = make_jobs(spark, *(row for scenario in SCENARIOS for row in scenario.rows("jobs")))
    attempts = make_attempts(
        spark, since, *(row for scenario in SCENARIOS for row in scenario.rows("attempts"))
    )
    queued = make_jobs(spark, {"id": "z", "queue": "d", "source_queue": PREFIXED_Q, "source_id": "queued"})
    trace = trace_jobs(jobs, attempts).cache()
    unordered = [scenario.prefix + "unordered" for scenario in SCENARIOS]
    dead_letters = jobs.unionByName(queued).where("source_id IS NOT NULL OR redriven_from IS NOT NULL")
    history = History(jobs, attempts, DeadLetters(dead_letters.select(*DEAD_LETTERS), at(60)))
    return table(
        find_violations(history, trace, 0.0, unordered), "kind", "queue", "job", "other_job", "certain"
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.sentence)
def test_findings(found, scenario):
    prefix = scenario.prefix

    of_scenario = [
        (kind, queue.removeprefix(prefix), *rest) for kind, queue, *rest in found if queue.startswith(prefix)
    ]

    assert of_scenario == scenario.expected


def test_a_tolerance_forgives_a_clock_that_was_set_back(spark):
    jobs = make_jobs(
        spark,
        job("a", "q", 10, 12, policy="singleton"),
        job("b", "q", 12 - SECOND / 20, 13, policy="singleton", seq=2),  # 50 ms
        job("c", "r", 10, 12, policy="singleton"),
        job("d", "r", 12 - SECOND / 5, 13, policy="singleton", seq=2),  # 200 ms
        job("e", "s", 10, 11, start_after=10 + SECOND / 20),
    )
    trace = trace_jobs(jobs, make_attempts(spark))

    found = overlaps(trace, 0.1).unionByName(wrong_instants(trace, 0.1))

    assert table(found, "kind", "job", "other_job") == [("overlap", "d", "c")]
