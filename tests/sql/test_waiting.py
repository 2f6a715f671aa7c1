"""Who waits for whom: a caller's open transaction holds up its own jobs, and nobody else's.

Our own session gives up after a short lock_timeout, so that every step that returns is a step that did not wait.
"""

import pytest
from lifecycle_desk import CALLERS, OWN, Desk

from trioboss.errors import UsageError
from trioboss.model.job import Job, NewJob
from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest

CALLER = CALLERS[0]
KEYED = [policy for policy in Policy if policy.is_keyed]


class Queue:
    """A queue at a desk; every verb may be a caller's."""

    def __init__(self, desk: Desk, policy: str, **options) -> None:
        self.desk = desk
        desk.hands[OWN].execute("SET lock_timeout = '500ms'")
        desk.say(OWN, lambda own: desk.store.queues.create("q", {"policy": policy, **options}))

    def send(self, key: str | None, hand: int = OWN, **options):
        job = NewJob(singleton_key=key, **options)
        return self.desk.say(hand, lambda own: self.desk.store.sending.send("q", job, own=own))

    def claim(self, limit: int = 10, hand: int = OWN, **criteria) -> list[Job]:
        wanted = ClaimRequest(limit, **criteria)
        return self.desk.say(hand, lambda own: self.desk.store.claiming.claim("q", wanted, own=own)).jobs

    def settle(self, verb: str, jobs, hand: int = OWN, *args) -> None:
        self.desk.say(hand, lambda own: getattr(self.desk.store.settling, verb)("q", jobs, *args, own=own))

    def pass_time(self, seconds: int) -> None:
        """Jobs deferred for less are due now."""
        self.desk.hands[OWN].execute(
            "UPDATE trioboss.job SET start_after = start_after - %s * interval '1 s'", [seconds]
        )


def keys(jobs: list[Job]) -> list[str | None]:
    return [job.singleton_key for job in jobs]


@pytest.mark.parametrize("policy", Policy)
def test_a_send_left_open_stops_nobody(desk, policy):
    queue = Queue(desk, policy)
    queue.send("k")
    (running,) = queue.claim()
    sent = queue.send("k", CALLER)  # not committed for now; an exclusive queue refuses it
    queue.send("other")

    assert keys(queue.claim()) == ["other"]
    queue.settle("touch", running)
    queue.settle("complete", running, OWN, None)
    assert queue.claim() == []
    desk.hands[CALLER].commit()
    assert keys(queue.claim()) == (["k"] if sent else [])


@pytest.mark.parametrize("policy", KEYED)
def test_a_send_left_open_stops_no_release_and_no_retry(desk, policy):
    queue = Queue(desk, policy, retry_limit=5)
    queue.send("k")
    (running,) = queue.claim()
    queue.send("k", CALLER)

    desk.say(OWN, lambda own: desk.store.settling.release_leases("q", [running.lease]))
    (running,) = queue.claim()
    queue.settle("fail", running, OWN, "an error")

    assert keys(queue.claim()) == ["k"]


@pytest.mark.parametrize("policy", Policy)
def test_a_fetch_left_open_stops_no_other_job(desk, policy):
    queue = Queue(desk, policy)
    for key in ("a", "b", "c"):
        queue.send(key)
    queue.send("later", start_after=60)
    queue.pass_time(60)

    assert keys(queue.claim(1, CALLER)) == ["a"]
    assert keys(queue.claim()) == ["b", "c", "later"]
    desk.hands[CALLER].rollback()
    assert keys(queue.claim()) == ["a"]


@pytest.mark.parametrize("by_priority", [True, False])
def test_a_locked_job_is_passed_by_where_nobody_has_turns(desk, by_priority):
    queue = Queue(desk, "standard")
    first, second = queue.send("first"), queue.send("second")
    queue.settle("cancel", first, CALLER)

    assert [job.id for job in queue.claim(1, by_priority=by_priority)] == [second]


@pytest.mark.parametrize("policy", KEYED)
@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_a_locked_head_is_not_passed_over(desk, policy, verb):
    queue = Queue(desk, policy)
    if policy is Policy.STATELY:  # has room for one created, so the first of the line is a retry
        queue.send("k")
        queue.settle("fail", queue.claim(), OWN, "an error")
        (head,) = (id for (id,) in desk.query("SELECT id FROM trioboss.job"))
    else:
        head = queue.send("k")
    behind = queue.send("k")
    queue.send("other")
    queue.settle(verb, head, CALLER)

    assert keys(queue.claim()) == ["other"]
    desk.hands[CALLER].rollback()
    assert [job.id for job in queue.claim()] == [head]
    queue.settle("complete", head, OWN, None)
    assert [job.id for job in queue.claim()] == [behind]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.KEY_STRICT_FIFO])
def test_a_locked_head_that_has_waited_in_line_is_not_passed_over(desk, policy):
    queue = Queue(desk, policy)
    queue.send("k")
    running = queue.claim()
    head, behind = queue.send("k"), queue.send("k")
    assert queue.claim() == []  # now they are in line
    queue.settle("cancel", head, CALLER)
    queue.settle("complete", running, OWN, None)

    assert queue.claim() == []
    desk.hands[CALLER].rollback()
    assert [job.id for job in queue.claim()] == [head]
    queue.settle("cancel", head)
    assert [job.id for job in queue.claim()] == [behind]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.KEY_STRICT_FIFO])
def test_a_deferred_job_that_is_due_is_not_passed_over_either(desk, policy):
    queue = Queue(desk, policy)
    head = queue.send("k", start_after=60)
    queue.pass_time(60)
    queue.settle("cancel", head, CALLER)
    behind = queue.send("k")

    assert queue.claim() == []
    desk.hands[CALLER].commit()
    assert [job.id for job in queue.claim()] == [behind]


@pytest.mark.parametrize("policy", KEYED)
def test_a_complete_left_open_keeps_its_key_and_no_other(desk, policy):
    queue = Queue(desk, policy)
    queue.send("k")
    (running,) = queue.claim()
    queue.settle("complete", running, CALLER, None)
    queue.send("k")
    queue.send("other")

    assert keys(queue.claim()) == ["other"]
    desk.hands[CALLER].commit()
    assert keys(queue.claim()) == ["k"]


def test_jobs_that_take_turns_cannot_be_moved_up_in_a_transaction(desk):
    queue = Queue(desk, "key_strict_fifo")
    queue.send("k", start_after=60)
    options = {"batch_size": 1, "priority": True, "ignore_start_after": True, "min_priority": None}

    with pytest.raises(UsageError, match="ignore_start_after"):
        desk.say(CALLER, lambda own: desk.store.claiming.fetch("q", own=own, max_priority=None, **options))


def test_deferred_jobs_are_moved_up_in_a_transaction_where_nobody_has_turns(desk):
    queue = Queue(desk, "standard")
    queue.send("k", start_after=60)
    options = {"batch_size": 1, "priority": True, "ignore_start_after": True, "min_priority": None}

    jobs = desk.say(CALLER, lambda own: desk.store.claiming.fetch("q", own=own, max_priority=None, **options))
    assert keys(jobs) == ["k"]
    desk.hands[CALLER].rollback()
    assert queue.claim() == []


@pytest.mark.parametrize("end", [("complete", None), ("cancel",)])
def test_a_delete_that_waited_for_the_end_of_a_job_finds_it_among_the_ended(desk, end):
    queue = Queue(desk, Policy.STANDARD)
    queue.send("k")
    (job,) = queue.claim()
    queue.settle(end[0], job, CALLER, *end[1:])

    settled = desk.say_patiently(
        lambda own: desk.store.settling.delete("q", job.id, own=own), desk.hands[CALLER].commit
    )

    assert settled.ids == (job.id,)
    assert desk.rows() == []
