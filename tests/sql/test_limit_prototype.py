"""A limit fits into admission as one more backlog: a prototype, with the statements for keys as they are.

Public limits come later. This holds the decision (docs/decisions/0003) that they need no second mechanism.
"""

import random
import threading
import time
from pathlib import Path

import pytest
from lifecycle_sessions import CALLERS, OWN, Sessions
from sql_helpers import NAME, QueueUnderTest

PROTOTYPE = Path(__file__).with_name("limit_prototype.sql").read_text("utf-8")
PLACES = 3
CALLER = CALLERS[0]
POLICIES = ["standard", "singleton", "key_strict_fifo"]
WORKERS = 4
JOBS = 60


@pytest.fixture
def sessions(dsn):
    sessions = Sessions.open(dsn)
    sessions.own.execute(PROTOTYPE)
    sessions.own.execute("INSERT INTO trioboss.limited_queue VALUES (%s, 'limit:api', %s)", [NAME, PLACES])
    yield sessions
    sessions.close()


class LimitedQueue(QueueUnderTest):
    """A queue with a limit. Its claim answers the checks of keys, then those of the limit, then leases ready jobs."""

    def claim(self, limit=10, session=OWN, **criteria):
        criteria["by_priority"] = (
            False  # with a limit behind the key, a claim must not lease from the backlog of a key
        )
        jobs = super().claim(limit, session, **criteria)
        self.admit_limited()
        return jobs + super().claim(limit, session, **criteria)

    def admit_limited(self):
        with self.sessions.own.transaction():
            lock = self.sessions.store.context.bind("lock_admission", queue=self.name)
            self.sessions.own.execute(lock.statement.text.replace("$1", "%s"), [self.name])
            self.sessions.own.execute("SELECT trioboss.admit_limited(%s, 1000)", [self.name])


def test_no_more_jobs_run_than_the_limit_has_places(sessions):
    queue = LimitedQueue(sessions)
    sent = [queue.send() for _ in range(5)]

    first = queue.claim()
    assert [job.id for job in first] == sent[:3]
    assert queue.claim() == []
    queue.complete(first[:1])
    assert [job.id for job in queue.claim()] == sent[3:4]


def test_a_job_waits_for_its_key_first_and_keeps_it_while_it_waits_for_the_limit(sessions):
    queue = LimitedQueue(sessions, "key_strict_fifo")
    for key in "aabbccdd":
        queue.send(key)

    first = queue.claim()
    assert [job.singleton_key for job in first] == ["a", "b", "c"]
    ((owned,),) = sessions.query("SELECT count(owner) FROM trioboss.live_job WHERE readiness = 'waiting'")
    assert owned == 1  # the first job of d
    queue.complete(first[:1])
    assert [job.singleton_key for job in queue.claim()] == [
        "a"
    ]  # its second job was sent before the first of d
    queue.complete(first[1:])
    assert [job.singleton_key for job in queue.claim()] == ["b", "c"]


def test_a_retry_waits_for_a_place_again(sessions):
    queue = LimitedQueue(sessions, retry_limit=2, retry_delay=0)
    for _ in range(4):
        queue.send()
    running = queue.claim()
    queue.fail(running[:1])

    again = queue.claim()
    assert len(again) == 1
    assert queue.count("readiness = 'active'") == PLACES


def test_a_place_whose_return_is_not_committed_is_taken_and_makes_nobody_wait(sessions):
    queue = LimitedQueue(sessions)
    sent = [queue.send() for _ in range(5)]
    running = queue.claim()
    queue.complete(running[:1], session=CALLER)

    assert queue.claim() == []
    queue.complete(running[1:2])
    assert [job.id for job in queue.claim()] == sent[3:4]
    sessions.connections[CALLER].commit()
    assert [job.id for job in queue.claim()] == sent[4:]


@pytest.mark.parametrize("policy", POLICIES)
def test_the_limit_holds_and_no_job_is_left_with_many_workers(dsn, sessions, policy):
    queue = LimitedQueue(sessions, policy, retry_limit=1000, retry_delay=0)
    ended: list[object] = []
    most: list[int] = []
    failures: list[BaseException] = []
    deadline = time.monotonic() + 120

    def work(seed):
        chance = random.Random(seed)
        own = Sessions.open(dsn)
        try:
            mine = LimitedQueue.__new__(LimitedQueue)
            mine.sessions, mine.name = own, NAME
            while len(ended) < JOBS and not failures:
                assert time.monotonic() < deadline, f"{JOBS - len(ended)} jobs are left"
                for job in mine.claim(2):
                    most.append(mine.count("readiness = 'active'"))
                    act = chance.random()
                    if act < 0.2:
                        mine.release([job])
                    elif act < 0.4:
                        mine.fail([job])
                    else:
                        mine.complete([job])
                        ended.append(job.id)
        except BaseException as error:
            failures.append(error)
        finally:
            own.close()

    for number in range(JOBS):
        queue.send(f"k{number % 7}")
    threads = [threading.Thread(target=work, args=[seed]) for seed in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(set(ended)) == JOBS
    assert max(most) <= PLACES
    assert sessions.query("SELECT count(*) FROM trioboss.limit_place") == [(0,)]
