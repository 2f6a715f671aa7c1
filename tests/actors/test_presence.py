"""The listener: leadership, the presence of a boss, and the clock of the database."""

import pytest
import trio
import trio.testing
from scripted_ports import NOON, make_job

from trioboss.actors.actor import Doorbell
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.listener import Listener
from trioboss.actors.router import NotificationRouter
from trioboss.events import LeaderChanged, ListenerDown, ListenerUp


async def test_of_several_candidates_one_leads_and_another_takes_over(server, reporter, nursery, events):
    listeners = []
    scopes = []

    async def run(listener):
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await listener.run()

    for _ in range(3):
        listener = Listener(
            server, NotificationRouter(), DatabaseClock(Doorbell()), reporter, 5.0, True, False
        )
        listeners.append(listener)
        nursery.start_soon(run, listener)
        await trio.sleep(0.5)
    assert [listener.leads for listener in listeners] == [True, False, False]
    scopes[0].cancel()
    await trio.sleep(20)

    assert [listener.leads for listener in listeners[1:]].count(True) == 1


async def test_a_boss_that_is_no_candidate_never_leads(server, listening):
    setting = listening(candidate=False)
    await trio.sleep(100)

    assert not setting.listener.leads
    assert server.leader is None


async def test_a_boss_that_loses_its_connection_no_longer_leads(server, listening, events):
    setting = listening()
    await setting.listener.wait_listening()
    assert setting.listener.leads
    server.refuses = True
    server.cut()
    await events.wait_for(ListenerDown)

    assert not setting.listener.leads
    assert [event.leads for event in events.of(LeaderChanged)] == [True, False]


async def test_a_leader_renews_its_term_with_every_poll_and_stops_when_another_one_leads(
    server, listening, events
):
    setting = listening()
    await trio.sleep(50)
    assert setting.listener.leads
    assert [event.leads for event in events.of(LeaderChanged)] == [True]

    server.leader = "another"
    await trio.sleep(20)

    assert not setting.listener.leads


async def test_jobs_survive_a_short_disconnection_and_are_checked_after_it(
    server, listening, open_worker, work, events
):
    kept, cancelled = make_job(), make_job()
    work.add(kept, cancelled)
    reasons = {}

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            reasons[job.id] = (trio.current_time(), job.cancelled)

    async with open_worker(handler, concurrency=2, grace=0) as worker:
        setting = listening()
        setting.router.workers[worker.id] = worker
        await work.until_running(2)
        await setting.listener.wait_listening()
        await trio.sleep(10)
        server.cut()
        work.lose(cancelled)
        server.notify(f"*cancel {cancelled.id}")
        await events.wait_for(ListenerUp, count=2)
        await trio.testing.wait_all_tasks_blocked()

        assert list(reasons) == [cancelled.id]
        assert reasons[cancelled.id][1] == "lease_lost"
        assert kept.id in work.active


async def test_jobs_are_given_up_before_others_may_take_them(server, listening, open_worker, work, events):
    work.send()
    given_up = []

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            given_up.append((trio.current_time(), job.cancelled))

    async with open_worker(handler, grace=0) as worker:
        setting = listening(grace=5.0)
        setting.router.workers[worker.id] = worker
        await work.until_running()
        await setting.listener.wait_listening()
        await trio.sleep(10)
        server.refuses = True
        server.cut()
        await trio.sleep(4.5)
        assert given_up == [(14, "lease_lost")]
        statements = len(work.statements)
        work.send()
        worker.dispatchers["q"].ring()
        await trio.sleep(20)
        assert len(work.statements) == statements
        server.refuses = False
        await setting.listener.wait_listening()
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == "recovered"


async def test_an_outage_of_the_server_cancels_nobody(server, listening, open_worker, work, events):
    work.send()
    given_up = []

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            given_up.append(job.cancelled)

    async with open_worker(handler, grace=0) as worker:
        setting = listening(grace=2.0)
        setting.router.workers[worker.id] = worker
        await work.until_running()
        await setting.listener.wait_listening()
        await trio.sleep(10)
        server.down = True
        server.cut()
        await trio.sleep(60)
        server.down = False
        await events.wait_for(ListenerUp, count=2)
        await trio.testing.wait_all_tasks_blocked()
        assert given_up == []


async def test_jobs_are_given_up_if_the_server_is_out_of_reach_after_an_outage(
    server, listening, open_worker, work
):
    """While nobody can tell whether the server runs again, others may be connected to it."""
    work.send()
    given_up = []

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            given_up.append((trio.current_time(), job.cancelled))

    async with open_worker(handler, grace=0) as worker:
        setting = listening(grace=5.0)
        setting.router.workers[worker.id] = worker
        await work.until_running()
        await setting.listener.wait_listening()
        await trio.sleep(10)
        server.down = True
        server.cut()
        await trio.sleep(20)
        server.down, server.refuses = False, True
        await trio.sleep(4.5)
        assert len(given_up) == 1
        assert 33 <= given_up[0][0] <= 34


@pytest.mark.parametrize("fault", ["hangs", "refuses", "down"])
async def test_behind_a_pooler_jobs_are_given_up_before_twice_the_grace_after_the_last_poll(
    server, listening, open_worker, work, fault
):
    """Other bosses may be connected without the pooler: neither its silence nor its end proves that no server runs."""
    work.send()
    given_up = []

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            given_up.append((trio.current_time(), job.cancelled))

    async with open_worker(handler, grace=0) as worker:
        server.drops_notifications = True
        setting = listening(grace=5.0, polling=True)
        setting.router.workers[worker.id] = worker
        await work.until_running()
        await setting.listener.wait_listening()
        await trio.sleep(10.5)
        last = server.times("poll")[-1]
        assert given_up == []
        setattr(server, fault, True)
        server.cut()
        await trio.sleep(30)

        assert given_up == [(last + 9, "lease_lost")]


async def test_behind_a_pooler_an_outage_within_twice_the_grace_cancels_nobody(
    server, listening, open_worker, work, events
):
    work.send()
    given_up = []

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            given_up.append(job.cancelled)

    async with open_worker(handler, grace=0) as worker:
        server.drops_notifications = True
        setting = listening(grace=15.0, polling=True)
        setting.router.workers[worker.id] = worker
        await work.until_running()
        await setting.listener.wait_listening()
        await trio.sleep(10)
        server.refuses = True
        server.cut()
        await trio.sleep(20)
        server.refuses = False
        await events.wait_for(ListenerUp, count=2)
        await trio.sleep(30)
        assert given_up == []


async def test_every_poll_sets_the_clock(server, listening):
    setting = listening()
    await setting.listener.wait_listening()
    await trio.sleep(1)
    assert (setting.clock.now() - NOON).total_seconds() == 1
    with trio.fail_after(100):
        server.skew = 3600
        await setting.clock.stepped.wait()

    assert trio.current_time() == 20
    assert (setting.clock.now() - NOON).total_seconds() == 3620


async def test_a_small_difference_does_not_ring_for_a_changed_clock(server, listening):
    setting = listening()
    await setting.listener.wait_listening()
    server.skew = 0.1
    await trio.sleep(30)

    assert not await setting.clock.stepped.wait_until(trio.current_time() + 1)
