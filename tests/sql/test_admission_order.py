"""Admission: which job of several backlogs comes first, by priority, by order of sending, and within bounds."""

import pytest
from lifecycle_sessions import CALLERS, OWN
from sql_helpers import QueueUnderTest, keys

CALLER = CALLERS[0]
CHECKS = 5000  # the most that one claim reads


# -- priorities and order


def test_a_job_that_was_admitted_goes_before_a_more_urgent_one_of_its_key(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    first = queue.send("k")
    queue.claim(1, CALLER)
    sessions.connections[CALLER].rollback()
    urgent = queue.send("k", priority=9)

    assert [job.id for job in queue.claim()] == [first]
    queue.complete(first)
    assert [job.id for job in queue.claim()] == [urgent]


def test_the_most_urgent_of_a_backlog_is_admitted_first(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    running = queue.send("k")
    queue.claim()
    later, urgent = queue.send("k"), queue.send("k", priority=9)
    queue.complete(running)

    assert [job.id for job in queue.claim()] == [urgent]
    queue.complete(urgent)
    assert [job.id for job in queue.claim()] == [later]


def test_between_keys_the_most_urgent_goes_first_and_then_the_oldest(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo")
    for key, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.send(key, priority=priority)

    assert [keys(queue.claim(1)) for _ in range(4)] == [["b"], ["d"], ["a"], ["c"]]


@pytest.mark.parametrize("session", [OWN, CALLER])
def test_in_order_of_sending_priorities_between_keys_do_not_count(sessions, session):
    queue = QueueUnderTest(sessions, "singleton")
    for key, priority in (("a", 0), ("b", 5), ("c", 9)):
        queue.send(key, priority=priority)
    claims = [keys(queue.claim(1, session, by_priority=False)) for _ in range(3)]

    assert claims == [["a"], ["b"], ["c"]]


def test_a_job_above_the_wanted_priorities_does_not_stand_in_the_way(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    low, urgent = queue.send("k"), queue.send("k", priority=9)
    assert queue.claim(min_priority=10) == []

    (job,) = queue.claim(max_priority=5)
    assert job.id == low
    queue.complete(job)
    assert [job.id for job in queue.claim()] == [urgent]


def test_claims_with_bounds_leave_the_others_to_those_who_want_them(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    for key, priority in (("a", 0), ("b", 5), ("c", 9)):
        queue.send(key, priority=priority)

    assert keys(queue.claim(min_priority=3, max_priority=7)) == ["b"]
    assert keys(queue.claim(max_priority=2**31 - 1, min_priority=6)) == ["c"]
    assert keys(queue.claim()) == ["a"]


def test_strict_fifo_ignores_priorities_within_a_key(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo")
    queue.send("k", priority=9)
    queue.send("k")

    assert queue.claim(max_priority=5) == []
    assert [job.priority for job in queue.claim()] == [9]


def test_a_paused_queue_admits_nobody(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.send("k")
    sessions.run(OWN, lambda own: sessions.store.queues.pause("q", True))
    assert (queue.claim(), queue.claim(1, CALLER)) == ([], [])
    assert queue.count("readiness = 'waiting'") == 1
    sessions.run(OWN, lambda own: sessions.store.queues.pause("q", False))

    assert keys(queue.claim()) == ["k"]


# -- bounds of priority


def test_a_bounded_claim_leaves_no_further_checks(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.send("k")
    owner = queue.claim()
    queue.send("k", priority=10)
    queue.complete(owner)
    assert queue.fetch(max_priority=5) == []
    checks = queue.count_checks()

    for _ in range(5):
        assert queue.fetch(max_priority=5) == []

    assert queue.count_checks() == checks


def test_a_bounded_claim_behind_very_many_owners_that_left_ends(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.fill("k#", 1100)
    owners = queue.claim(1100)
    queue.fill("k#", 1100, priority=10)
    queue.complete(owners)

    assert queue.fetch(max_priority=5) == []
    assert queue.count_checks() <= 2200
    assert len(queue.claim(1100)) == 1100


def test_a_bounded_claim_finds_a_job_behind_one_above_its_bound(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.send("k")
    owner = queue.claim()
    queue.send("k", priority=10)
    queue.send("k", priority=3)
    queue.send("other", priority=20)
    queue.complete(owner)
    assert keys(queue.claim(1)) == ["other"]

    (found,) = queue.fetch(max_priority=5)

    assert found.priority == 3


def test_a_first_job_that_is_being_changed_keeps_one_check_however_many_wait_behind_it(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.fill("k", 500)
    ((head,),) = sessions.query("SELECT id FROM trioboss.live_job ORDER BY seq LIMIT 1")
    queue.change("cancel", head, CALLER)

    assert queue.claim(1000) == []

    sessions.connections[CALLER].rollback()
    assert queue.count_checks() == 1
    assert [job.id for job in queue.claim(1)] == [head]
