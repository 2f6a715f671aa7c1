"""Jobs that are queued again, whose slot may be taken: retries, releases and revivals, several at a time."""

from datetime import UTC, datetime, timedelta

import pytest
from lifecycle_sessions import Sessions
from sql_helpers import QueueUnderTest

from trioboss.errors import JobNotFound
from trioboss.model.job import Job


def active_singletons(sessions: Sessions, *limits: int) -> tuple[QueueUnderTest, list[Job]]:
    """Jobs of send_singleton that run at the same time: each was sent when the one before had started."""
    queue = QueueUnderTest(sessions)
    jobs = []
    for limit in limits:
        queue.send("k", unique_until="started", retry_limit=limit)
        jobs += queue.claim()
    return queue, jobs


@pytest.mark.parametrize("key", [None, "k"])
def test_jobs_that_fail_together_are_all_retried(sessions, key):
    queue = QueueUnderTest(sessions)
    for _ in range(3):
        queue.send(key)
    queue.fail(queue.claim())

    assert queue.states() == ["retry", "retry", "retry"]


def test_of_two_singletons_that_fail_together_the_first_is_retried(sessions):
    queue, jobs = active_singletons(sessions, 1, 1)
    queue.fail(jobs)

    assert queue.states() == ["retry", "failed"]


def test_a_singleton_without_retries_takes_no_slot(sessions):
    queue, jobs = active_singletons(sessions, 0, 1)
    queue.fail(jobs)

    assert queue.states() == ["failed", "retry"]


def test_two_singletons_that_are_released_together_both_wait_again(sessions):
    """To release never fails: the second is queued beside the first, and is no singleton any more."""
    queue, jobs = active_singletons(sessions, 5, 5)
    queue.release(jobs)

    assert sessions.query("SELECT state, unique_until FROM trioboss.job ORDER BY seq") == [
        ("retry", "started"),
        ("retry", None),
    ]
    assert queue.send("k", unique_until="started") is None
    assert len(queue.claim()) == 2


def test_a_stately_job_that_is_released_beside_a_retry_waits_without_a_slot(sessions):
    queue = QueueUnderTest(sessions, "stately", retry_delay=60)
    queue.send("k")
    queue.fail(queue.claim())
    queue.send("k")
    queue.release(queue.claim())

    assert queue.states() == ["retry", "retry"]
    assert queue.send("k") is not None  # the slot of a created job is free
    assert queue.send("k") is None


@pytest.mark.parametrize("policy", ["standard", "singleton", "stately", "exclusive", "key_strict_fifo"])
def test_a_job_that_is_released_has_lost_no_attempt(sessions, policy):
    queue = QueueUnderTest(sessions, policy, retry_limit=1)
    queue.send("k")
    for _ in range(3):
        queue.release(queue.claim())
    (job,) = queue.claim()

    assert (job.retry_count, job.attempt) == (0, 4)


@pytest.mark.parametrize("policy", ["standard", "key_strict_fifo"])
@pytest.mark.parametrize("limit", [0, 2])
def test_a_manual_retry_is_one_more_attempt(sessions, policy, limit):
    queue = QueueUnderTest(sessions, policy, retry_limit=limit)
    id = queue.send("k")
    counts = []
    for _ in range(3):
        while jobs := queue.claim():
            counts.append(jobs[0].retry_count)
            queue.fail(jobs)
        queue.change("retry", id)

    assert counts == [*range(limit + 1), limit + 1, limit + 2]


@pytest.mark.parametrize("policy", ["standard", "key_strict_fifo"])
def test_a_job_with_the_most_retries_can_be_retried(sessions, policy):
    queue = QueueUnderTest(sessions, policy)
    id = queue.send("k", retry_limit=1_000_000_000)
    queue.claim()
    sessions.own.execute("UPDATE trioboss.live_job SET retry_count = 1000000000")
    queue.fail(id)
    queue.change("retry", id)

    assert queue.states() == ["retry"]


@pytest.mark.parametrize("policy", ["singleton", "stately"])
def test_a_key_is_free_while_its_job_waits_for_a_retry(sessions, policy):
    queue = QueueUnderTest(sessions, policy, retry_delay=60)
    queue.send("k")
    running = queue.claim()
    next_one = queue.send("k")
    assert queue.claim() == []
    queue.fail(running)

    assert [job.id for job in queue.claim()] == [next_one]


def test_a_stately_queue_has_room_for_one_retry_a_key(sessions):
    queue = QueueUnderTest(sessions, "stately", retry_delay=60, retry_limit=5)
    for _ in range(2):
        queue.send("k")
        queue.fail(queue.claim())

    assert queue.states() == ["retry", "failed"]


@pytest.mark.parametrize("policy", ["standard", "singleton", "key_strict_fifo"])
@pytest.mark.parametrize("way", ["fail", "release", "retry", "resume"])
def test_the_retention_of_a_job_that_waits_again_starts_anew(sessions, policy, way):
    """It is about time spent waiting: a job must not be deleted because it ran, or was ended, for long."""
    sessions.now = datetime(2030, 1, 1, tzinfo=UTC)
    queue = QueueUnderTest(sessions, policy, retry_limit=0 if way == "retry" else 1)
    id = queue.send("k", retention=100)
    jobs = queue.claim()
    sessions.now += timedelta(hours=1)
    match way:
        case "fail" | "retry":
            queue.fail(jobs)
        case "release":
            queue.release(jobs)
        case "resume":
            queue.change("cancel", id)
    sessions.now += timedelta(hours=1)
    if way in ("retry", "resume"):
        queue.change(way, id)
    ((kept, start),) = sessions.query("SELECT keep_until - start_after, start_after FROM trioboss.job")

    assert kept == timedelta(seconds=100)
    assert start >= sessions.now - timedelta(hours=1)


@pytest.mark.parametrize("unique_until", ["ended", "started"])
def test_a_blocking_job_stays_failed_while_its_slot_is_taken(sessions, unique_until):
    queue = QueueUnderTest(sessions, "key_strict_fifo", retry_limit=0)
    id = queue.send("k", unique_until=unique_until)
    queue.fail(queue.claim())
    other = queue.send("k", unique_until=unique_until)

    with pytest.raises(JobNotFound):
        queue.change("retry", id)
    queue.change("delete", other)
    queue.change("retry", id)
    assert queue.states() == ["retry"]


def test_a_changed_option_of_a_queue_reaches_queued_jobs_and_no_lease(sessions):
    queue = QueueUnderTest(sessions, retry_limit=0, expire_in=60, heartbeat=30)
    running, waiting = queue.send(), queue.send(start_after=60)
    (job,) = queue.claim()
    sessions.run(
        0, lambda own: sessions.store.queues.update("q", {"retry_limit": 5, "expire_in": 1, "heartbeat": 1})
    )
    terms = sessions.query(
        "SELECT expires_on - started_on, heartbeat FROM trioboss.live_job WHERE id = %s", [running]
    )
    assert terms == [(timedelta(seconds=60), 30)]
    queue.fail(job)  # the limit is resolved now

    assert sessions.query("SELECT id, state, retry_limit, expire_in FROM trioboss.job ORDER BY seq") == [
        (running, "retry", 5, timedelta(seconds=1)),
        (waiting, "created", 5, timedelta(seconds=1)),
    ]
