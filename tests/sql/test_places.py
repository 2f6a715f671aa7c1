"""Going back to a place that may be taken: retries, releases and revivals, several at a time."""

from datetime import UTC, datetime, timedelta

import pytest
from lifecycle_desk import OWN, Desk

from trioboss.errors import JobNotFound
from trioboss.model.job import Job, NewJob
from trioboss.model.settle_and_claim import ClaimRequest


class Queue:
    def __init__(self, desk: Desk, **options) -> None:
        self.desk = desk
        self.say("queues", "create", options)

    def say(self, part: str, verb: str, *args, **options):
        method = getattr(getattr(self.desk.store, part), verb)
        return self.desk.say(OWN, lambda own: method("q", *args, **options))

    def send(self, key: str | None = None, unique_until: str | None = None, **options):
        return self.say(
            "sending", "send", NewJob(singleton_key=key, **options), own=True, unique_until=unique_until
        )

    def claim(self) -> list[Job]:
        return self.say("claiming", "claim", ClaimRequest(10)).jobs

    def fail(self, jobs: list[Job]) -> None:
        self.say("settling", "fail", jobs, "an error", own=True)

    def states(self) -> list[str]:
        return [
            state for (state,) in self.desk.query("SELECT state::text FROM trioboss.all_jobs ORDER BY seq")
        ]


def active_singletons(desk: Desk, *limits: int) -> list[Job]:
    """Jobs of send_singleton that run at the same time: each was sent when the one before had started."""
    queue = Queue(desk)
    jobs = []
    for limit in limits:
        queue.send("k", "started", retry_limit=limit)
        jobs += queue.claim()
    return jobs


@pytest.mark.parametrize("key", [None, "k"])
def test_jobs_that_fail_together_are_all_retried(desk, key):
    queue = Queue(desk)
    for _ in range(3):
        queue.send(key)
    queue.fail(queue.claim())

    assert queue.states() == ["retry", "retry", "retry"]


def test_of_two_singletons_that_fail_together_the_first_is_retried(desk):
    jobs = active_singletons(desk, 1, 1)
    desk.say(OWN, lambda own: desk.store.settling.fail("q", jobs, None, own=own))

    assert desk.query("SELECT state::text FROM trioboss.all_jobs ORDER BY seq") == [("retry",), ("failed",)]


def test_a_singleton_without_retries_is_in_nobodys_way(desk):
    jobs = active_singletons(desk, 0, 1)
    desk.say(OWN, lambda own: desk.store.settling.fail("q", jobs, None, own=own))

    assert desk.query("SELECT state::text FROM trioboss.all_jobs ORDER BY seq") == [("failed",), ("retry",)]


def test_of_two_singletons_that_are_released_together_the_first_waits_again(desk):
    jobs = active_singletons(desk, 5, 5)
    desk.say(OWN, lambda own: desk.store.settling.release_leases("q", [job.lease for job in jobs]))

    assert desk.query("SELECT state::text FROM trioboss.all_jobs ORDER BY seq") == [("retry",), ("failed",)]


@pytest.mark.parametrize("policy", ["standard", "singleton", "stately", "exclusive", "key_strict_fifo"])
def test_a_job_that_is_given_back_has_lost_no_try(desk, policy):
    queue = Queue(desk, policy=policy, retry_limit=1)
    queue.send("k")
    for _ in range(3):
        queue.say("settling", "release_leases", [job.lease for job in queue.claim()])
    (job,) = queue.claim()

    assert (job.retry_count, job.attempt) == (0, 4)


@pytest.mark.parametrize("policy", ["standard", "key_strict_fifo"])
@pytest.mark.parametrize("limit", [0, 2])
def test_a_retry_by_hand_is_one_more_try(desk, policy, limit):
    queue = Queue(desk, policy=policy, retry_limit=limit)
    id = queue.send("k")
    tries = []
    for _ in range(3):
        while jobs := queue.claim():
            tries.append(jobs[0].retry_count)
            queue.fail(jobs)
        queue.say("settling", "retry", id, own=True)

    assert tries == [*range(limit + 1), limit + 1, limit + 2]


@pytest.mark.parametrize("policy", ["singleton", "stately"])
def test_a_key_is_free_while_its_job_waits_for_a_retry(desk, policy):
    queue = Queue(desk, policy=policy, retry_delay=60)
    queue.send("k")
    running = queue.claim()
    next_one = queue.send("k")
    assert queue.claim() == []  # it has taken its place in the line
    queue.fail(running)

    assert [job.id for job in queue.claim()] == [next_one]


def test_a_stately_queue_has_room_for_one_retry_a_key(desk):
    queue = Queue(desk, policy="stately", retry_delay=60, retry_limit=5)
    for _ in range(2):
        queue.send("k")
        queue.fail(queue.claim())

    assert queue.states() == ["retry", "failed"]


@pytest.mark.parametrize("policy", ["standard", "singleton", "key_strict_fifo"])
@pytest.mark.parametrize("verb", ["fail", "release", "retry", "resume"])
def test_the_retention_of_a_job_that_waits_again_starts_anew(desk, policy, verb):
    """It is about time spent waiting: a job must not be swept away because it ran, or was ended, for long."""
    desk.now = datetime(2030, 1, 1, tzinfo=UTC)
    queue = Queue(desk, policy=policy, retry_limit=0 if verb == "retry" else 1)
    id = queue.send("k", retention=100)
    jobs = queue.claim()
    desk.now += timedelta(hours=1)
    match verb:
        case "fail" | "retry":
            queue.fail(jobs)
        case "release":
            queue.say("settling", "release_leases", [job.lease for job in jobs])
        case "resume":
            queue.say("settling", "cancel", id, own=True)
    desk.now += timedelta(hours=1)
    if verb in ("retry", "resume"):
        queue.say("settling", verb, id, own=True)
    ((kept, start),) = desk.query("SELECT keep_until - start_after, start_after FROM trioboss.job")

    assert kept == timedelta(seconds=100)
    assert start >= desk.now - timedelta(hours=1)


@pytest.mark.parametrize("unique_until", ["ended", "started"])
def test_a_blocking_job_stays_failed_while_its_place_is_taken(desk, unique_until):
    queue = Queue(desk, policy="key_strict_fifo", retry_limit=0)
    id = queue.send("k", unique_until)
    queue.fail(queue.claim())
    other = queue.send("k", unique_until)

    with pytest.raises(JobNotFound):
        queue.say("settling", "retry", id, own=True)
    queue.say("settling", "delete", other, own=True)
    queue.say("settling", "retry", id, own=True)
    assert queue.states() == ["retry"]
