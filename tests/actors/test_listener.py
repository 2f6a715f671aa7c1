"""The listener: it listens first and looks then, proves its ears, and comes back however long the database is away."""

from itertools import pairwise
from uuid import uuid4

import attrs
import pytest
import trio
import trio.testing
from scripted_listening import ScriptedLine
from scripted_ports import NOON, make_job

from trioboss.actors.clock import DatabaseClock
from trioboss.actors.doorbell import Doorbell
from trioboss.actors.listener import Listener
from trioboss.actors.router import NotificationRouter
from trioboss.actors.supervisor import Supervisor
from trioboss.events import LeaderChanged, ListenerDown, ListenerUp, QueueWarning


@attrs.define(eq=False)
class Setting:
    line: ScriptedLine
    board: NotificationRouter
    listener: Listener
    clock: DatabaseClock
    nursery: trio.Nursery


@pytest.fixture
async def line():
    return ScriptedLine()


@pytest.fixture
async def listening(line, reporter, nursery):
    """Start a listener on the line."""

    def start(*, grace=5.0, candidate=True, deaf=False, board=None):
        board = board or NotificationRouter()
        clock = DatabaseClock(Doorbell())
        listener = Listener(line, board, clock, reporter, grace, candidate, deaf)
        nursery.start_soon(listener.run)
        return Setting(line, board, listener, clock, nursery)

    return start


async def test_it_listens_first_and_looks_then(line, listening):
    setting = listening()
    await setting.listener.wait_listening()

    assert [what for _, what in line.log] == ["connect", "look"]


async def test_it_is_up_only_when_it_has_heard_its_own_word(line, listening, events):
    line.deaf = True
    setting = listening()
    await trio.testing.wait_all_tasks_blocked()

    assert not setting.listener.statistics().listening
    assert not events.of(ListenerUp)


async def test_at_rest_it_looks_every_twenty_seconds_and_proves_the_connection_in_between(line, listening):
    listening()
    await trio.sleep(61)

    assert line.times("look") == [0, 20, 40, 60]
    assert line.times("ping") == [5, 10, 15, 25, 30, 35, 45, 50, 55]
    assert len(line.times("connect")) == 1


async def test_while_words_come_the_connection_needs_no_proof(line, listening):
    listening()
    for _ in range(18):
        await trio.sleep(1)
        line.say("q")

    assert not line.times("ping")


async def test_what_a_look_finds_is_rung(line, listening, open_worker, work):
    async def handler(job):
        pass

    async with open_worker(handler) as worker:
        setting = listening()
        setting.board.workers[worker.id] = worker
        await trio.sleep(1)
        work.send()
        line.due["q"] = 0.0
        await work.until(lambda: work.outcomes)
        assert trio.current_time() == 20
        assert worker.dispatchers["q"].statistics().woken_by_look == 1


# -- losing the connection


async def test_a_lost_connection_is_replaced_and_everything_looked_for(line, listening, events):
    setting = listening()
    await trio.sleep(3)
    changed = [setting.board.queues_changed, setting.board.schedules_changed, setting.board.somebody_is_busy]
    for bell in changed:
        await bell.wait()
    line.cut()
    await events.wait_for(ListenerUp, count=2)

    assert 3.05 <= trio.current_time() <= 3.1
    assert [what for _, what in line.log] == ["connect", "look", "connect", "look"]
    assert [event.reason for event in events.of(ListenerDown)] == ["cut"]
    for bell in changed:
        with trio.fail_after(0.001):
            await bell.wait()


async def test_attempts_to_connect_are_spread_and_never_end(line, listening):
    line.refuses = True
    listening()
    await trio.sleep(3600)

    gaps = [b - a for a, b in pairwise(line.times("connect"))]
    assert all(0.05 * 2**i <= gap <= 0.1 * 2**i for i, gap in enumerate(gaps[:6]))
    assert all(2.5 <= gap <= 5 for gap in gaps[7:])
    assert len(set(gaps)) > 500


async def test_when_the_database_is_back_it_is_noticed(line, listening, events):
    line.refuses = True
    setting = listening()
    await trio.sleep(3 * 3600)
    line.refuses = False
    await setting.listener.wait_listening()

    assert trio.current_time() <= 3 * 3600 + 5


async def test_a_half_open_connection_is_found_within_ten_seconds(line, listening, events):
    listening()
    await trio.sleep(6)
    line.hangs = True
    await events.wait_for(ListenerDown)

    assert trio.current_time() <= 16


async def test_ears_that_went_deaf_are_found_at_the_next_look(line, listening, events):
    """Somebody ran UNLISTEN on the session: the connection is good, but no word comes through."""
    listening()
    await trio.sleep(6)
    line.deaf = True
    (down,) = await events.wait_for(ListenerDown)
    assert trio.current_time() == 23
    assert down.reason == "the listener no longer hears its own words"
    line.deaf = False
    await events.wait_for(ListenerUp, count=2)


async def test_a_crash_of_the_listener_loses_no_wake_up(line, reporter, events, nursery, monkeypatch):
    """Its supervisor starts it again, and what was said in the meantime is looked for."""
    board = NotificationRouter()
    listener = Listener(line, board, DatabaseClock(Doorbell()), reporter, 5.0, True, False)
    Supervisor(nursery, reporter).start("listener", listener.run)
    await events.wait_for(ListenerUp)
    await board.queues_changed.wait()
    monkeypatch.setattr(NotificationRouter, "hear", lambda self, word: 1 / 0)
    line.say("q")
    await events.wait_for(ListenerDown)
    monkeypatch.undo()
    with trio.fail_after(10):
        await events.wait_for(ListenerUp, count=2)
        await board.queues_changed.wait()


# -- deaf


async def test_where_no_word_comes_through_it_says_so_and_polls(line, listening, events):
    line.deaf = True
    setting = listening()
    await setting.listener.wait_listening()
    assert trio.current_time() == 3
    (warning,) = await events.wait_for(QueueWarning)
    assert warning.warning == "notify_unavailable"
    await trio.sleep(7)

    assert line.times("look") == [0, 3, 5, 7, 9]
    assert setting.listener.statistics().deaf


async def test_behind_a_pooler_it_polls_from_the_start(line, listening, events):
    line.deaf = True
    setting = listening(deaf=True)
    await setting.listener.wait_listening()
    assert trio.current_time() == 0
    await trio.sleep(4.5)

    assert line.times("look") == [0, 2, 4]


async def test_ears_that_begin_to_hear_are_used(line, listening):
    line.deaf = True
    setting = listening()
    await trio.sleep(6)
    line.deaf = False
    await trio.sleep(50)

    assert not setting.listener.statistics().deaf
    looks = line.times("look")
    assert looks[-1] - looks[-2] == 20


# -- leading


async def test_of_several_candidates_one_leads_and_another_takes_over(line, reporter, nursery, events):
    listeners = []
    scopes = []

    async def run(listener):
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await listener.run()

    for _ in range(3):
        listener = Listener(line, NotificationRouter(), DatabaseClock(Doorbell()), reporter, 5.0, True, False)
        listeners.append(listener)
        nursery.start_soon(run, listener)
        await trio.sleep(0.5)
    assert [listener.leads for listener in listeners] == [True, False, False]
    scopes[0].cancel()
    await trio.sleep(20)

    assert [listener.leads for listener in listeners[1:]].count(True) == 1


async def test_who_is_no_candidate_never_leads(line, listening):
    setting = listening(candidate=False)
    await trio.sleep(100)

    assert not setting.listener.leads
    assert line.leader is None


async def test_who_loses_the_connection_leads_no_more(line, listening, events):
    setting = listening()
    await setting.listener.wait_listening()
    assert setting.listener.leads
    line.refuses = True
    line.cut()
    await events.wait_for(ListenerDown)

    assert not setting.listener.leads
    assert [event.leads for event in events.of(LeaderChanged)] == [True, False]


async def test_a_leader_says_so_at_every_look_and_leads_no_more_when_another_one_does(
    line, listening, events
):
    setting = listening()
    await trio.sleep(50)
    assert setting.listener.leads
    assert [event.leads for event in events.of(LeaderChanged)] == [True]

    line.leader = "another"
    await trio.sleep(20)

    assert not setting.listener.leads


async def test_it_can_be_told_to_look_now(line, listening):
    setting = listening()
    await trio.sleep(3)
    setting.listener.look_now()
    await trio.testing.wait_all_tasks_blocked()

    assert line.times("look") == [0, 3]


# -- presence


async def sleep_for_ever(job):
    await trio.sleep_forever()


async def test_jobs_survive_a_short_gap_and_are_checked_after_it(line, listening, open_worker, work, events):
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
        setting.board.workers[worker.id] = worker
        await work.until_running(2)
        await setting.listener.wait_listening()
        await trio.sleep(10)
        line.cut()
        work.lose(cancelled)
        line.say(f"*cancel {cancelled.id}")
        await events.wait_for(ListenerUp, count=2)
        await trio.testing.wait_all_tasks_blocked()

        assert list(reasons) == [cancelled.id]
        assert reasons[cancelled.id][1] == "lease_lost"
        assert kept.id in work.active


async def test_jobs_are_given_up_before_others_may_take_them(line, listening, open_worker, work, events):
    work.send()
    given_up = []

    async def handler(job):
        try:
            await trio.sleep_forever()
        finally:
            given_up.append((trio.current_time(), job.cancelled))

    async with open_worker(handler, grace=0) as worker:
        setting = listening(grace=5.0)
        setting.board.workers[worker.id] = worker
        await work.until_running()
        await setting.listener.wait_listening()
        await trio.sleep(10)
        line.refuses = True
        line.cut()
        await trio.sleep(4.5)
        assert given_up == [(14, "lease_lost")]
        exchanges = len(work.exchanges)
        work.send()
        worker.dispatchers["q"].ring()
        await trio.sleep(20)
        assert len(work.exchanges) == exchanges
        line.refuses = False
        await setting.listener.wait_listening()
        await work.until(lambda: work.outcomes)

    assert work.outcomes[0][2] == "recovered"


# -- the clock


async def test_every_look_sets_the_clock(line, listening):
    setting = listening()
    await setting.listener.wait_listening()
    await trio.sleep(1)
    assert (setting.clock.now() - NOON).total_seconds() == 1
    with trio.fail_after(100):
        line.skew = 3600
        await setting.clock.stepped.wait()

    assert trio.current_time() == 20
    assert (setting.clock.now() - NOON).total_seconds() == 3620


async def test_noise_is_no_step(line, listening):
    setting = listening()
    await setting.listener.wait_listening()
    line.skew = 0.1
    await trio.sleep(30)

    assert not await setting.clock.stepped.wait_until(trio.current_time() + 1)


# -- words


async def test_words_reach_who_they_are_for(open_worker, work):
    board = NotificationRouter()
    async with open_worker(sleep_for_ever, queue="*", queues=("a", "b"), grace=0) as worker:
        board.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        before = len(work.exchanges)
        board.hear("a")
        board.hear("b 30.5")
        board.hear("nobodys")
        await trio.testing.wait_all_tasks_blocked()
        assert [e.queue for e in work.exchanges[before:]] == ["a"]
        await trio.sleep(30.5)
        await trio.testing.wait_all_tasks_blocked()
        assert [e.queue for e in work.exchanges[before:]] == ["a", "b"]
        assert board.queues() == ["a", "b"]


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
    board = NotificationRouter()
    async with open_worker(sleep_for_ever, grace=0) as worker:
        board.workers[worker.id] = worker
        await work.until_running()
        board.hear(word.replace("a ", "q ", 1))
        await trio.testing.wait_all_tasks_blocked()

        assert len(worker.slots.running) == 1


async def test_a_forged_word_that_cancels_a_running_job_is_found_out(open_worker, work):
    (job,) = work.send()
    board = NotificationRouter()
    async with open_worker(sleep_for_ever, grace=0) as worker:
        board.workers[worker.id] = worker
        await work.until_running()
        board.hear(f"*cancel {job.id}")
        await trio.testing.wait_all_tasks_blocked()
        assert len(work.checks) == 1
        assert len(worker.slots.running) == 1
        work.lose(job)
        board.hear(f"*cancel {job.id}")
        await worker.slots.empty.wait()


async def test_a_flood_of_words_costs_few_claims(open_worker, work):
    board = NotificationRouter()
    async with open_worker(sleep_for_ever) as worker:
        board.workers[worker.id] = worker
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(1000):
            board.hear("q")
            await trio.sleep(0.001)

        assert len(work.exchanges) <= 10 + 1000 / 5 + 1


async def test_a_flood_of_doubts_costs_few_checks(open_worker, work):
    (job,) = work.send()
    board = NotificationRouter()
    async with open_worker(sleep_for_ever, grace=0) as worker:
        board.workers[worker.id] = worker
        await work.until_running()
        for _ in range(1000):
            board.hear(f"*cancel {job.id}")
            await trio.sleep(0.001)

        assert len(work.checks) <= 1000 / 50 + 1


async def test_who_waits_for_an_end_is_told():
    board = NotificationRouter()
    id = uuid4()
    bell, other = board.watch(id), board.watch(id)
    board.unwatch(id, other)
    board.hear(f"*ended {uuid4()}")
    assert not await bell.wait_until(trio.current_time() + 1)
    board.hear(f"*ended {id}")

    assert await bell.wait_until(trio.current_time() + 1)
    assert not await other.wait_until(trio.current_time() + 1)


async def test_who_no_longer_waits_for_an_end_leaves_nothing_behind():
    board = NotificationRouter()
    id = uuid4()
    bell = board.watch(id)
    board.hear(f"*ended {id}")
    board.unwatch(id, bell)

    assert not board._watchers
