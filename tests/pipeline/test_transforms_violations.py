"""What must never be in history is found, and what only looks like it is not.

All histories are looked through at once, each in queues of its own: one Spark action instead of many.
"""

import attrs
import pytest
from history_rows import make_attempts, make_jobs, table

from trioboss.pipeline.jobs.audit import find_violations
from trioboss.pipeline.transforms.trace import trace_jobs

TOLERANCE = 0.1
SECOND = 1 / 60
FIFO = {"policy": "key_strict_fifo"}


def job(id, queue, start, end, **more):
    """A job of one attempt, sent at the time of its number: seq 3 at minute 3."""
    seq = more.get("seq", 1)
    times = {"created_on": seq, "started_on": start, "completed_on": end}
    return {"id": id, "queue": queue, "singleton_key": "k", "seq": seq} | times | more


def bad(id, queue, start, end, outcome="failed", **more):
    times = {"started_on": start, "ended_on": end}
    return {"job_id": id, "queue": queue, "outcome": outcome, "singleton_key": "k"} | times | more


@attrs.frozen
class Scenario:
    """A history, and what is to be found in it: kind, queue, job, other job, certain."""

    sentence: str
    jobs: list
    attempts: list
    expected: list

    def rows(self, kind):
        """The rows, in queues that no other scenario has."""
        return [row | {"queue": self.prefix + row["queue"]} for row in getattr(self, kind)]

    @property
    def prefix(self):
        return self.sentence + "/"


SERIAL = ["exclusive", "key_strict_fifo", "singleton", "stately"]

SCENARIOS = [
    Scenario(
        "two attempts of one key at once are found",
        jobs=[job("a", p, 10, 12, policy=p) for p in SERIAL]
        + [job("b", p, 11, 13, policy=p, seq=2) for p in SERIAL],
        attempts=[],
        expected=[("overlap", policy, "b", "a", True) for policy in SERIAL],
    ),
    Scenario(
        "what may run at once is no overlap",
        jobs=[
            job("a", "standard", 10, 12),
            job("b", "standard", 11, 13),
            job("c", "short", 10, 12, policy="short"),
            job("d", "short", 11, 13, policy="short"),
            job("e", "keys", 10, 12, policy="singleton"),
            job("f", "keys", 11, 13, policy="singleton", singleton_key="other"),
            job("g", "renewed", 10, 12, policy="exclusive"),
            job("h", "renewed", 11, 13, policy="singleton"),
            job("i", "other", 10, 12, policy="singleton"),
        ],
        attempts=[],
        expected=[],
    ),
    Scenario(
        "the clock may be set back a little between an end and the claim that saw it",
        jobs=[
            job("a", "q", 10, 12, policy="singleton"),
            job("b", "q", 12 - SECOND / 20, 13, policy="singleton", seq=2),  # 50 ms
            job("c", "r", 10, 12, policy="singleton"),
            job("d", "r", 12 - SECOND / 5, 13, policy="singleton", seq=2),  # 200 ms
            job("e", "short runs", 10, 12, policy="singleton"),
            job(
                "f", "short runs", 11, 11 + SECOND / 50, policy="singleton", seq=2
            ),  # 20 ms, but in the middle of the other
        ],
        attempts=[],
        expected=[("overlap", "r", "d", "c", True), ("overlap", "short runs", "f", "e", True)],
    ),
    Scenario(
        "attempts of one job never overlap whatever the policy",
        jobs=[job("a", "q", 11, 15, attempt=2, retry_count=1)],
        attempts=[bad("a", "q", 10, 12)],
        expected=[("overlap", "q", "a", "a", True)],
    ),
    Scenario(
        "a lease that was taken back does not overlap with the next",
        jobs=[
            job("a", "q", 20, 21, policy="singleton", attempt=3, retry_count=2, start_after=18),
            job("b", "q", 15, 16, policy="singleton", seq=2),
        ],
        attempts=[bad("a", "q", 1, 15, "lost"), bad("a", "q", 16, 18, "expired", attempt=2)],
        expected=[],
    ),
    Scenario(
        "a start out of order is found with the job that was passed",
        jobs=[
            job("a", "q", 20, 21, seq=1, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("c", "q", 17, 18, seq=3, **FIFO),
            job("d", "loose", 20, 21, seq=1, **FIFO),
            job("e", "loose", 15, 16, seq=2, **FIFO),
        ],
        attempts=[],
        expected=[("order", "q", "b", "a", True)],
    ),
    Scenario(
        "who was not in line yet was not passed",
        jobs=[
            job("deferred", "q", 20, 21, seq=1, start_after=17, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("ready before", "q", 18, 19, seq=3, **FIFO),
            job("resumed", "r", 20, 21, seq=1, start_after=19, **FIFO),
            job("e", "r", 15, 16, seq=2, **FIFO),
            job("letter", "s", 20, 21, seq=1, source_queue="q", **FIFO),
            job("g", "s", 15, 16, seq=2, **FIFO),
        ],
        attempts=[],
        expected=[],
    ),
    Scenario(
        "a deferred job that came due must not be passed any more",
        jobs=[
            job("deferred", "q", 30, 31, seq=1, start_after=17, **FIFO),
            job("b", "q", 15, 18, seq=2, **FIFO),
            job("c", "q", 19, 20, seq=3, **FIFO),
        ],
        attempts=[],
        expected=[("order", "q", "c", "deferred", True)],
    ),
    Scenario(
        "a retry of strict fifo must not be passed",
        jobs=[
            job("a", "q", 20, 21, seq=1, attempt=2, retry_count=1, start_after=11, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("c", "waiting", 20, 21, seq=1, attempt=2, retry_count=1, start_after=19, **FIFO),
            job("d", "waiting", 15, 16, seq=2, **FIFO),
            job("e", "sent later", 30, 31, seq=1, attempt=2, retry_count=1, start_after=13, **FIFO),
            job("f", "sent later", 15, 16, seq=14, **FIFO),
        ],
        attempts=[bad("a", "q", 10, 11), bad("c", "waiting", 10, 11), bad("e", "sent later", 10, 11)],
        expected=[
            ("passed a retry", "q", "b", "a", True),
            ("passed a retry", "sent later", "f", "e", True),
            ("passed a retry", "waiting", "d", "c", False),  # it may have been cancelled and resumed
        ],
    ),
    Scenario(
        "who let go of the key may be passed",
        jobs=[
            job("cancelled", "q", 20, 21, seq=1, attempt=2, start_after=19, **FIFO),
            job("b", "q", 15, 16, seq=2, **FIFO),
            job("c", "in the lake", 10, 12, seq=1, state="cancelled", retry_count=1, start_after=19, **FIFO),
            job("c", "in the lake", 20, 21, seq=1, attempt=2, retry_count=1, start_after=19, **FIFO),
            job("d", "in the lake", 15, 16, seq=2, **FIFO),
            job("e", "deleted", 15, 16, seq=2, **FIFO),
            job("f", "singleton", 20, 21, seq=1, policy="singleton", attempt=2, retry_count=1),
            job("g", "singleton", 15, 16, seq=2, policy="singleton"),
        ],
        attempts=[
            bad("cancelled", "q", 10, 11, "cancelled"),
            bad("c", "in the lake", 10, 11),
            bad("gone", "deleted", 10, 11),
            bad("gone", "deleted", 11, 14, attempt=2),
            bad("f", "singleton", 10, 11),
        ],
        expected=[],
    ),
    Scenario(
        "attempts over the limit are found and those that are free are not counted",
        jobs=[
            job("a", "q", 30, 31, attempt=3, retry_limit=1, retry_count=2),
            job("b", "q", 30, 31, attempt=5, retry_limit=1, retry_count=1, singleton_key=None),
            job("c", "q", 20, 21, attempt=2, retry_limit=1, retry_count=1, state="failed"),
        ],
        attempts=[
            bad("a", "q", 10, 11),
            bad("a", "q", 12, 13, attempt=2),
            bad("b", "q", 10, 11, "released"),
            bad("b", "q", 12, 13, "released", attempt=2),
            bad("b", "q", 14, 15, "lost", attempt=3),
            bad("b", "q", 16, 17, "cancelled", attempt=4),
            bad("c", "q", 10, 11),
            bad("c", "q", 20, 21, attempt=2),
        ],
        expected=[("over the limit", "q", "a", None, True)],
    ),
    Scenario(
        "a job that ends twice is found",
        jobs=[
            job("twice", "q", 10, 11),
            job("twice", "q", 10, 12),
            job("after completion", "q", 10, 11),
            job("after completion", "q", 14, 15, attempt=2, state="failed"),
            job("both", "q", 10, 12),
        ],
        attempts=[bad("after completion", "q", 14, 15, attempt=2), bad("both", "q", 10, 11)],
        expected=[
            ("two ends", "q", "after completion", "after completion", True),
            ("two ends", "q", "both", "both", True),
            ("two ends", "q", "twice", "twice", True),
        ],
    ),
    Scenario(
        "an end that was taken back and an id used again are no second end",
        jobs=[
            job("retried", "q", 10, 11, state="failed"),
            job("retried", "q", 20, 21, attempt=2, retry_count=1),
            job("resumed", "q", None, 5, state="cancelled", attempt=0),
            job("resumed", "q", None, 6, state="cancelled", attempt=0),
            job("resumed", "q", 20, 21),
            job("used again", "q", 10, 11),
            job("used again", "q", 40, 41, seq=30),
            job("deleted", "q", 40, 41, seq=30, attempt=2, retry_count=1),
            job("somewhere else", "q", 10, 11),
            job("somewhere else", "r", 10, 11),
        ],
        attempts=[
            bad("retried", "q", 10, 11),
            bad("deleted", "q", 10, 11),
            bad("deleted", "q", 33, 34),
        ],
        expected=[],
    ),
    Scenario(
        "an attempt that never ended is found where history is complete",
        jobs=[
            job("lost", "q", 20, 21, attempt=3, retry_count=1),
            job("old", "q", 20, 21, attempt=2, retry_count=1, created_on=-10),
            job("cancelled", "q", 10, 30, attempt=1, state="cancelled"),
            job("never ran", "q", None, 30, attempt=0, state="cancelled"),
        ],
        attempts=[bad("lost", "q", 10, 11), bad("cancelled", "q", 10, 11, "released")],
        expected=[("no end", "q", "lost", None, True)],
    ),
]


@pytest.fixture(scope="module")
def found(spark):
    """Everything that is found in all the histories."""
    since = {"job_id": "first", "queue": "first", "started_on": -9, "ended_on": -8}
    jobs = make_jobs(spark, *(row for scenario in SCENARIOS for row in scenario.rows("jobs")))
    attempts = make_attempts(
        spark, since, *(row for scenario in SCENARIOS for row in scenario.rows("attempts"))
    )
    trace = trace_jobs(jobs, attempts).cache()
    loose = [scenario.prefix + "loose" for scenario in SCENARIOS]
    whole = find_violations(trace, TOLERANCE, loose)
    return table(whole, "kind", "queue", "job", "other_job", "certain")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.sentence)
def test_findings(found, scenario):
    prefix = scenario.prefix

    of_scenario = [
        (kind, queue.removeprefix(prefix), *rest) for kind, queue, *rest in found if queue.startswith(prefix)
    ]

    assert of_scenario == scenario.expected
