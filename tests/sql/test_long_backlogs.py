"""However many jobs there are, a claim finds those that can run, and the right ones first."""

import threading
from contextlib import closing

import pytest
from lifecycle_sessions import CALLERS, Sessions
from sql_helpers import QueueUnderTest, keys, wait_until_blocked

from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, ClaimResult
from trioboss.postgres.operation import Batch, Operation
from trioboss.testing import temporary_database

CALLER = CALLERS[0]
KEYED = [Policy.SINGLETON, Policy.KEY_STRICT_FIFO]
MANY = 3000

# A session that waits after it has got its snapshot, and before it reads jobs.
SLOW_TO_READ_ITS_QUEUE = """
    CREATE ROLE slow_reader;
    GRANT USAGE ON SCHEMA trioboss TO slow_reader;
    GRANT ALL ON ALL TABLES IN SCHEMA trioboss TO slow_reader;
    GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA trioboss TO slow_reader;
    CREATE FUNCTION public.linger() RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_catalog.pg_advisory_xact_lock_shared(1); RETURN true; END';
    ALTER TABLE trioboss.queue ENABLE ROW LEVEL SECURITY;
    CREATE POLICY lingering ON trioboss.queue USING (public.linger());
    SET ROLE slow_reader;
    SET lock_timeout = 0;
"""


def claim_only(sessions: Sessions) -> Operation[ClaimResult]:
    """A claim that promotes nothing first."""
    queue, claiming = (yield from sessions.store.context.find("q")), sessions.store.claiming
    plan = claiming.plan(queue, ClaimRequest(1), promote_due=False, async_commit=True)
    (results,) = yield Batch(*plan.transactions)
    return plan.read(sessions.store.context, results)


@pytest.mark.parametrize("policy", KEYED)
def test_many_jobs_of_one_key_delay_no_other(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.fill("a", MANY)
    queue.send("b")

    assert sorted(keys(queue.claim())) == ["a", "b"]


@pytest.mark.parametrize("policy", KEYED)
def test_the_checks_of_an_owned_key_are_answered_once(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.fill("a", MANY)
    queue.claim()
    queue.claim()

    assert queue.count_checks() == 0
    assert queue.count("readiness = 'waiting'") == MANY - 1


@pytest.mark.parametrize("policy", KEYED)
def test_many_jobs_of_owned_keys_delay_no_other(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.fill("a#", 1200)
    assert len(queue.claim(1200)) == 1200
    for _ in range(6):
        queue.fill("a#", 1200)
    queue.send("b")

    assert keys(queue.claim()) == ["b"]


@pytest.mark.parametrize("policy", KEYED)
def test_many_jobs_that_are_due_at_once_delay_no_other_key(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.fill("a", MANY, deferred=True)
    queue.send("b", start_after=1)
    queue.make_due(10)

    assert sorted(keys(queue.claim())) == ["a", "b"]


@pytest.mark.parametrize(
    ("policy", "deferred"), [("singleton", False), ("singleton", True), ("standard", True)]
)
def test_a_large_batch_comes_in_one_claim(sessions, policy, deferred):
    queue = QueueUnderTest(sessions, policy)
    queue.fill("k#", MANY, deferred=deferred)

    assert len(queue.claim(MANY)) == MANY


def test_the_most_urgent_of_many_that_are_due_comes_first(sessions):
    queue = QueueUnderTest(sessions, "standard")
    queue.fill("k#", 900, deferred=True)
    queue.send("urgent", start_after=1, priority=9)
    queue.make_due(10)

    assert keys(queue.claim(1)) == ["urgent"]


@pytest.mark.parametrize("policy", KEYED)
def test_of_many_keys_the_most_urgent_comes_first(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.fill("k#", MANY)
    queue.send("urgent", priority=9)

    assert keys(queue.claim(1)) == ["urgent"]


@pytest.mark.parametrize("policy", KEYED)
def test_a_late_key_has_its_turn_while_others_are_busy(sessions, policy):
    """The checks of owners that leave all the time do not go before older jobs of other keys."""
    queue = QueueUnderTest(sessions, policy)
    for key in ("busy1", "busy2", "late"):
        queue.send(key)
    claimed = []
    for _ in range(4):
        (job,) = queue.claim(1)
        claimed.append(job.singleton_key)
        queue.send(job.singleton_key)
        queue.complete(job)

    assert "late" in claimed[:3]


# -- deferred jobs that are claimed early


def test_an_early_claim_changes_no_job_that_it_does_not_return(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo")
    queue.send("a")
    queue.claim()
    for key in ("a", "a", "a", "b"):
        queue.send(key, start_after=3600)

    assert keys(queue.fetch(ignore_start_after=True)) == ["b"]
    assert queue.count("readiness = 'deferred' AND start_after > now()") == 3


@pytest.mark.parametrize("policy", ["standard", "singleton"])
def test_an_early_claim_from_a_paused_queue_changes_nothing(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("a", start_after=3600)
    sessions.query("UPDATE trioboss.queue SET paused = true RETURNING 1")

    assert queue.fetch(ignore_start_after=True) == []
    assert queue.count("readiness = 'deferred' AND start_after > now()") == 1


def test_an_early_claim_gets_the_retry_that_owns_its_key(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo", retry_delay=3600)
    queue.send("a", start_after=7200)
    job = queue.send("a")
    queue.fail(queue.claim())

    assert [early.id for early in queue.fetch(batch_size=2, ignore_start_after=True)] == [job]


@pytest.mark.parametrize("policy", KEYED)
def test_an_early_claim_gets_one_job_of_a_key_and_none_of_an_owned_one(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("owned")
    queue.claim()
    for key in ("owned", "a", "a", "b"):
        queue.send(key, start_after=3600)

    assert sorted(keys(queue.fetch(batch_size=10, ignore_start_after=True))) == ["a", "b"]
    assert queue.fetch(batch_size=10, ignore_start_after=True) == []


# -- a job that changes between the snapshot and the lock


def test_a_job_that_was_changed_after_the_snapshot_is_claimed_again_at_once(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn, closing(Sessions.open(dsn)) as sessions:
        queue = QueueUnderTest(sessions, "standard")
        queue.send("k")
        own, other = sessions.own, sessions.connections[CALLER]
        own.execute(SLOW_TO_READ_ITS_QUEUE)
        other.execute("SELECT pg_advisory_lock(1)")
        claims: list[ClaimResult] = []
        thread = threading.Thread(
            target=lambda: claims.append(sessions.run(0, lambda own: claim_only(sessions)))
        )
        thread.start()
        wait_until_blocked(other, own.info.backend_pid)
        other.execute("""UPDATE trioboss.live_job SET notes = '{"progress": 1}'""")
        other.commit()
        other.execute("SELECT pg_advisory_unlock(1)")
        thread.join()

        assert [(list(claim.jobs), claim.next_due) for claim in claims] == [([], 0)]
        own.execute("RESET ROLE")
        assert len(queue.claim()) == 1
