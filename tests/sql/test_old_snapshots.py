"""Claims that begin after a position: they skip what came before, also the entries that an old snapshot keeps."""

import psycopg
import pytest
from plan_helpers import Planner
from sql_helpers import QueueUnderTest, keys

from trioboss.model.settle_and_claim import Position

CLAIM = {"queue": "q", "limit": 10, "async_commit": True}


@pytest.fixture
def planner(sessions):
    planner = Planner.open(sessions.own.info.dsn, "late")
    yield planner
    planner.connection.close()


@pytest.fixture
def old_snapshot(sessions):
    """A transaction that reads nothing any more, and is still open."""
    with psycopg.connect(sessions.own.info.dsn) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1 FROM pg_class")
        yield


def test_a_claim_goes_on_with_jobs_of_the_same_priority_after_its_position(sessions):
    queue = QueueUnderTest(sessions)
    first, second = queue.send(), queue.send()
    queue.send(priority=1)
    third = queue.send()
    jobs = {job.id: job for job in queue.claim()}
    queue.release(jobs.values())

    after = Position(0, jobs[second].seq)
    assert [job.id for job in queue.claim(after=after)] == [third]
    assert first in [job.id for job in queue.claim()]


def test_the_position_of_a_claim_is_that_of_its_last_job(sessions):
    queue = QueueUnderTest(sessions)
    queue.send(priority=1)
    queue.send()
    claim = queue.try_claim()

    assert claim.position == Position(0, claim.jobs[-1].seq)
    assert claim.took > 0
    assert queue.try_claim().position is None


def test_a_keyed_claim_goes_on_with_checks_after_its_position(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo")
    for key in "abc":
        queue.send(key)
    ((seq,),) = sessions.query("SELECT seq FROM trioboss.live_job WHERE key = 'b'")

    assert keys(queue.claim(after=Position(0, seq))) == ["c"]
    assert keys(queue.claim()) == ["a", "b"]


def test_a_keyed_claim_goes_on_with_owners_that_left_after_its_position(sessions):
    queue = QueueUnderTest(sessions, "key_strict_fifo")
    for key in "aabbc":
        queue.send(key)
    a, b, c = queue.claim()
    queue.complete(a)
    ((seq,),) = sessions.query("SELECT seq FROM trioboss.backlog_check WHERE priority IS NULL")
    queue.complete(b)
    claim = queue.try_claim(after=Position(0, c.seq, seq))

    assert keys(claim.jobs) == ["b"]
    assert claim.position.left_seq > seq
    assert keys(queue.claim()) == ["a"]


def test_a_claim_in_order_of_sending_knows_no_position(sessions):
    queue = QueueUnderTest(sessions)
    queue.send()

    assert queue.try_claim(by_priority=False).took == 0


@pytest.mark.usefixtures("old_snapshot")
def test_a_claim_after_a_position_does_not_read_the_jobs_that_were_claimed_before(sessions, planner):
    queue = QueueUnderTest(sessions)
    queue.fill("k", 6000)
    last = queue.try_claim(5500).position

    onward = {"after_priority": last.priority, "after_seq": last.seq}
    # The jobs that were claimed fill some eighty pages; to lease ten takes about a hundred.
    anew = planner.run("claim", **CLAIM).buffers
    assert planner.run("claim_onward", **CLAIM, **onward).buffers < anew - 50


@pytest.mark.usefixtures("old_snapshot")
def test_a_keyed_claim_after_a_position_does_not_read_the_checks_that_were_answered_before(sessions, planner):
    queue = QueueUnderTest(sessions, "key_strict_fifo", keep_completed=False)
    queue.fill("k#", 6000)
    claim = CLAIM | {"checks": 20}
    queue.complete(queue.claim(5500))  # leaves checks of 5500 owners that left
    claims = [queue.try_claim(1) for _ in range(6)]  # each answers a thousand of them

    last = claims[-1].position
    onward = {"after_rank": -last.priority, "after_seq": last.seq, "after_left": last.left_seq}
    anew = planner.run("admit_and_claim", **claim).buffers
    assert planner.run("admit_and_claim", **claim, **onward).buffers < anew - 50
