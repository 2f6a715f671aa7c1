"""A caller's open transaction holds up the jobs it has changed, and nothing else: no worker, no other key, no claim.

Our own session gives up after a short lock_timeout, so every step that returns is a step that did not wait.
"""

from datetime import UTC, datetime, timedelta
from itertools import product

import psycopg
import pytest
from lifecycle_sessions import CALLERS, OWN
from sql_helpers import QueueUnderTest, keys

from trioboss.errors import UsageError
from trioboss.model.policy import Policy

CALLER = CALLERS[0]
KEYED = [policy for policy in Policy if policy.is_keyed]


@pytest.fixture(autouse=True)
def impatient(sessions):
    sessions.own.execute("SET lock_timeout = '500ms'")


class Scene:
    """A queue with jobs of several keys: one that the caller runs, one that a worker runs, queued ones, ended ones."""

    def __init__(self, sessions, policy) -> None:
        self.sessions = sessions
        self.queue = QueueUnderTest(sessions, policy, retry_limit=0)
        for key in ("failed", "called", "worked", "cancelled"):
            self.queue.send(key)
        self.failed, self.called, self.worked, cancelled = self.queue.claim()
        self.cancelled = cancelled.id
        self.queue.fail(self.failed)
        self.queue.change("cancel", self.cancelled)
        self.queue.fill("head#", 30)
        self.queue.send("free")
        heads = sessions.query("SELECT id FROM trioboss.live_job WHERE starts_with(key, 'head') ORDER BY seq")
        self.heads = [id for (id,) in heads]

    def plain(self, statement, *values):
        self.sessions.connections[CALLER].execute(statement, values)


# The changes of a caller that are not committed.
OPEN = {
    "send": lambda scene: scene.queue.send("called", CALLER),
    "send of a new key": lambda scene: scene.queue.send("new", CALLER),
    "complete": lambda scene: scene.queue.complete(scene.called, CALLER),
    "fail": lambda scene: scene.queue.fail(scene.called, CALLER),
    "heartbeat": lambda scene: scene.queue.touch(scene.called, CALLER),
    "cancel of a queued job": lambda scene: scene.queue.change("cancel", scene.heads[0], CALLER),
    "cancel of many queued jobs": lambda scene: scene.queue.change("cancel", scene.heads, CALLER),
    "cancel of an active job": lambda scene: scene.queue.change("cancel", scene.called, CALLER),
    "delete of many queued jobs": lambda scene: scene.queue.change("delete", scene.heads, CALLER),
    "resume": lambda scene: scene.queue.change("resume", scene.cancelled, CALLER),
    "retry": lambda scene: scene.queue.change("retry", scene.failed, CALLER),
    "fetch": lambda scene: scene.queue.claim(1, CALLER),
    "fetch of many": lambda scene: scene.queue.claim(20, CALLER),
    "fetch in order of sending": lambda scene: scene.queue.claim(2, CALLER, by_priority=False),
    "plain INSERT": lambda scene: scene.plain(
        "INSERT INTO trioboss.job (name, singleton_key) VALUES ('q', 'plain')"
    ),
    "plain UPDATE": lambda scene: scene.plain(
        "UPDATE trioboss.live_job SET data = '1' WHERE key = ANY (%s)", ["called", "head0", "head1"]
    ),
    "plain DELETE": lambda scene: scene.plain("DELETE FROM trioboss.live_job WHERE key = 'called'"),
}


def complete_as_a_worker(scene):
    scene.queue.complete(scene.worked)
    return True


def claim_another_key(scene):
    return "free" in keys(scene.queue.claim(50))


def claim_one(scene):
    return len(scene.queue.claim(1)) == 1


def release_as_a_worker(scene):
    scene.queue.release([scene.worked])
    return True


def fail_as_a_worker(scene):
    scene.queue.fail(scene.worked)
    return True


def send_another_key(scene):
    return scene.queue.send("another") is not None


def settle_and_claim(scene):
    scene.queue.complete(scene.worked)
    scene.queue.send("worked")
    return "worked" in keys(scene.queue.claim(50))


# The work that must go on meanwhile.
OTHERS = {
    "a worker's completion": complete_as_a_worker,
    "a worker's heartbeat": lambda scene: scene.queue.touch(scene.worked) is None,
    "a worker's release": release_as_a_worker,
    "a worker's failure": fail_as_a_worker,
    "another key's claim": claim_another_key,
    "a claim on the same queue": claim_one,
    "the next job of a worker's key": settle_and_claim,
    "a send of another key": send_another_key,
}


def cover(pairs):
    """Each pair with a policy without keys and one with, in turn; with the others by the marker soak."""
    rotated = {}
    for number, pair in enumerate(pairs):
        free = [policy for policy in Policy if not policy.is_keyed]
        rotated[pair] = {free[number % len(free)], KEYED[number % len(KEYED)]}
    for pair in pairs:
        for policy in Policy:
            marks = () if policy in rotated[pair] else (pytest.mark.soak,)
            yield pytest.param(*pair, policy, marks=marks, id="-".join((*pair, policy)))


@pytest.mark.parametrize(("opened", "other", "policy"), list(cover(list(product(OPEN, OTHERS)))))
def test_an_open_transaction_makes_nobody_wait(sessions, opened, other, policy):
    scene = Scene(sessions, policy)
    OPEN[opened](scene)

    assert OTHERS[other](scene)


@pytest.mark.parametrize("policy", Policy)
@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("opened", OPEN)
def test_once_it_has_ended_nothing_is_stuck(sessions, opened, commits, policy):
    scene = Scene(sessions, policy)
    OPEN[opened](scene)
    scene.queue.claim(50)
    connection = sessions.connections[CALLER]
    connection.commit() if commits else connection.rollback()
    while scene.queue.claim(50) or scene.queue.count("readiness = 'active'"):
        active = [
            id for (id,) in sessions.query("SELECT id FROM trioboss.live_job WHERE readiness = 'active'")
        ]
        scene.queue.complete(active)

    assert scene.queue.count("readiness <> 'ended'") == 0


# -- each kind of open transaction, and what comes after it


@pytest.mark.parametrize("policy", Policy)
def test_a_send_becomes_claimable_with_its_commit(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("k")
    (running,) = queue.claim()
    sent = queue.send("k", CALLER)  # an exclusive queue refuses it
    queue.complete(running)

    assert queue.claim() == []
    sessions.connections[CALLER].commit()
    assert keys(queue.claim()) == (["k"] if sent else [])


@pytest.mark.parametrize("policy", KEYED)
def test_an_open_send_delays_no_release_and_no_retry_of_its_key(sessions, policy):
    queue = QueueUnderTest(sessions, policy, retry_limit=5)
    queue.send("k")
    (running,) = queue.claim()
    queue.send("k", CALLER)

    queue.release([running])
    (running,) = queue.claim()
    queue.fail(running)

    assert keys(queue.claim()) == ["k"]


@pytest.mark.parametrize("policy", Policy)
def test_an_open_fetch_holds_the_jobs_that_it_got(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    for key in ("a", "b", "c"):
        queue.send(key)
    queue.send("later", start_after=60)
    queue.make_due(60)

    assert keys(queue.claim(1, CALLER)) == ["a"]
    assert keys(queue.claim()) == ["b", "c", "later"]
    sessions.connections[CALLER].rollback()
    assert keys(queue.claim()) == ["a"]


@pytest.mark.parametrize("by_priority", [True, False])
def test_a_locked_job_is_passed_over_where_there_are_no_keys(sessions, by_priority):
    queue = QueueUnderTest(sessions, "standard")
    first, second = queue.send("first"), queue.send("second")
    queue.change("cancel", first, CALLER)

    assert [job.id for job in queue.claim(1, by_priority=by_priority)] == [second]


@pytest.mark.parametrize("policy", KEYED)
def test_an_open_completion_keeps_its_key_and_no_other(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("k")
    (running,) = queue.claim()
    queue.complete(running, CALLER)
    queue.send("k")
    queue.send("other")

    assert keys(queue.claim()) == ["other"]
    sessions.connections[CALLER].commit()
    assert keys(queue.claim()) == ["k"]


def test_an_open_dead_letter_of_a_strict_fifo_queue_lets_senders_of_its_key_wait(sessions):
    """Its number has to become visible before theirs; workers that fail other jobs of the key never wait."""
    dead = QueueUnderTest(sessions, "key_strict_fifo", name="dead")
    queue = QueueUnderTest(sessions, "standard", dead_letter="dead", retry_limit=0)
    queue.send("k")
    queue.send("k")
    mine, theirs = queue.claim()
    queue.fail(mine, CALLER)
    queue.fail(theirs)

    with pytest.raises(psycopg.errors.LockNotAvailable):
        dead.send("k")
    sessions.connections[CALLER].commit()
    assert len(dead.claim()) == 1


# -- deferred jobs that are claimed early


def test_deferred_jobs_of_a_keyed_queue_cannot_be_claimed_early_in_a_transaction(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo")
    queue.send("k", start_after=60)

    with pytest.raises(UsageError, match="ignore_start_after"):
        queue.fetch(CALLER, ignore_start_after=True)


def test_deferred_jobs_of_other_queues_can_be_claimed_early_in_a_transaction(sessions):
    queue = QueueUnderTest(sessions, "standard")
    queue.send("k", start_after=60)

    assert keys(queue.fetch(CALLER, ignore_start_after=True)) == ["k"]
    sessions.connections[CALLER].rollback()
    assert queue.claim() == []


@pytest.mark.parametrize("end", ["complete", "cancel"])
def test_a_delete_that_waited_for_the_end_of_a_job_finds_it_among_the_ended(sessions, end):
    queue = QueueUnderTest(sessions, "standard")
    queue.send("k")
    (job,) = queue.claim()
    if end == "complete":
        queue.complete(job, CALLER)
    else:
        queue.change("cancel", job, CALLER)

    settled = sessions.run_waiting(
        lambda own: sessions.store.changing.delete("q", job.id, own=own), sessions.connections[CALLER].commit
    )

    assert settled.ids == (job.id,)
    assert sessions.rows() == []


def test_our_own_session_gives_up_when_it_has_to_wait(sessions):
    """The other tests here would not notice a wait otherwise."""
    queue = QueueUnderTest(sessions, "exclusive")
    queue.send("k", CALLER)

    with pytest.raises(psycopg.errors.LockNotAvailable):
        queue.send("k", OWN)


def test_a_rescue_does_not_wait_for_a_caller_who_has_settled_a_job_that_expired(sessions):
    expired = QueueUnderTest(sessions, "standard", name="expired", expire_in=1, retry_limit=3)
    other = QueueUnderTest(sessions, "standard", name="other", expire_in=1, retry_limit=3)
    expired.send()
    (job,) = expired.claim(1)
    other.send()
    other.claim(1)
    expired.complete(job, CALLER)
    sessions.now = datetime.now(UTC) + timedelta(minutes=2)

    rescued = sessions.run(
        OWN, lambda own: sessions.store.maintenance.rescue_leases(5.0, 0.5, warnings=False)
    )

    assert [name for name, _, _ in rescued.ended] == ["other"]
    sessions.connections[CALLER].commit()
    assert expired.states().count("completed") == 1
