"""NotificationRouter: notifications reach the dispatchers, waiters and services they are for; others are ignored."""

from uuid import uuid4

import pytest
import trio
import trio.testing
from scripted_ports import make_job

from trioboss.actors.router import NotificationRouter


@pytest.fixture
def router() -> NotificationRouter:
    return NotificationRouter()


async def wait_for_ever(job) -> None:
    await trio.sleep_forever()


async def test_the_name_of_a_queue_rings_its_dispatcher_and_no_other(router, work, open_worker):
    async with open_worker(wait_for_ever, queues=("q", "p"), queue="*", grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        before = {name: len([e for e in work.statements if e.queue == name]) for name in ("q", "p")}

        router.receive("q")
        await trio.testing.wait_all_tasks_blocked()

        after = {name: len([e for e in work.statements if e.queue == name]) for name in ("q", "p")}
        assert (after["q"], after["p"]) == (before["q"] + 1, before["p"])


async def test_a_name_with_seconds_rings_for_a_deferred_job(router, work, open_worker):
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        count = len(work.statements)

        router.receive("q 30.5")
        await work.until(lambda: len(work.statements) > count)

        assert trio.current_time() == pytest.approx(began + 30.5)


@pytest.mark.parametrize(
    "message",
    [
        "",
        " ",
        "*",
        "* ",
        "*cancel",
        "*cancel nobody",
        "*changed x",
        "*nonsense 1",
        "q x",
        "other",
        "q q q",
        "é\x00",
    ],
)
async def test_an_unknown_notification_is_ignored(router, work, open_worker, message):
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        count = len(work.statements)

        router.receive(message)
        await trio.testing.wait_all_tasks_blocked()

        assert len(work.statements) == count


async def test_a_cancel_notification_leads_to_a_check(router, work, open_worker):
    cancelled, forged = work.send(2)
    async with open_worker(wait_for_ever, concurrency=2, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running(2)
        work.lose(cancelled)

        router.receive(f"*cancel {cancelled.id}")
        router.receive(f"*cancel {forged.id}")
        await trio.testing.wait_all_tasks_blocked()

        assert [running.job.id for running in worker.slots.running] == [forged.id]


async def test_a_completion_waiter_is_rung_until_it_is_removed(router):
    id = uuid4()
    bell, other = router.add_waiter(id), router.add_waiter(uuid4())
    router.receive(f"*changed {id}")

    with trio.move_on_after(100) as scope:
        await bell.wait()
    assert not scope.cancelled_caught
    with trio.move_on_after(100) as scope:
        await other.wait()
    assert scope.cancelled_caught

    router.remove_waiter(id, bell)
    router.receive(f"*changed {id}")
    router.remove_waiter(id, bell)


@pytest.mark.parametrize(
    ("message", "bell"),
    [
        ("*queues", "queues_changed"),
        ("*queues", "warning_sizes_changed"),
        ("*schedules", "schedules_changed"),
        ("*busy", "boss_is_busy"),
    ],
)
async def test_messages_ring_the_services(router, message, bell):
    router.receive(message)

    with trio.fail_after(10):
        await getattr(router, bell).wait()


async def test_a_probe_is_taken_once(router):
    router.receive("*probe ours")

    assert router.take_probe("ours")
    assert not router.take_probe("ours")
    router.receive("*probe another's")
    assert not router.take_probe("ours")


# -- after a reconnect


async def test_after_a_reconnect_every_dispatcher_claims_and_sets_its_marker_again(router, work, open_worker):
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()

        router.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert work.statements[-1].request.idle is True


async def test_after_a_reconnect_leases_are_checked_and_those_with_heartbeats_renewed(
    router, work, open_worker
):
    beating, silent, own = (
        make_job(heartbeat=1000.0),
        make_job(),
        make_job(heartbeat=1000.0, auto_heartbeat=False),
    )
    work.add(beating, silent, own)
    async with open_worker(wait_for_ever, concurrency=3, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running(3)

        router.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert work.checks[-1] == (trio.current_time(), {beating.id, silent.id, own.id})
        assert work.renewals == [(trio.current_time(), {beating.id})]


async def test_a_fence_cancels_running_jobs(router, work, open_worker):
    (job,) = work.send()
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()

        router.presence_lost()
        await trio.testing.wait_all_tasks_blocked()

        assert not worker.slots.running
        assert work.outcomes == []
        assert job.id in work.active


async def test_notifications_reach_the_dispatchers_they_are_for(router, open_worker, work):
    async with open_worker(wait_for_ever, queue="*", queues=("a", "b"), grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        before = len(work.statements)
        router.receive("a")
        router.receive("b 30.5")
        router.receive("unknown")
        await trio.testing.wait_all_tasks_blocked()
        assert [e.queue for e in work.statements[before:]] == ["a"]
        await trio.sleep(30.5)
        await trio.testing.wait_all_tasks_blocked()
        assert [e.queue for e in work.statements[before:]] == ["a", "b"]
        assert router.queues() == ["a", "b"]


@pytest.mark.parametrize(
    "notification",
    [
        "",
        " ",
        "*",
        "* ",
        "a b c",
        "a nan",
        "a inf",
        "a -1",
        "a 1e999",
        "*cancel",
        "*cancel nonsense",
        "*cancel 00000000-0000-7000-8000-000000000000",
        "*changed",
        "*changed nonsense",
        "*probe",
        "*unknown thing",
        "\x00\udcff",
        "*" * 8000,
        "a" * 8000,
    ],
)
async def test_a_forged_notification_has_no_effect(router, open_worker, work, notification):
    work.send()
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()
        router.receive(notification.replace("a ", "q ", 1))
        await trio.testing.wait_all_tasks_blocked()

        assert len(worker.slots.running) == 1


async def test_a_forged_cancel_notification_cancels_nothing(router, open_worker, work):
    (job,) = work.send()
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()
        router.receive(f"*cancel {job.id}")
        await trio.testing.wait_all_tasks_blocked()
        assert len(work.checks) == 1
        assert len(worker.slots.running) == 1
        work.lose(job)
        router.receive(f"*cancel {job.id}")
        await worker.slots.empty.wait()


async def test_a_flood_of_notifications_costs_few_claims(router, open_worker, work):
    async with open_worker(wait_for_ever) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(1000):
            router.receive("q")
            await trio.sleep(0.001)

        assert len(work.statements) <= 10 + 1000 / 5 + 1


async def test_a_flood_of_cancel_notifications_costs_few_checks(router, open_worker, work):
    (job,) = work.send()
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()
        for _ in range(1000):
            router.receive(f"*cancel {job.id}")
            await trio.sleep(0.001)

        assert len(work.checks) <= 1000 / 50 + 1


async def test_a_completion_waiter_is_rung_when_its_job_ends(router):
    id = uuid4()
    bell, other = router.add_waiter(id), router.add_waiter(id)
    router.remove_waiter(id, other)
    router.receive(f"*changed {uuid4()}")
    assert not await bell.wait_until(trio.current_time() + 1)
    router.receive(f"*changed {id}")

    assert await bell.wait_until(trio.current_time() + 1)
    assert not await other.wait_until(trio.current_time() + 1)


async def test_a_completion_waiter_that_is_removed_leaves_nothing_behind(router):
    id = uuid4()
    bell = router.add_waiter(id)
    router.receive(f"*changed {id}")
    router.remove_waiter(id, bell)

    assert not router._waiters
