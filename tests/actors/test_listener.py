"""The listener: it listens before it polls, probes its connection, and reconnects however long the outage lasts."""

from itertools import pairwise
from uuid import uuid4

import attrs
import pytest
import trio
import trio.testing
from scripted_listening import ScriptedServer
from scripted_ports import NOON, make_job

from trioboss.actors.clock import DatabaseClock
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.listener import Listener
from trioboss.actors.router import NotificationRouter
from trioboss.actors.supervisor import Supervisor
from trioboss.events import LeaderChanged, ListenerDown, ListenerUp, QueueWarning


@attrs.define(eq=False)
class Setting:
    server: ScriptedServer
    router: NotificationRouter
    listener: Listener
    clock: DatabaseClock
    nursery: trio.Nursery


@pytest.fixture
async def server():
    return ScriptedServer()


@pytest.fixture
async def listening(server, reporter, nursery):
    """Start a listener on the server."""

    def start(*, grace=5.0, candidate=True, polling=False, router=None):
        router = router or NotificationRouter()
        clock = DatabaseClock(Doorbell())
        listener = Listener(server, router, clock, reporter, grace, candidate, polling)
        nursery.start_soon(listener.run)
        return Setting(server, router, listener, clock, nursery)

    return start


async def test_it_listens_first_and_looks_then(server, listening):
    setting = listening()
    await setting.listener.wait_listening()

    assert [what for _, what in server.log] == ["connect", "poll"]


async def test_it_is_up_only_when_it_has_heard_its_own_word(server, listening, events):
    server.drops_notifications = True
    setting = listening()
    await trio.testing.wait_all_tasks_blocked()

    assert not setting.listener.statistics().listening
    assert not events.of(ListenerUp)


async def test_at_rest_it_looks_every_twenty_seconds_and_proves_the_connection_in_between(server, listening):
    listening()
    await trio.sleep(61)

    assert server.times("poll") == [0, 20, 40, 60]
    assert server.times("ping") == [5, 10, 15, 25, 30, 35, 45, 50, 55]
    assert len(server.times("connect")) == 1


async def test_while_words_come_the_connection_needs_no_proof(server, listening):
    listening()
    for _ in range(18):
        await trio.sleep(1)
        server.notify("q")

    assert not server.times("ping")


async def test_what_a_look_finds_is_rung(server, listening, open_worker, work):
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


# -- losing the connection


async def test_a_lost_connection_is_replaced_and_everything_looked_for(server, listening, events):
    setting = listening()
    await trio.sleep(3)
    changed = [
        setting.router.queues_changed,
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


async def test_when_the_database_is_back_it_is_noticed(server, listening, events):
    server.refuses = True
    setting = listening()
    await trio.sleep(3 * 3600)
    server.refuses = False
    await setting.listener.wait_listening()

    assert trio.current_time() <= 3 * 3600 + 5


async def test_a_half_open_connection_is_found_within_ten_seconds(server, listening, events):
    listening()
    await trio.sleep(6)
    server.hangs = True
    await events.wait_for(ListenerDown)

    assert trio.current_time() <= 16


async def test_ears_that_went_deaf_are_found_at_the_next_look(server, listening, events):
    """Somebody ran UNLISTEN on the session: the connection is good, but no word comes through."""
    listening()
    await trio.sleep(6)
    server.drops_notifications = True
    (down,) = await events.wait_for(ListenerDown)
    assert trio.current_time() == 23
    assert down.reason == "no probe notification received for 3 s, reconnecting"
    server.drops_notifications = False
    await events.wait_for(ListenerUp, count=2)


async def test_a_crash_of_the_listener_loses_no_wake_up(server, reporter, events, nursery, monkeypatch):
    """Its supervisor starts it again, and what was said in the meantime is looked for."""
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


# -- polling


async def test_where_no_word_comes_through_it_says_so_and_polls(server, listening, events):
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


async def test_ears_that_begin_to_hear_are_used(server, listening):
    server.drops_notifications = True
    setting = listening()
    await trio.sleep(6)
    server.drops_notifications = False
    await trio.sleep(50)

    assert not setting.listener.statistics().polling
    polls = server.times("poll")
    assert polls[-1] - polls[-2] == 20


# -- leading


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


async def test_who_is_no_candidate_never_leads(server, listening):
    setting = listening(candidate=False)
    await trio.sleep(100)

    assert not setting.listener.leads
    assert server.leader is None


async def test_who_loses_the_connection_leads_no_more(server, listening, events):
    setting = listening()
    await setting.listener.wait_listening()
    assert setting.listener.leads
    server.refuses = True
    server.cut()
    await events.wait_for(ListenerDown)

    assert not setting.listener.leads
    assert [event.leads for event in events.of(LeaderChanged)] == [True, False]


async def test_a_leader_says_so_at_every_look_and_leads_no_more_when_another_one_does(
    server, listening, events
):
    setting = listening()
    await trio.sleep(50)
    assert setting.listener.leads
    assert [event.leads for event in events.of(LeaderChanged)] == [True]

    server.leader = "another"
    await trio.sleep(20)

    assert not setting.listener.leads


async def test_it_can_be_told_to_poll_now(server, listening):
    setting = listening()
    await trio.sleep(3)
    setting.listener.poll_now()
    await trio.testing.wait_all_tasks_blocked()

    assert server.times("poll") == [0, 3]


# -- presence


async def sleep_for_ever(job):
    await trio.sleep_forever()


async def test_jobs_survive_a_short_gap_and_are_checked_after_it(
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
        exchanges = len(work.exchanges)
        work.send()
        worker.dispatchers["q"].ring()
        await trio.sleep(20)
        assert len(work.exchanges) == exchanges
        server.refuses = False
        await setting.listener.wait_listening()
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == "recovered"


# -- the clock


async def test_every_look_sets_the_clock(server, listening):
    setting = listening()
    await setting.listener.wait_listening()
    await trio.sleep(1)
    assert (setting.clock.now() - NOON).total_seconds() == 1
    with trio.fail_after(100):
        server.skew = 3600
        await setting.clock.stepped.wait()

    assert trio.current_time() == 20
    assert (setting.clock.now() - NOON).total_seconds() == 3620


async def test_noise_is_no_step(server, listening):
    setting = listening()
    await setting.listener.wait_listening()
    server.skew = 0.1
    await trio.sleep(30)

    assert not await setting.clock.stepped.wait_until(trio.current_time() + 1)


# -- words


async def test_words_reach_who_they_are_for(open_worker, work):
    router = NotificationRouter()
    async with open_worker(sleep_for_ever, queue="*", queues=("a", "b"), grace=0) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        before = len(work.exchanges)
        router.receive("a")
        router.receive("b 30.5")
        router.receive("nobodys")
        await trio.testing.wait_all_tasks_blocked()
        assert [e.queue for e in work.exchanges[before:]] == ["a"]
        await trio.sleep(30.5)
        await trio.testing.wait_all_tasks_blocked()
        assert [e.queue for e in work.exchanges[before:]] == ["a", "b"]
        assert router.queues() == ["a", "b"]


@pytest.mark.parametrize(
    "word",
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
        "*ended",
        "*ended nonsense",
        "*probe",
        "*unknown thing",
        "\x00\udcff",
        "*" * 8000,
        "a" * 8000,
    ],
)
async def test_a_forged_word_harms_nobody(open_worker, work, word):
    work.send()
    router = NotificationRouter()
    async with open_worker(sleep_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()
        router.receive(word.replace("a ", "q ", 1))
        await trio.testing.wait_all_tasks_blocked()

        assert len(worker.slots.running) == 1


async def test_a_forged_word_that_cancels_a_running_job_is_found_out(open_worker, work):
    (job,) = work.send()
    router = NotificationRouter()
    async with open_worker(sleep_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()
        router.receive(f"*cancel {job.id}")
        await trio.testing.wait_all_tasks_blocked()
        assert len(work.checks) == 1
        assert len(worker.slots.running) == 1
        work.lose(job)
        router.receive(f"*cancel {job.id}")
        await worker.slots.empty.wait()


async def test_a_flood_of_words_costs_few_claims(open_worker, work):
    router = NotificationRouter()
    async with open_worker(sleep_for_ever) as worker:
        router.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(1000):
            router.receive("q")
            await trio.sleep(0.001)

        assert len(work.exchanges) <= 10 + 1000 / 5 + 1


async def test_a_flood_of_doubts_costs_few_checks(open_worker, work):
    (job,) = work.send()
    router = NotificationRouter()
    async with open_worker(sleep_for_ever, grace=0) as worker:
        router.workers[worker.id] = worker
        await work.until_running()
        for _ in range(1000):
            router.receive(f"*cancel {job.id}")
            await trio.sleep(0.001)

        assert len(work.checks) <= 1000 / 50 + 1


async def test_who_waits_for_an_end_is_told():
    router = NotificationRouter()
    id = uuid4()
    bell, other = router.add_waiter(id), router.add_waiter(id)
    router.remove_waiter(id, other)
    router.receive(f"*ended {uuid4()}")
    assert not await bell.wait_until(trio.current_time() + 1)
    router.receive(f"*ended {id}")

    assert await bell.wait_until(trio.current_time() + 1)
    assert not await other.wait_until(trio.current_time() + 1)


async def test_who_no_longer_waits_for_an_end_leaves_nothing_behind():
    router = NotificationRouter()
    id = uuid4()
    bell = router.add_waiter(id)
    router.receive(f"*ended {id}")
    router.remove_waiter(id, bell)

    assert not router._waiters
