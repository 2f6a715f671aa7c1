"""Whoever stands in front, however many they are, a claim finds the jobs that can run, and the right ones."""

import threading
from contextlib import closing

import pytest
from lifecycle_desk import Desk
from test_waiting import CALLER, Queue, keys

from trioboss.model.policy import Policy
from trioboss.model.settle_and_claim import Claim, ClaimRequest
from trioboss.postgres.operation import Batch, Operation
from trioboss.testing import temporary_database

# A session that has looked at the time, and not yet at the jobs.
SLOW_TO_READ_ITS_QUEUE = """
    CREATE ROLE slow_reader;
    GRANT USAGE ON SCHEMA trioboss TO slow_reader;
    GRANT ALL ON ALL TABLES IN SCHEMA trioboss TO slow_reader;
    CREATE FUNCTION public.linger() RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_catalog.pg_advisory_xact_lock_shared(1); RETURN true; END';
    ALTER TABLE trioboss.queue ENABLE ROW LEVEL SECURITY;
    CREATE POLICY lingering ON trioboss.queue USING (public.linger());
    SET ROLE slow_reader;
    SET lock_timeout = 0;
"""

KEYED = [Policy.SINGLETON, Policy.KEY_STRICT_FIFO]
RANKED = [Policy.SINGLETON, Policy.STATELY]
CROWD = 3000


def crowd(
    queue: Queue, key: str, count: int = CROWD, *, gate: int = 1, start: str = "0 s", priority: int = 0
):
    """So many jobs, as `send` would put them."""
    queue.desk.hands[0].execute(
        "INSERT INTO trioboss.job_common (id, name, priority, retry_limit, retry_delay, retry_backoff, retry_jitter,"
        " start_after, singleton_key, expire_in, auto_heartbeat, max_lease_extensions, keep_until, delete_after,"
        " policy, gate)"
        " SELECT gen_random_uuid(), q.name, %s, 2, 0, false, 0, now() + %s::interval + n * '1 ms'::interval,"
        " replace(%s, '#', n::text), '1 h', true, 3, now() + interval '1 day', '1 day', q.policy, %s"
        " FROM trioboss.queue q, generate_series(1, %s) n WHERE q.name = 'q'",
        [priority, start, key, gate, count],
    )


def fetch(queue: Queue, hand: int = 0, **options) -> list:
    options = {"batch_size": 1, "priority": True, "ignore_start_after": False, **options}
    criteria = {"min_priority": None, "max_priority": None, **options}
    return queue.desk.say(hand, lambda own: queue.desk.store.claiming.fetch("q", own=own, **criteria))


def claim_only(desk: Desk) -> Operation[Claim]:
    """A claim that makes nothing ready first."""
    queue, verbs = (yield from desk.store.context.know("q")), desk.store.claiming
    results = yield Batch(verbs.claiming(queue, ClaimRequest(1), lazy=True))
    return verbs.read(queue, ClaimRequest(1), results[-1])


def until_waiting(connection, process: int) -> None:
    """Return when that session waits for a lock."""
    while not connection.execute("SELECT cardinality(pg_blocking_pids(%s))", [process]).fetchone()[0]:
        pass


@pytest.mark.parametrize("policy", KEYED)
def test_a_crowd_that_arrives_for_one_key_delays_no_other(desk, policy):
    queue = Queue(desk, policy)
    crowd(queue, "a", start="-1 h")
    queue.send("b")

    assert sorted(keys(queue.claim())) == ["a", "b"]


@pytest.mark.parametrize("policy", KEYED)
def test_a_crowd_that_arrives_for_one_key_is_looked_at_once(desk, policy):
    queue = Queue(desk, policy)
    crowd(queue, "a", start="-1 h")
    queue.send("b")
    queue.claim()

    ((placed,),) = desk.query("SELECT count(*) FROM trioboss.job WHERE gate <> 1")
    assert placed <= 502


@pytest.mark.parametrize("policy", KEYED)
def test_a_crowd_of_blocked_keys_delays_no_other(desk, policy):
    queue = Queue(desk, policy)
    crowd(queue, "a#", 1200)
    queue.pass_time(10)
    assert len(queue.claim(1200)) == 1200
    for _ in range(2):
        crowd(queue, "a#", 1200, start="-1 h")
    queue.send("b")

    assert keys(queue.claim()) == ["b"]


@pytest.mark.parametrize("policy", KEYED)
def test_deferred_jobs_that_are_due_at_once_delay_no_other_key(desk, policy):
    queue = Queue(desk, policy)
    crowd(queue, "a", gate=3, start="-1 h")
    queue.send("b", start_after=1)
    queue.pass_time(10)

    assert sorted(keys(queue.claim())) == ["a", "b"]


@pytest.mark.parametrize("policy", KEYED)
def test_a_deferred_job_in_a_crowd_is_not_passed_over_by_a_later_one_of_its_key(desk, policy):
    queue = Queue(desk, policy)
    crowd(queue, "a", gate=3, start="-1 h")
    first = queue.send("b", start_after=1)
    queue.pass_time(10)
    queue.send("b")

    assert first in [job.id for job in queue.claim()]


@pytest.mark.parametrize(("policy", "gate"), [("singleton", 1), ("singleton", 3), ("standard", 3)])
def test_a_large_batch_comes_in_one_claim(desk, policy, gate):
    queue = Queue(desk, policy)
    crowd(queue, "k#", gate=gate, start="-1 h")

    assert len(queue.claim(CROWD)) == CROWD


def test_the_most_urgent_of_a_crowd_that_is_due_comes_first(desk):
    queue = Queue(desk, "standard")
    crowd(queue, "k#", gate=3, start="-1 h")
    queue.send("urgent", start_after=1, priority=9)
    queue.pass_time(10)

    assert keys(queue.claim(1)) == ["urgent"]


@pytest.mark.parametrize("policy", RANKED)
def test_a_ready_job_lets_a_more_urgent_one_of_its_key_go_first(desk, policy):
    queue = Queue(desk, policy)
    queue.send("k")
    assert queue.claim(min_priority=5) == []  # now it has its turn
    if policy is Policy.STATELY:  # has room for one created
        desk.query("UPDATE trioboss.job SET state = 'retry' RETURNING 1")
    urgent = queue.send("k", priority=9)

    assert [job.id for job in queue.claim(min_priority=5)] == [urgent]


def test_a_ready_job_that_somebody_is_changing_is_not_passed_by_for_good(desk):
    queue = Queue(desk, "singleton")
    queue.send("k")
    assert queue.claim(min_priority=5) == []
    assert keys(queue.claim(1, CALLER)) == ["k"]
    urgent = queue.send("k", priority=9)
    assert queue.claim() == []
    desk.hands[CALLER].rollback()

    assert [job.id for job in queue.claim()] == [urgent]


def test_a_job_above_the_wanted_priorities_does_not_stand_in_the_way(desk):
    queue = Queue(desk, "singleton")
    low, urgent = queue.send("k"), queue.send("k", priority=9)
    assert queue.claim(min_priority=10) == []  # the urgent one has its turn

    (job,) = queue.claim(max_priority=5)
    assert job.id == low
    queue.settle("complete", job, 0, None)
    assert [job.id for job in queue.claim()] == [urgent]


def test_strict_order_knows_no_priorities(desk):
    queue = Queue(desk, "key_strict_fifo")
    queue.send("k", priority=9)
    queue.send("k")

    assert queue.claim(max_priority=5) == []
    assert [job.priority for job in queue.claim()] == [9]


def test_a_fetch_ahead_of_time_changes_no_job_that_it_does_not_return(desk):
    queue = Queue(desk, "key_strict_fifo")
    queue.send("a")
    queue.claim()
    for key in ("a", "a", "a", "b"):
        queue.send(key, start_after=3600)

    assert keys(fetch(queue, ignore_start_after=True)) == ["b"]
    ((deferred,),) = desk.query("SELECT count(*) FROM trioboss.job WHERE gate = 3 AND start_after > now()")
    assert deferred == 3


@pytest.mark.parametrize("policy", ["standard", "singleton"])
def test_a_fetch_ahead_of_time_from_a_paused_queue_changes_nothing(desk, policy):
    queue = Queue(desk, policy)
    queue.send("a", start_after=3600)
    desk.query("UPDATE trioboss.queue SET paused = true RETURNING 1")

    assert fetch(queue, ignore_start_after=True) == []
    assert desk.query("SELECT gate, start_after > now() FROM trioboss.job") == [(3, True)]


def test_a_fetch_ahead_of_time_gets_the_retry_that_holds_its_key(desk):
    queue = Queue(desk, "key_strict_fifo", retry_delay=3600)
    queue.send("a", start_after=7200)
    job = queue.send("a")
    queue.settle("fail", queue.claim(), 0, "an error")

    assert [early.id for early in fetch(queue, batch_size=2, ignore_start_after=True)] == [job]


def test_what_was_changed_between_the_look_and_the_claim_is_looked_for_again_at_once(server_dsn, template):
    with temporary_database(server_dsn, template) as dsn, closing(Desk.open(dsn)) as desk:
        queue = Queue(desk, "standard")
        queue.send("k")
        own, other = desk.hands[0], desk.hands[CALLER]
        own.execute(SLOW_TO_READ_ITS_QUEUE)
        other.execute("SELECT pg_advisory_lock(1)")
        claims: list[Claim] = []
        thread = threading.Thread(target=lambda: claims.append(desk.say(0, lambda own: claim_only(desk))))
        thread.start()
        until_waiting(other, own.info.backend_pid)
        other.execute("UPDATE trioboss.job SET progress = '1'")
        other.commit()
        other.execute("SELECT pg_advisory_unlock(1)")
        thread.join()

        assert [(claim.jobs, claim.next_due) for claim in claims] == [([], 0)]
        own.execute("RESET ROLE")
        assert len(queue.claim()) == 1
