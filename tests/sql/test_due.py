"""A claim says in how many seconds it is worth to look again."""

import pytest
from lifecycle_desk import CALLERS, OWN

from trioboss.model.job import NewJob
from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, Settlements

KEYED = [policy for policy in Policy if policy.is_keyed]


class Queue:
    def __init__(self, desk, policy, **options):
        self.desk = desk
        desk.say(OWN, lambda own: desk.store.queues.create("q", {"policy": policy, **options}))

    def send(self, key, **options):
        job = NewJob(singleton_key=key, **options)
        return self.desk.say(OWN, lambda own: self.desk.store.sending.send("q", job, own=own))

    def claim(self):
        return self.desk.say(OWN, lambda own: self.desk.store.claiming.claim("q", ClaimRequest(10), own=own))


@pytest.mark.parametrize("policy", Policy)
def test_nothing_waits_for_time(desk, policy):
    queue = Queue(desk, policy)
    queue.send("a")
    queue.send("b")

    assert len(queue.claim().jobs) == 2
    assert queue.claim().next_due is None


@pytest.mark.parametrize("policy", Policy)
def test_the_first_of_the_deferred_jobs_counts(desk, policy):
    queue = Queue(desk, policy)
    queue.send("late", start_after=3600)
    queue.send("early", start_after=60)
    queue.send("later", start_after=7200)

    assert 50 < queue.claim().next_due <= 60


@pytest.mark.parametrize("policy", Policy)
def test_a_retry_is_waited_for(desk, policy):
    queue = Queue(desk, policy, retry_delay=60)
    queue.send("a")
    (job,) = queue.claim().jobs
    desk.say(OWN, lambda own: desk.store.settling.fail("q", job, None, own=own))

    assert 50 < queue.claim().next_due <= 60


@pytest.mark.parametrize("policy", KEYED)
def test_a_key_whose_first_job_is_being_changed_is_looked_at_soon(desk, policy):
    queue = Queue(desk, policy)
    id = queue.send("a")
    desk.say(CALLERS[0], lambda own: desk.store.settling.cancel("q", id, own=own))

    assert queue.claim().next_due <= 0.05


@pytest.mark.parametrize("policy", Policy)
def test_a_paused_queue_waits_for_nothing(desk, policy):
    queue = Queue(desk, policy)
    queue.send("a", start_after=60)
    queue.send("b")
    desk.say(OWN, lambda own: desk.store.queues.pause("q", True))
    claim = queue.claim()

    assert (claim.jobs, claim.next_due) == ([], None)


def test_a_queue_that_was_made_anew_with_turns_is_looked_at_again_at_once(desk):
    queue = Queue(desk, Policy.STANDARD)
    context, settle_and_claim = desk.store.context, desk.store.working.settle_and_claim
    queue.claim()
    as_it_was = context.recall("q")
    desk.say(OWN, lambda own: desk.store.queues.delete("q"))
    queue = Queue(desk, Policy.SINGLETON)
    queue.send("a")
    context.remember([as_it_was])
    ready = ClaimRequest(10, find_next_due=False)

    first = desk.say(OWN, lambda own: settle_and_claim("q", Settlements(), ready, promote_due=False)).claim
    second = desk.say(OWN, lambda own: settle_and_claim("q", Settlements(), ready, promote_due=False)).claim
    assert (len(first.jobs), first.next_due) == (0, 0)
    assert len(second.jobs) == 1
