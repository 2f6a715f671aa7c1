"""The listener: it listens before it polls, probes its connection, and reconnects however long the outage lasts."""

from itertools import pairwise

import trio
import trio.testing

from trioboss.actors.actor import Doorbell, Supervisor
from trioboss.actors.clock import DatabaseClock
from trioboss.actors.listener import Listener
from trioboss.actors.router import NotificationRouter
from trioboss.events import ListenerDown, ListenerUp, QueueWarning


async def test_it_listens_before_it_polls(server, listening):
    setting = listening()
    await setting.listener.wait_listening()

    assert [what for _, what in server.log] == ["connect", "poll"]


async def test_it_is_listening_only_when_its_probe_has_arrived(server, listening, events):
    server.drops_notifications = True
    setting = listening()
    await trio.testing.wait_all_tasks_blocked()

    assert not setting.listener.statistics().listening
    assert not events.of(ListenerUp)


async def test_when_idle_it_polls_every_twenty_seconds_and_pings_in_between(server, listening):
    listening()
    await trio.sleep(61)

    assert server.times("poll") == [0, 20, 40, 60]
    assert server.times("ping") == [5, 10, 15, 25, 30, 35, 45, 50, 55]
    assert len(server.times("connect")) == 1


async def test_while_notifications_arrive_it_sends_no_ping(server, listening):
    listening()
    for _ in range(18):
        await trio.sleep(1)
        server.notify("q")

    assert not server.times("ping")


async def test_dispatchers_are_rung_for_the_jobs_that_a_poll_finds(server, listening, open_worker, work):
    async def handler(job):
        pass

    async with open_worker(handler) as worker:
        setting = listening()
        setting.router.workers[worker.id] = worker
        await trio.sleep(1)
        work.send()
        server.due["q"] = 0.0
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 20
        assert worker.dispatchers["q"].statistics().woken_by_poll == 1


async def test_after_a_lost_connection_everything_is_polled_again(server, listening, events):
    setting = listening()
    await trio.sleep(3)
    changed = [
        setting.router.queues_changed,
        setting.router.warning_sizes_changed,
        setting.router.schedules_changed,
        setting.router.boss_is_busy,
    ]
    for bell in changed:
        await bell.wait()
    server.cut()
    await events.wait_for(ListenerUp, count=2)

    assert 3.05 <= trio.current_time() <= 3.1
    assert [what for _, what in server.log] == ["connect", "poll", "connect", "poll"]
    assert [event.reason for event in events.of(ListenerDown)] == ["cut"]
    for bell in changed:
        with trio.fail_after(0.001):
            await bell.wait()


async def test_attempts_to_connect_are_spread_and_never_end(server, listening):
    server.refuses = True
    listening()
    await trio.sleep(3600)

    gaps = [b - a for a, b in pairwise(server.times("connect"))]
    assert all(0.05 * 2**i <= gap <= 0.1 * 2**i for i, gap in enumerate(gaps[:6]))
    assert all(2.5 <= gap <= 5 for gap in gaps[7:])
    assert len(set(gaps)) > 500


async def test_it_reconnects_when_the_database_is_back(server, listening, events):
    server.refuses = True
    setting = listening()
    await trio.sleep(3 * 3600)
    server.refuses = False
    await setting.listener.wait_listening()

    assert trio.current_time() <= 3 * 3600 + 5


async def test_an_outage_is_reported_now_and_then_and_its_end_with_its_length(server, listening, events):
    server.refuses = True
    setting = listening()
    await trio.sleep(20)

    assert len(server.times("connect")) > 6
    downs = events.of(ListenerDown)
    assert [event.seconds for event in downs][:1] == [0]
    assert 2 <= len(downs) <= 3

    server.refuses = False
    await setting.listener.wait_listening()
    (up,) = await events.wait_for(ListenerUp)
    assert 20 <= up.after <= 25
    assert not up.polling


async def test_a_half_open_connection_is_found_within_ten_seconds(server, listening, events):
    listening()
    await trio.sleep(6)
    server.hangs = True
    await events.wait_for(ListenerDown)

    assert trio.current_time() <= 16


async def test_a_connection_on_which_notifications_stop_is_replaced_after_the_next_poll(
    server, listening, events
):
    """As after an UNLISTEN on the session: the connection works, but no notification arrives."""
    listening()
    await trio.sleep(6)
    server.drops_notifications = True
    (down,) = await events.wait_for(ListenerDown)
    assert trio.current_time() == 23
    assert down.reason == "no probe notification received for 3 s, reconnecting"
    server.drops_notifications = False
    await events.wait_for(ListenerUp, count=2)


async def test_a_crash_of_the_listener_loses_no_wake_up(server, reporter, events, nursery, monkeypatch):
    """Its supervisor restarts it, and it polls for notifications that were missed."""
    router = NotificationRouter()
    listener = Listener(server, router, DatabaseClock(Doorbell()), reporter, 5.0, True, False)
    Supervisor(nursery, reporter).start("listener", listener.run)
    await events.wait_for(ListenerUp)
    await router.queues_changed.wait()
    monkeypatch.setattr(NotificationRouter, "receive", lambda self, notification: 1 / 0)
    server.notify("q")
    await events.wait_for(ListenerDown)
    monkeypatch.undo()
    with trio.fail_after(10):
        await events.wait_for(ListenerUp, count=2)
        await router.queues_changed.wait()


async def test_where_no_notification_arrives_it_warns_and_polls(server, listening, events):
    server.drops_notifications = True
    setting = listening()
    await setting.listener.wait_listening()
    assert trio.current_time() == 3
    (warning,) = await events.wait_for(QueueWarning)
    assert warning.warning == "notify_unavailable"
    await trio.sleep(7)

    assert server.times("poll") == [0, 3, 5, 7, 9]
    assert setting.listener.statistics().polling


async def test_behind_a_pooler_it_polls_from_the_start(server, listening, events):
    server.drops_notifications = True
    setting = listening(polling=True)
    await setting.listener.wait_listening()
    assert trio.current_time() == 0
    await trio.sleep(4.5)

    assert server.times("poll") == [0, 2, 4]


async def test_polling_mode_ends_when_a_probe_arrives(server, listening):
    server.drops_notifications = True
    setting = listening()
    await trio.sleep(6)
    server.drops_notifications = False
    await trio.sleep(50)

    assert not setting.listener.statistics().polling
    polls = server.times("poll")
    assert polls[-1] - polls[-2] == 20


async def test_it_can_be_told_to_poll_now(server, listening):
    setting = listening()
    await trio.sleep(3)
    setting.listener.poll_now()
    await trio.testing.wait_all_tasks_blocked()

    assert server.times("poll") == [0, 3]


async def sleep_for_ever(job):
    await trio.sleep_forever()
