"""NotificationRouter: a word on the channel reaches who wants to know, and nonsense reaches nobody."""

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


async def test_a_queues_name_rings_its_dispatcher_and_no_other(router, work, open_worker):
    async with open_worker(wait_for_ever, queues=("q", "p"), queue="*", grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        before = {name: len([e for e in work.exchanges if e.queue == name]) for name in ("q", "p")}

        router.receive("q")
        await trio.testing.wait_all_tasks_blocked()

        after = {name: len([e for e in work.exchanges if e.queue == name]) for name in ("q", "p")}
        assert (after["q"], after["p"]) == (before["q"] + 1, before["p"])


async def test_a_name_with_seconds_rings_then(router, work, open_worker):
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        count = len(work.exchanges)

        router.receive("q 30.5")
        await work.until(lambda: len(work.exchanges) > count)

        assert trio.current_time() == pytest.approx(began + 30.5)


@pytest.mark.parametrize(
    "word",
    [
        "",
        " ",
        "*",
        "* ",
        "*cancel",
        "*cancel nobody",
        "*ended x",
        "*nonsense 1",
        "q x",
        "other",
        "q q q",
        "é\x00",
    ],
)
async def test_what_is_not_understood_is_ignored(router, work, open_worker, word):
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        count = len(work.exchanges)

        router.receive(word)
        await trio.testing.wait_all_tasks_blocked()

        assert len(work.exchanges) == count


async def test_a_cancelled_job_is_checked_before_it_is_stopped(router, work, open_worker):
    cancelled, forged = work.send(2)
    async with open_worker(wait_for_ever, concurrency=2, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running(2)
        work.lose(cancelled)

        router.receive(f"*cancel {cancelled.id}")
        router.receive(f"*cancel {forged.id}")
        await trio.testing.wait_all_tasks_blocked()

        assert [running.job.id for running in worker.slots.running] == [forged.id]


async def test_who_waits_for_a_jobs_end_is_told_and_no_longer_when_it_has_gone(router):
    id = uuid4()
    bell, other = router.add_waiter(id), router.add_waiter(uuid4())
    router.receive(f"*ended {id}")

    with trio.move_on_after(100) as patience:
        await bell.wait()
    assert not patience.cancelled_caught
    with trio.move_on_after(100) as patience:
        await other.wait()
    assert patience.cancelled_caught

    router.remove_waiter(id, bell)
    router.receive(f"*ended {id}")
    router.remove_waiter(id, bell)


@pytest.mark.parametrize(
    ("word", "bell"),
    [("*queues", "queues_changed"), ("*schedules", "schedules_changed"), ("*busy", "boss_is_busy")],
)
async def test_notes_ring_the_services(router, word, bell):
    router.receive(word)

    with trio.fail_after(10):
        await getattr(router, bell).wait()


async def test_our_own_word_is_heard_once(router):
    router.receive("*probe ours")

    assert router.take_probe("ours")
    assert not router.take_probe("ours")
    router.receive("*probe another's")
    assert not router.take_probe("ours")


# -- after a gap


async def test_after_a_gap_every_dispatcher_looks_and_marks_itself_again(router, work, open_worker):
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()

        router.reconnected()
        await trio.testing.wait_all_tasks_blocked()

        assert work.exchanges[-1].idle is True


async def test_after_a_gap_leases_are_checked_and_those_with_heartbeats_renewed_at_once(
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


async def test_a_fence_stops_what_runs(router, work, open_worker):
    (job,) = work.send()
    async with open_worker(wait_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()

        router.fence()
        await trio.testing.wait_all_tasks_blocked()

        assert not worker.slots.running
        assert work.outcomes == []
        assert job.id in work.active
