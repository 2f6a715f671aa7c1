"""Everybody at once, on real connections: order, turns and limits hold, nothing is lost, nothing is stuck."""

import pytest
from concurrency_helpers import QUEUE, Arena, Hand, Meddler, Reaper, Sender, Worker, reap
from lifecycle_checks import VIOLATIONS

from trioboss.model.settle_and_claim import ClaimRequest

# Every attempt of every job, as the database saw it: from its claim to its end.
ATTEMPTS = """
    SELECT a.job_id AS id, a.singleton_key AS key, a.started_on, a.ended_on FROM trioboss.attempt a
    UNION ALL
    SELECT id, singleton_key, started_on, completed_on FROM trioboss.archive WHERE state = 'completed'
"""

OVERLAPS = f"""
    SELECT * FROM (
        SELECT key, id, started_on, lag(ended_on) OVER (PARTITION BY key ORDER BY started_on, ended_on) AS before
        FROM ({ATTEMPTS}) a
    ) o WHERE started_on < before
"""

# A job that was resumed is in its old place again, where others have gone by; it takes no part in the comparison.
FIRST_STARTS = f"""
    SELECT s.id, s.key, s.n, s.began, e.committed, min(a.started_on) AS first, max(a.ended_on) AS last
    FROM sent s JOIN ended e USING (id) JOIN ({ATTEMPTS}) a USING (id)
    WHERE s.id NOT IN (SELECT id FROM meddled WHERE verb = 'resume')
    GROUP BY s.id, e.committed
"""
INVERSIONS = f"""
    SELECT b.key, a.n, b.n FROM ({FIRST_STARTS}) a JOIN ({FIRST_STARTS}) b ON a.key = b.key
    WHERE {{earlier}} AND b.first < a.last
"""
BY_COMMIT = "a.n < b.n"
BY_TIME = "a.committed < b.began"  # without commit_order: only who had committed when the other began to send

LOST = """
    SELECT id FROM sent
    EXCEPT SELECT id FROM trioboss.all_jobs
    EXCEPT SELECT id FROM meddled WHERE verb = 'delete'
"""
UNEXPECTED = "SELECT id FROM trioboss.all_jobs WHERE source_id IS NULL EXCEPT SELECT id FROM sent"
STUCK = "SELECT id, state, gate, singleton_key FROM trioboss.job"


class Monitor:
    """Looks at the limits of the policies all the time."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def __call__(self, hand: Hand) -> None:
        while not self.arena.done.is_set():
            assert hand.own.execute(VIOLATIONS).fetchall() == []
            hand.pause()


def drain(hand: Hand) -> int:
    """Complete everything that can run; what failed and blocks its key is tried again."""
    done = 0
    while True:
        hand.own.execute("UPDATE trioboss.job SET expire_in = '0' WHERE state = 'active'")
        reap(hand)
        failed = [id for (id,) in hand.own.execute("SELECT id FROM trioboss.job WHERE state = 'failed'")]
        if failed:
            hand.say(lambda own, ids=failed: hand.store.settling.retry(QUEUE, ids, own=own))
        jobs = hand.say(lambda own: hand.store.claiming.claim(QUEUE, ClaimRequest(1000), own=own)).jobs
        if not jobs:
            return done
        done += hand.say(
            lambda own, jobs=jobs: hand.store.settling.complete(QUEUE, jobs, None, own=own)
        ).affected


POLICIES = {
    "strict FIFO": {"policy": "key_strict_fifo"},
    "FIFO without commit order": {"policy": "key_strict_fifo", "commit_order": False},
    "singleton": {"policy": "singleton"},
    "stately": {"policy": "stately"},
    "short": {"policy": "short"},
    "exclusive": {"policy": "exclusive"},
    "standard": {"policy": "standard"},
}


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("policy", POLICIES)
def test_everybody_at_once(dsn, policy, seed):
    arena = Arena(dsn, seed)
    arena.prepare(**POLICIES[policy], retry_limit=2)

    arena.run(
        {f"sender {n}": Sender() for n in range(3)} | {f"meddler {n}": Meddler() for n in range(2)},
        {f"worker {n}": Worker(arena) for n in range(4)}
        | {"reaper": Reaper(arena), "monitor": Monitor(arena)},
    )

    with arena.hand("judge") as judge:
        drain(judge)

        def ask(question: str) -> list[tuple[object, ...]]:
            return judge.own.execute(question).fetchall()

        assert ask(STUCK) == []
        assert ask(LOST) == []
        assert ask(UNEXPECTED) == []
        assert ask("SELECT count(*) > 30 FROM sent") == [(True,)]
        if POLICIES[policy]["policy"] in ("key_strict_fifo", "singleton", "stately"):
            assert ask(OVERLAPS) == []
        if "FIFO" in policy:
            assert ask(INVERSIONS.format(earlier=BY_COMMIT if policy == "strict FIFO" else BY_TIME)) == []
