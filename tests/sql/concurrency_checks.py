"""The invariants of a queue after many threads have worked on it: order, one at a time, nothing lost, nothing stuck."""

from collections.abc import Callable
from typing import Any

from concurrency_helpers import DEAD, QUEUE, Arena, Hand, drain
from lifecycle_checks import TOO_MANY_ATTEMPTS, VIOLATIONS

# Every attempt of every job, from its claim to its end, as the database has recorded it.
ATTEMPTS = f"""
    SELECT a.job_id AS id, coalesce(a.key, '') AS key, a.started_on, a.ended_on
    FROM trioboss.attempt a WHERE a.queue = '{QUEUE}'
    UNION ALL
    SELECT id, coalesce(key, ''), started_on, completed_on
    FROM trioboss.archive WHERE outcome = 'completed' AND queue = '{QUEUE}'
"""

OVERLAPS = f"""
    SELECT * FROM (
        SELECT key, id, started_on, lag(ended_on) OVER (PARTITION BY key ORDER BY started_on, ended_on) AS before
        FROM ({ATTEMPTS}) a
    ) o WHERE started_on < before
"""

# A job that was resumed is in its old place again, where others have gone by, and one that plain SQL has moved is where
# that put it: they are not compared. A deferred job waits from its promotion on.
FIRST_STARTS = f"""
    SELECT s.id, s.key, s.n, s.began, c.at AS committed, min(a.started_on) AS first, max(a.ended_on) AS last
    FROM sent s JOIN committed c USING (id) JOIN ({ATTEMPTS}) a USING (id)
    WHERE NOT s.deferred AND s.id NOT IN (SELECT id FROM changed WHERE how IN ('resume', 'defer', 'wait', 'ready'))
    GROUP BY s.id, c.at
"""
INVERSIONS = f"""
    SELECT b.key, a.n, b.n FROM ({FIRST_STARTS}) a JOIN ({FIRST_STARTS}) b ON a.key = b.key
    WHERE {{earlier}} AND b.first < a.last
"""
BY_COMMIT = "a.n < b.n"
BY_TIME = (
    "a.committed < b.began"  # without commit_order: only a job that was committed when the other's send began
)

LOST = f"""
    SELECT id FROM sent
    EXCEPT SELECT id FROM trioboss.all_jobs WHERE name = '{QUEUE}'
    EXCEPT SELECT id FROM changed WHERE how = 'delete'
"""
UNEXPECTED = f"SELECT id FROM trioboss.all_jobs WHERE name = '{QUEUE}' EXCEPT SELECT id FROM sent"
STUCK = """
    SELECT id, queue, readiness::text, key, backlog, owner, start_after,
           (SELECT count(*) FROM trioboss.backlog_check c WHERE c.queue = j.queue AND c.backlog = j.backlog)
    FROM trioboss.live_job j
"""


class Monitor:
    """Checks the rules of the policies all the time."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def __call__(self, hand: Hand) -> None:
        while not self.arena.is_over.is_set():
            assert hand.own.execute(VIOLATIONS).fetchall() == []
            self.arena.count("checked")
            hand.pause(0.05)


def check(arena: Arena, *, policy: str, by_commit: bool = True, plain_sql: bool = False) -> None:
    """Drain both queues, and check everything that holds afterwards."""
    with arena.hand("judge") as judge:
        ask = asking(judge)
        arena.count("drained", drain(judge, QUEUE))
        drain(judge, DEAD)

        assert ask(STUCK) == []
        assert ask(LOST) == []
        assert ask(UNEXPECTED) == []
        assert ask(VIOLATIONS) == []
        if not plain_sql:  # plain SQL can put a running job back, which is in no history
            assert ask(TOO_MANY_ATTEMPTS) == []
        if policy in ("key_strict_fifo", "singleton", "stately"):
            assert ask(OVERLAPS) == []
        if policy == "key_strict_fifo":
            assert ask(INVERSIONS.format(earlier=BY_COMMIT if by_commit else BY_TIME)) == []


def asking(hand: Hand) -> Callable[[str], list[tuple[Any, ...]]]:
    return lambda query: hand.own.execute(query).fetchall()
