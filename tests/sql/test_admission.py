"""Admission: the first job of a backlog without an owner runs next, and no job is overlooked."""

import psycopg
import pytest
from lifecycle_sessions import CALLERS, OWN
from sql_helpers import QueueUnderTest, keys

from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import ClaimRequest, Settlements

CALLER = CALLERS[0]
KEYED = [policy for policy in Policy if policy.is_keyed]
MANY_QUEUED = [Policy.SINGLETON, Policy.KEY_STRICT_FIFO]  # stately has room for one created job of a key
CHECKS = 5000  # the most that one claim reads


# -- a first job that somebody is changing


@pytest.mark.parametrize("policy", KEYED)
@pytest.mark.parametrize("change", ["cancel", "delete"])
def test_a_locked_head_is_not_passed_over(sessions, policy, change):
    queue = QueueUnderTest(sessions, policy)
    if policy is Policy.STATELY:  # has room for one created, so the first of the backlog is a retry
        queue.send("k")
        queue.fail(queue.claim())
        ((head,),) = sessions.query("SELECT id FROM trioboss.job")
    else:
        head = queue.send("k")
    behind = queue.send("k")
    queue.send("other")
    queue.change(change, head, CALLER)

    assert keys(queue.claim()) == ["other"]
    sessions.connections[CALLER].rollback()
    assert [job.id for job in queue.claim()] == [head]
    queue.complete(head)
    assert [job.id for job in queue.claim()] == [behind]


@pytest.mark.parametrize("policy", MANY_QUEUED)
def test_a_head_that_is_locked_while_its_owner_ends_is_not_passed_over(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("k")
    running = queue.claim()
    head, behind = queue.send("k"), queue.send("k")
    assert queue.claim() == []  # the checks of both are answered
    queue.change("cancel", head, CALLER)
    queue.complete(running)

    assert queue.claim() == []
    sessions.connections[CALLER].rollback()
    assert [job.id for job in queue.claim()] == [head]
    queue.change("cancel", head)
    assert [job.id for job in queue.claim()] == [behind]


@pytest.mark.parametrize("policy", MANY_QUEUED)
def test_a_deferred_job_joins_its_backlog_when_it_is_promoted_and_not_before(sessions, policy):
    """A job that is due, and cannot be promoted because somebody changes it, holds up nobody."""
    queue = QueueUnderTest(sessions, policy)
    due = queue.send("k", start_after=60)
    queue.make_due(60)
    queue.change("cancel", due, CALLER)
    other = queue.send("k")

    assert [job.id for job in queue.claim()] == [other]
    sessions.connections[CALLER].rollback()
    queue.complete(other)
    assert [job.id for job in queue.claim()] == [due]


@pytest.mark.parametrize("limit", [1, 10])
@pytest.mark.parametrize("how", ["claim", "in order of sending", "with bounds", "in a transaction"])
def test_locked_heads_do_not_stand_in_the_way_of_other_keys(sessions, how, limit):
    queue = QueueUnderTest(sessions, "singleton")
    queue.fill("locked#", 50)
    queue.send("free")
    sessions.connections[CALLER].execute("DELETE FROM trioboss.live_job WHERE starts_with(key, 'locked')")
    request = {
        "in order of sending": {"by_priority": False},
        "with bounds": {"min_priority": -5},
        "in a transaction": {"session": CALLERS[1]},
    }

    assert keys(queue.claim(limit, **request.get(how, {}))) == ["free"]


def test_a_claim_that_finds_nothing_but_locked_heads_ends(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.fill("locked#", 2 * CHECKS)
    sessions.connections[CALLER].execute("DELETE FROM trioboss.live_job WHERE queue = 'q'")
    sessions.own.execute("SET statement_timeout = '10s'")

    claim = queue.try_claim()
    assert (list(claim.jobs), claim.next_due) == ([], 0.05)
    queue.send("free")
    assert keys(queue.claim()) == ["free"]


# -- each way to leave a key


def plain(statement):
    return lambda queue, job: queue.sessions.own.execute(statement, [job.id])


LEAVING = {
    "complete": lambda queue, job: queue.complete(job),
    "complete in a transaction": lambda queue, job: (
        queue.complete(job, CALLER),
        queue.sessions.connections[CALLER].commit(),
    ),
    "cancel": lambda queue, job: queue.change("cancel", job),
    "delete": lambda queue, job: queue.change("delete", job),
    "delete of active jobs": lambda queue, job: queue.run(
        "changing", "delete_many", ["delete_active_jobs"], own=True
    ),
    "settle and claim": lambda queue, job: queue.run(
        "settle_and_claim", "settle_and_claim", Settlements([(job.lease, "null")]), None
    ),
    "plain DELETE": plain("DELETE FROM trioboss.live_job WHERE id = %s"),
}
# Strict FIFO keeps its key in these cases.
GIVING_UP = {
    "fail": lambda queue, job: queue.fail(job),
    "release": lambda queue, job: queue.release([job]),
    "plain UPDATE": plain("UPDATE trioboss.live_job SET readiness = 'deferred' WHERE id = %s"),
}


@pytest.mark.parametrize("policy", KEYED)
@pytest.mark.parametrize("way", LEAVING)
def test_when_the_owner_of_a_key_leaves_the_next_job_runs(sessions, policy, way):
    queue = QueueUnderTest(sessions, policy)
    queue.send("k")
    (owner,) = queue.claim()
    next_job = queue.send("k")
    assert queue.claim() == []  # the check of its send is answered
    LEAVING[way](queue, owner)

    assert [job.id for job in queue.claim()] == [next_job]


@pytest.mark.parametrize("policy", [Policy.SINGLETON, Policy.STATELY])
@pytest.mark.parametrize("way", GIVING_UP)
def test_when_the_owner_of_a_key_gives_it_up_the_next_job_runs(sessions, policy, way):
    queue = QueueUnderTest(sessions, policy, retry_delay=3600)
    queue.send("k", priority=-1)
    (owner,) = queue.claim()
    next_job = queue.send("k")
    assert queue.claim() == []
    GIVING_UP[way](queue, owner)

    assert [job.id for job in queue.claim()] == [next_job]


def test_owners_that_left_empty_backlogs_hide_no_job_behind_them(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    queue.fill("k#", 3000)
    running = queue.claim(3000)
    assert len(running) == 3000
    behind = queue.send("k2500")
    assert queue.claim() == []
    queue.complete(running)

    assert [job.id for job in queue.claim()] == [behind]


# -- each way to join a backlog


def cancelled(queue):
    id = queue.send("k")
    queue.change("cancel", id)
    return id


def failed(queue):
    id = queue.send("k", retry_limit=0)
    queue.fail(queue.claim())
    return id


def copy(queue):
    with queue.sessions.own.cursor().copy("COPY trioboss.job (name, singleton_key) FROM STDIN") as rows:
        rows.write_row(("q", "k"))


def dead_letter(queue):
    other = QueueUnderTest(queue.sessions, "standard", name="other", retry_limit=0, dead_letter="q")
    other.send("k")
    other.fail(other.claim())


def promote(queue):
    queue.send("k", start_after=60)
    queue.make_due(60)


def move(queue):
    queue.send("k", start_after=60)
    queue.sessions.own.execute("UPDATE trioboss.live_job SET readiness = 'waiting'")


JOINING = {
    "send": lambda queue: queue.send("k"),
    "send in a transaction": lambda queue: (
        queue.send("k", CALLER),
        queue.sessions.connections[CALLER].commit(),
    ),
    "send_throttled": lambda queue: queue.send("k", singleton_seconds=60),
    "insert": lambda queue: queue.sessions.insert(OWN, "q", [{"singleton_key": "k"}, {"singleton_key": "k"}]),
    "plain INSERT": lambda queue: queue.sessions.own.execute(
        "INSERT INTO trioboss.job (name, singleton_key) VALUES ('q', 'k')"
    ),
    "COPY": copy,
    "promotion": promote,
    "resume": lambda queue: queue.change("resume", cancelled(queue)),
    "retry": lambda queue: queue.change("retry", failed(queue)),
    "release": lambda queue: (queue.send("k"), queue.release(queue.claim())),
    "failure": lambda queue: (queue.send("k"), queue.fail(queue.claim())),
    "dead letter": dead_letter,
    "plain UPDATE": move,
}


@pytest.mark.parametrize("policy", KEYED)
@pytest.mark.parametrize("way", JOINING)
def test_a_job_that_joins_a_free_backlog_runs(sessions, policy, way):
    queue = QueueUnderTest(sessions, policy)
    JOINING[way](queue)

    assert keys(queue.claim()) == ["k"]


@pytest.mark.parametrize("policy", KEYED)
def test_checks_do_not_pile_up(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    for _ in range(3):
        for key in ("a", "b", "b", "c"):
            queue.send(key)
        while jobs := queue.claim(2):
            queue.complete(jobs)

    assert (queue.count(), queue.count_checks()) == (0, 0)


def test_a_deleted_queue_leaves_no_checks(sessions):
    queue = QueueUnderTest(sessions, "singleton")
    for key in ("a", "a", "b"):
        queue.send(key)
    queue.claim()
    sessions.run(OWN, lambda own: sessions.store.queues.delete("q"))
    sessions.run(OWN, lambda own: sessions.store.retention.prune())

    assert queue.count_checks() == 0


# -- plain SQL that moves jobs


@pytest.mark.parametrize("policy", KEYED)
def test_a_key_has_one_owner_also_against_a_plain_update(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("k")
    queue.claim()
    queue.send("k")

    with pytest.raises(psycopg.errors.UniqueViolation):
        sessions.own.execute("UPDATE trioboss.live_job SET owner = backlog WHERE readiness = 'waiting'")
    with pytest.raises(psycopg.errors.CheckViolation):
        sessions.own.execute("UPDATE trioboss.live_job SET readiness = 'active' WHERE readiness = 'waiting'")
    sessions.own.execute("UPDATE trioboss.live_job SET readiness = 'ready' WHERE readiness = 'waiting'")
    assert queue.count("readiness = 'waiting'") == 1


@pytest.mark.parametrize("policy", MANY_QUEUED)
@pytest.mark.parametrize("readiness", ["ready", "waiting", "deferred"])
def test_a_plain_update_that_is_not_committed_holds_up_no_claim(sessions, policy, readiness):
    """It makes no job the owner of a key, so admission never waits for it."""
    queue = QueueUnderTest(sessions, policy)
    first, second = queue.send("k"), queue.send("k")
    update = "UPDATE trioboss.live_job SET readiness = %s WHERE id = %s"
    sessions.connections[CALLER].execute(update, [readiness, second])

    assert [job.id for job in queue.claim()] == [first]


@pytest.mark.parametrize("policy", KEYED)
def test_a_ready_job_that_is_put_back_by_plain_sql_gives_its_key_up(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    queue.send("k")
    queue.claim(1, CALLER)
    sessions.connections[CALLER].rollback()
    assert queue.count("readiness = 'ready' AND owner = backlog") == 1
    sessions.own.execute("UPDATE trioboss.live_job SET readiness = 'waiting'")

    assert queue.count("owner IS NOT NULL") == 0
    assert keys(queue.claim()) == ["k"]


def test_a_job_without_a_backlog_that_plain_sql_makes_wait_is_ready(sessions):
    queue = QueueUnderTest(sessions, "standard")
    queue.send("k", start_after=60)
    sessions.own.execute("UPDATE trioboss.live_job SET readiness = 'waiting'")

    assert keys(queue.claim()) == ["k"]


@pytest.mark.parametrize("policy", ["short", "stately"])
def test_a_promoted_job_keeps_the_slot_of_a_created_one(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    assert queue.send("k", start_after=60) is not None
    queue.make_due(60)
    queue.run("settle_and_claim", "settle_and_claim", Settlements(), ClaimRequest(0))

    assert queue.count("readiness = 'deferred'") == 0
    assert queue.send("k") is None
