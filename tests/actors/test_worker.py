"""One `work` call: the order in which it stops, and that its leases are released whatever happens."""

import math
from datetime import UTC, datetime

import pytest
import trio
import trio.testing
from scripted_ports import Fault, ids, make_job

from trioboss.events import ErrorEvent, JobReleased, JobStuck, QueueWarning

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def created(*queues, at=LONG_AGO):
    """These queues, created at that time."""
    return dict.fromkeys(queues, at)


async def sleep_as_told(job):
    await trio.sleep(job.data)


def accepted(work):
    return sorted(outcome for _, _, outcome in work.outcomes)


async def test_a_worker_is_registered_before_its_first_claim_and_until_its_end(work, open_worker):
    async with open_worker(sleep_as_told) as worker:
        assert work.registered == {worker.id}

    assert not work.registered


async def test_a_worker_that_cannot_be_registered_does_not_claim(work, open_worker):
    work.send()
    work.inject("register", Fault())
    with pytest.raises(ExceptionGroup):
        async with open_worker(sleep_as_told):
            pass

    assert not work.statements


# -- the graceful stop


async def test_jobs_that_end_within_the_grace_are_completed(work, open_worker):
    work.add(make_job(5), make_job(9))
    async with open_worker(sleep_as_told, concurrency=2, grace=10):
        await work.until_running(2)

    assert accepted(work) == ["null", "null"]
    assert trio.current_time() == 9


async def test_a_worker_that_stops_claims_nothing(work, open_worker):
    work.add(make_job(5))
    async with open_worker(sleep_as_told, concurrency=2, grace=10) as worker:
        await work.until_running()
        claims = len([e for e in work.statements if e.request is not None])
        worker.stop(10)
        await trio.testing.wait_all_tasks_blocked()
        work.send()
        worker.dispatchers["q"].ring()

    assert len([e for e in work.statements if e.request is not None]) == claims


async def test_jobs_that_still_run_after_the_grace_are_cancelled_and_released(work, open_worker, events):
    job = make_job(100)
    work.add(job, make_job(5))
    reasons = []

    async def handler(job):
        try:
            await trio.sleep(job.data)
        finally:
            reasons.append((trio.current_time(), job.cancelled))

    async with open_worker(handler, concurrency=2, grace=10):
        await work.until_running(2)

    assert reasons == [(5, None), (10, "stopping")]
    assert accepted(work) == ["null", "released"]
    assert [event.id for event in events.of(JobReleased)] == [job.id]
    assert trio.current_time() == 10


async def test_a_second_stop_shortens_the_grace(work, open_worker):
    work.add(make_job(100))
    async with open_worker(sleep_as_told, grace=50) as worker:
        await work.until_running()
        worker.stop(50)
        await trio.sleep(5)
        worker.stop(2)

    assert accepted(work) == ["released"]
    assert trio.current_time() == 7


async def test_a_second_stop_does_not_lengthen_the_grace(work, open_worker):
    work.add(make_job(100))
    async with open_worker(sleep_as_told, grace=50) as worker:
        await work.until_running()
        worker.stop(2)

    assert trio.current_time() == 2


async def test_an_idle_worker_stops_at_once(work, open_worker):
    async with open_worker(sleep_as_told, grace=1000):
        await trio.sleep(50)

    assert trio.current_time() == 50


async def test_jobs_of_a_claim_under_way_at_the_stop_are_released(work, open_worker):
    work.send(3)
    work.inject("settle_and_claim", Fault(error=None, after=True, seconds=1))
    ran = []

    async def handler(job):
        ran.append(job)

    async with open_worker(handler, concurrency=3, grace=100):
        await work.until(lambda: len(work.active) == 3)

    assert not ran
    assert accepted(work) == ["released"] * 3


async def test_a_handler_that_ignores_its_cancellation_loses_its_job_but_delays_the_end(
    work, open_worker, events
):
    work.send()

    async def handler(job):
        with trio.CancelScope(shield=True):
            await trio.sleep(60)

    async with open_worker(handler, grace=10):
        await work.until_running()

    assert accepted(work) == ["released"]
    assert len(events.of(JobStuck)) == 1
    assert trio.current_time() == 60


async def test_without_a_grace_all_jobs_are_released_at_once(work, open_worker):
    work.add(*(make_job(100) for _ in range(5)))
    async with open_worker(sleep_as_told, concurrency=3, prefetch=2, grace=0):
        await work.until_running(5)

    assert accepted(work) == ["released"] * 5
    assert trio.current_time() == 0


# -- cancellation


async def test_a_worker_that_is_cancelled_releases_all_jobs(work, open_worker):
    work.add(*(make_job(100) for _ in range(5)))
    with trio.CancelScope() as scope:
        async with open_worker(sleep_as_told, concurrency=3, prefetch=2):
            await work.until_running(5)
            scope.cancel()

    assert accepted(work) == ["released"] * 5
    assert not work.active
    assert not work.registered


async def test_a_worker_that_is_cancelled_during_a_claim_releases_its_jobs(work, open_worker):
    work.send(3)
    work.inject("settle_and_claim", Fault(error=None, after=True, seconds=1))
    with trio.CancelScope() as scope:
        async with open_worker(sleep_as_told, concurrency=3):
            await work.until(lambda: len(work.active) == 3)
            scope.cancel()

    assert accepted(work) == ["released"] * 3
    assert not work.active


async def test_a_crash_of_another_task_releases_the_jobs(work, open_worker):
    work.add(make_job(100))

    async def run_and_crash():
        async with open_worker(sleep_as_told):
            await work.until_running()
            raise RuntimeError("somewhere else")

    with pytest.raises(ExceptionGroup):
        await run_and_crash()

    assert accepted(work) == ["released"]


# -- while the database is away


@pytest.mark.parametrize("grace", [0, 10])
async def test_a_worker_stops_within_five_seconds_after_the_grace_when_the_database_hangs(
    work, open_worker, grace
):
    work.add(make_job(100))
    async with open_worker(sleep_as_told, concurrency=2, grace=grace) as worker:
        await work.until_running()
        work.inject("settle_and_claim", *(Fault(error=None, seconds=math.inf) for _ in range(50)))
        work.inject("unregister", Fault(error=None, seconds=math.inf))
        worker.dispatchers["q"].ring()
        await trio.testing.wait_all_tasks_blocked()

    assert trio.current_time() <= grace + 5


async def test_a_worker_stops_in_time_when_the_database_fails(work, open_worker, events):
    work.add(make_job(100))
    async with open_worker(sleep_as_told, grace=10):
        await work.until_running()
        work.inject("settle_and_claim", *(Fault() for _ in range(50)))
        work.inject("unregister", Fault())

    assert trio.current_time() <= 15
    assert events.of(ErrorEvent)


async def test_a_worker_that_is_cancelled_while_the_database_hangs_ends_within_five_seconds(
    work, open_worker
):
    work.send()
    work.inject("settle_and_claim", *(Fault(error=None, seconds=math.inf) for _ in range(50)))
    with trio.CancelScope() as scope:
        async with open_worker(sleep_as_told):
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()

    assert trio.current_time() <= 5


# -- queues that are created and deleted


async def test_a_pattern_follows_queues_that_are_created_and_deleted(work, open_worker):
    work.add(make_job(1, queue="mail/a"), make_job(1, queue="mail/b"), make_job(1, queue="other"))
    async with open_worker(sleep_as_told, queue="mail/*", queues=("mail/a", "other")) as worker:
        await work.until(lambda: len(work.outcomes) == 1)
        worker.set_queues(created("mail/a", "mail/b", "other"))
        await work.until(lambda: len(work.outcomes) == 2)
        assert sorted(worker.dispatchers) == ["mail/a", "mail/b"]
        worker.set_queues(created("mail/b"))
        assert sorted(worker.dispatchers) == ["mail/b"]
        await trio.testing.wait_all_tasks_blocked()

    assert [job.queue for job in work.jobs["other"]] == ["other"]


async def test_a_running_job_of_a_deleted_queue_is_settled(work, open_worker):
    job = make_job(5, queue="b")
    work.add(job)
    async with open_worker(sleep_as_told, queue="*", queues=("a", "b")) as worker:
        await work.until_running()
        worker.set_queues(created("a"))
        await work.until(lambda: work.outcomes)

    assert [id for id, _, _ in work.outcomes] == ids([job])


async def test_a_running_job_of_a_deleted_queue_is_released_at_the_end(work, open_worker):
    work.add(make_job(500, queue="b"))
    async with open_worker(sleep_as_told, queue="*", queues=("a", "b"), grace=10) as worker:
        await work.until_running()
        worker.set_queues(created("a"))
        await trio.testing.wait_all_tasks_blocked()

    assert accepted(work) == ["released"]


async def test_a_deleted_queue_is_reported_once_and_served_when_it_is_created_again(
    work, open_worker, events
):
    async with open_worker(sleep_as_told) as worker:
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            worker.set_queues({})
            assert not worker.dispatchers
        work.add(make_job(1))
        worker.set_queues(created("q", at=LONG_AGO.replace(year=2027)))
        await work.until(lambda: work.outcomes)

    assert [(event.queue, event.warning) for event in events.of(QueueWarning)] == [("q", "queue_gone")]


@pytest.mark.parametrize("pattern", ["q", "*"])
async def test_the_idle_marker_is_set_again_in_a_queue_that_was_recreated_unnoticed(
    work, open_worker, pattern
):
    async with open_worker(sleep_as_told, queue=pattern) as worker:
        await trio.testing.wait_all_tasks_blocked()
        before = len(work.statements)
        worker.set_queues(created("q"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(work.statements) == before
        worker.set_queues(created("q", at=LONG_AGO.replace(year=2027)))
        await trio.testing.wait_all_tasks_blocked()
        again = [statement.request and statement.request.idle for statement in work.statements[before:]]

    assert again == [True]


async def test_the_dispatcher_of_a_deleted_queue_ends_although_its_successor_is_busy(work, open_worker):
    work.add(make_job(5))
    async with open_worker(sleep_as_told, concurrency=2) as worker:
        await work.until_running()
        worker.set_queues({})
        worker.set_queues(created("q", at=LONG_AGO.replace(year=2027)))
        work.add(make_job(1000))
        await work.until(lambda: len(work.outcomes) == 1)
        await trio.testing.wait_all_tasks_blocked()
        assert worker.statistics().running == 1
        assert worker._dispatching.statistics().actors == ("dispatcher q",)


@pytest.mark.parametrize(
    ("pattern", "queue", "matches"),
    [
        ("mail", "mail", True),
        ("mail", "mail2", False),
        ("mail*", "mail2", True),
        ("*", "anything/at.all", True),
        ("a*z", "abcz", True),
        ("a*z", "abc", False),
        ("*a*", "xay", True),
        ("a.b*", "axb", False),
        ("*", "__state__completed__q", False),
        ("__state__*", "__state__completed__q", True),
    ],
)
async def test_a_pattern_matches_as_a_shell_would(open_worker, pattern, queue, matches):
    async with open_worker(sleep_as_told, queue=pattern, queues=()) as worker:
        assert worker.settings.matches(queue) is matches


# -- statistics


async def test_statistics_show_what_each_is_doing(work, open_worker):
    work.retries = False
    work.add(make_job(5), make_job("wrong"), make_job(100))
    async with open_worker(sleep_as_told, concurrency=3, grace=0) as worker:
        await work.until(lambda: len(work.outcomes) == 2)
        await trio.testing.wait_all_tasks_blocked()
        statistics = worker.statistics()
        wip = worker.wip()

    (dispatcher,) = statistics.dispatchers
    assert (statistics.queue, statistics.running, statistics.stopping) == ("q", 1, False)
    assert (dispatcher.queue, dispatcher.claimed, dispatcher.completed, dispatcher.failed) == ("q", 3, 1, 1)
    assert (wip.state, wip.count, wip.completed, wip.failed) == ("active", 1, 1, 1)
    assert worker.wip().state == "stopping"
