"""A claim says in how many seconds the next one is worth making."""

import pytest
from lifecycle_sessions import CALLERS, OWN
from sql_helpers import QueueUnderTest

from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, Settlements

CALLER = CALLERS[0]
KEYED = [policy for policy in Policy if policy.is_keyed]


@pytest.mark.parametrize("policy", Policy)
def test_no_job_waits_for_time(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("a")
    queue.send("b")

    assert len(queue.try_claim().jobs) == 2
    assert queue.try_claim().next_due is None


@pytest.mark.parametrize("policy", Policy)
def test_the_first_of_the_deferred_jobs_counts(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("late", start_after=3600)
    queue.send("early", start_after=60)
    queue.send("later", start_after=7200)

    assert 50 < queue.try_claim().next_due <= 60


@pytest.mark.parametrize("policy", Policy)
def test_a_retry_counts(sessions, policy):
    queue = QueueUnderTest(sessions, policy, retry_delay=60)
    queue.send("a")
    queue.fail(queue.claim())

    assert 50 < queue.try_claim().next_due <= 60


@pytest.mark.parametrize("policy", KEYED)
@pytest.mark.parametrize("criteria", [{}, {"by_priority": False}, {"min_priority": 0}])
def test_a_backlog_whose_first_job_is_being_changed_is_tried_again_soon(sessions, policy, criteria):
    queue = QueueUnderTest(sessions, policy)
    id = queue.send("a")
    queue.change("cancel", id, CALLER)

    assert queue.try_claim(**criteria).next_due <= 0.05


def test_a_locked_first_job_among_many_checks_is_tried_again_soon(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    id = queue.send("locked", priority=9)
    queue.fill("owned", 10_000)
    queue.change("cancel", id, CALLER)
    assert [job.singleton_key for job in queue.claim(1)] == ["owned"]
    queue.fill("owned", 10_000)

    claim = queue.try_claim()
    assert (list(claim.jobs), claim.next_due) == ([], 0.05)


@pytest.mark.parametrize("policy", Policy)
def test_a_paused_queue_waits_for_nothing(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("a", start_after=60)
    queue.send("b")
    sessions.run(OWN, lambda own: sessions.store.queues.pause("q", True))
    claim = queue.try_claim()

    assert (list(claim.jobs), claim.next_due) == ([], None)


def test_a_queue_that_was_created_again_as_a_keyed_one_is_claimed_again_at_once(sessions):
    queue = QueueUnderTest(sessions, "standard")
    context, settle_and_claim = sessions.store.context, sessions.store.settle_and_claim.settle_and_claim
    queue.claim()
    as_it_was = context.cached("q")
    sessions.run(OWN, lambda own: sessions.store.queues.delete("q"))
    queue = QueueUnderTest(sessions, "singleton")
    queue.send("a")
    context.remember([as_it_was])
    ready = ClaimRequest(10, find_next_due=False, promote_due=False)

    def claim():
        operation = settle_and_claim("q", Settlements(), ready)
        return sessions.run(OWN, lambda own: operation).claim

    first, second = claim(), claim()
    assert (len(first.jobs), first.next_due) == (0, 0)
    assert len(second.jobs) == 1
