"""Maintenance: only in the leader, frequent while jobs are active, and rare while none are."""

from collections import deque
from itertools import pairwise
from uuid import uuid4

import attrs
import pytest
import trio
import trio.testing
from scripted_listening import ScriptedMaintenance

from trioboss.actors.actor import Doorbell
from trioboss.actors.maintenance import Maintenance
from trioboss.errors import DatabaseUnavailable
from trioboss.events import ErrorEvent, JobsRecovered, QueueWarning
from trioboss.machines.maintenance import BusyNotifier
from trioboss.model.polling import Rescue


@attrs.define(eq=False)
class Leadership:
    """The listener, as far as maintenance needs it."""

    leads: bool = True
    leads_changed: Doorbell = attrs.field(factory=Doorbell)
    polls: list[float] = attrs.field(factory=list)
    listening_for: float = 60.0
    is_polling: bool = False

    def poll_now(self):
        self.polls.append(trio.current_time())

    def set(self, leads):
        self.leads = leads
        self.leads_changed.ring()


@attrs.define(eq=False)
class Setting:
    port: ScriptedMaintenance
    listener: Leadership
    busy: Doorbell
    limits: Doorbell
    maintenance: Maintenance


ACTIVE = Rescue((), 3, 500.0, ())


def start(reporter, nursery, *, leads, **script):
    port, listener, busy, limits = ScriptedMaintenance(**script), Leadership(leads), Doorbell(), Doorbell()
    maintenance = Maintenance(port, listener, busy, limits, reporter, BusyNotifier(), 5.0)
    nursery.start_soon(maintenance.run)
    return Setting(port, listener, busy, limits, maintenance)


@pytest.fixture(autouse=True)
def no_chance(monkeypatch):
    """Retention is due with the first round."""
    monkeypatch.setattr("random.random", lambda: 0.0)


@pytest.fixture
async def setting(reporter, nursery):
    return start(reporter, nursery, leads=True)


@pytest.fixture
async def active(reporter, nursery):
    return start(reporter, nursery, leads=True, found=ACTIVE)


@pytest.fixture
async def follower(reporter, nursery):
    return start(reporter, nursery, leads=False)


async def test_an_idle_leader_has_one_round_a_minute(setting):
    await trio.sleep(301)

    assert setting.port.rescues == [(at, True) for at in (0, 60, 120, 180, 240, 300)]
    assert not setting.port.notifications


async def test_an_idle_boss_that_does_not_lead_does_nothing(follower):
    await trio.sleep(3600)

    assert not follower.port.rescues
    assert not follower.listener.polls


async def test_while_jobs_are_active_the_leader_has_frequent_rounds(active):
    await trio.sleep(6.5)

    assert [at for at, _ in active.port.rescues] == [0, 1.5, 3, 4.5, 6]
    assert [warnings for _, warnings in active.port.rescues] == [True, False, False, False, False]


async def test_a_busy_notification_starts_frequent_rounds_for_a_while(setting):
    await trio.sleep(30)
    setting.busy.ring()
    await trio.sleep(5)
    assert [at for at, _ in setting.port.rescues] == [0, 30, 31.5, 33, 34.5]
    await trio.sleep(50)

    assert [at for at, _ in setting.port.rescues if at > 40] == [40.5, 42, 43.5, 45]


async def test_after_a_busy_notification_a_boss_that_does_not_lead_polls_for_a_missing_leader(follower):
    await trio.sleep(10)
    follower.busy.ring()
    await trio.sleep(4)

    assert follower.listener.polls == [10, 11.5, 13]
    assert not follower.port.rescues


async def test_a_new_leader_starts_with_a_round(follower):
    await trio.sleep(10)
    follower.busy.ring()
    await trio.sleep(0.7)
    follower.listener.set(True)
    await trio.testing.wait_all_tasks_blocked()

    assert follower.port.rescues == [(10.7, True)]


async def test_a_boss_that_no_longer_leads_has_no_rounds(active):
    await trio.sleep(4)
    active.listener.set(False)
    before = len(active.port.rescues)
    await trio.sleep(100)

    assert len(active.port.rescues) == before


async def test_while_jobs_run_for_long_the_leader_repeats_the_busy_notification(active):
    """The others have to watch the leader itself, which may have the only job and send no claims."""
    await trio.sleep(35)

    assert [message for _, message in active.port.notifications] == ["*busy"] * 4
    times = [at for at, _ in active.port.notifications]
    assert all(10 <= b - a <= 11.5 for a, b in pairwise(times))


async def test_a_round_is_due_when_the_first_lease_ends(reporter, nursery):
    setting = start(reporter, nursery, leads=True, found=Rescue((), 0, 17.0, ()))
    await trio.sleep(0.1)
    setting.port.found = Rescue((), 0, None, ())
    await trio.sleep(30)

    assert [at for at, _ in setting.port.rescues] == [0, 17]


async def test_rescued_leases_and_warnings_are_reported(reporter, nursery, events):
    ids = (uuid4(), uuid4())
    warning = ("q", "queue_size", "more than 5 jobs wait")
    setting = start(reporter, nursery, leads=True, found=Rescue([("q", "lost", ids)], 0, None, [warning]))
    (recovered,) = await events.wait_for(JobsRecovered)
    (warned,) = await events.wait_for(QueueWarning)

    assert (recovered.queue, recovered.ids, recovered.outcome) == ("q", ids, "lost")
    assert (warned.queue, warned.warning, warned.message) == warning
    assert setting.maintenance.statistics().rescued == 2


async def test_a_round_that_fails_is_followed_by_the_next(active, events):
    await trio.sleep(1)
    active.port.faults.extend([DatabaseUnavailable("away"), DatabaseUnavailable("away")])
    await trio.sleep(5.5)

    assert [at for at, _ in active.port.rescues] == [0, 1.5, 3, 4.5, 6]
    assert len(events.of(ErrorEvent)) == 2


# -- retention


async def test_retention_is_once_an_hour(setting):
    await trio.sleep(3 * 3600 + 100)

    assert setting.port.prunes == [0, 3600, 7200, 10800]


async def test_a_new_leader_delays_retention(reporter, nursery, monkeypatch):
    monkeypatch.setattr("random.random", lambda: 1.0)
    setting = start(reporter, nursery, leads=True)
    await trio.sleep(100)

    assert setting.port.prunes == [15]


async def test_a_boss_that_does_not_lead_prunes_nothing(follower):
    await trio.sleep(3 * 3600)

    assert not follower.port.prunes


async def test_rounds_go_on_during_a_long_pruning(reporter, nursery):
    setting = start(reporter, nursery, leads=True, found=ACTIVE, prune_takes=600)
    await trio.sleep(10)

    assert len(setting.port.rescues) == 7


async def test_a_pruning_that_failed_is_repeated_soon(reporter, nursery, events):
    faults = deque([DatabaseUnavailable("away")])
    setting = start(reporter, nursery, leads=True, prune_faults=faults)
    await trio.sleep(200)

    assert setting.port.prunes == [0, 60]
    assert [event.actor for event in events.of(ErrorEvent)] == ["retention"]


async def test_a_leader_judges_who_is_gone_only_after_being_connected_for_the_grace(follower):
    for listening_for, certain in ((0.0, False), (4.9, False), (5.0, True)):
        follower.listener.listening_for = listening_for
        follower.listener.set(False)
        await trio.testing.wait_all_tasks_blocked()
        follower.listener.set(True)
        await trio.testing.wait_all_tasks_blocked()
        assert follower.port.certain is certain


async def test_a_long_queue_is_reported_at_once_and_again_each_minute(active, events):
    await trio.sleep(7)
    active.port.long_queues = [("q", "queue_size", "more than 5 jobs wait")]
    await trio.sleep(5)
    assert len(events.of(QueueWarning)) == 1
    await trio.sleep(54)
    assert len(events.of(QueueWarning)) == 1
    await trio.sleep(6)
    assert len(events.of(QueueWarning)) == 2
    active.port.long_queues = []
    await trio.sleep(5)
    active.port.long_queues = [("q", "queue_size", "more than 5 jobs wait")]
    await trio.sleep(5)
    assert len(events.of(QueueWarning)) == 3


async def test_a_boss_that_does_not_lead_checks_no_sizes(follower):
    follower.limits.ring()
    await trio.sleep(60)
    assert not follower.port.asked


async def test_a_leader_asks_at_intervals_only_while_a_queue_has_a_limit(reporter, nursery):
    setting = start(reporter, nursery, leads=True, long_queues=None)
    await trio.sleep(130)
    assert [at for at in setting.port.asked if at > 5] == [60, 120]

    setting.port.long_queues = ()
    setting.limits.ring()
    await trio.sleep(11)
    assert [at for at in setting.port.asked if at >= 130] == [130, 135, 140]

    setting.port.long_queues = None
    await trio.sleep(30)
    assert [at for at in setting.port.asked if at > 141] == [145]


async def test_a_new_leader_asks_for_long_queues_at_once(follower, events):
    follower.port.long_queues = [("q", "queue_size", "more than 5 jobs wait")]
    await trio.sleep(10)
    follower.listener.set(True)
    await trio.testing.wait_all_tasks_blocked()

    assert follower.port.asked == [10]
    assert len(events.of(QueueWarning)) == 1


async def test_many_changes_of_queues_do_not_make_the_leader_ask_more_often(reporter, nursery):
    setting = start(reporter, nursery, leads=True, long_queues=None)
    for _ in range(80):
        await trio.sleep(0.2)
        setting.limits.ring()

    assert setting.port.asked == [0, 5, 10, 15]


async def test_a_leader_without_notifications_asks_for_long_queues_at_intervals(reporter, nursery):
    setting = start(reporter, nursery, leads=True, long_queues=None)
    setting.listener.is_polling = True
    await trio.sleep(0.1)
    setting.listener.set(True)
    await trio.sleep(60)

    assert len(setting.port.asked) >= 10


async def test_a_leader_without_notifications_has_frequent_rounds(active):
    active.listener.is_polling = True
    active.listener.set(True)
    before = len(active.port.rescues)
    await trio.sleep(60)
    assert len(active.port.rescues) - before >= 30


async def test_samples_are_taken_every_quarter_of_a_minute_while_jobs_are_active(active):
    await trio.sleep(46)

    assert active.port.samples == [0, 15, 30, 45]


async def test_an_idle_leader_takes_a_sample_with_each_round(setting):
    await trio.sleep(130)

    assert setting.port.samples == [0, 60, 120]


async def test_a_sample_that_fails_stops_no_round(reporter, nursery):
    faults = deque([ValueError("a row that cannot be read")])
    setting = start(reporter, nursery, leads=True, found=ACTIVE, sample_faults=faults)
    await trio.sleep(16)

    assert setting.port.samples == [0, 15]
    assert len(setting.port.rescues) == 11


async def test_warnings_and_recovered_jobs_are_kept(reporter, nursery):
    found = Rescue([("q", "lost", (uuid4(), uuid4()))], 0, None, [(None, "old_snapshot", "old")])
    setting = start(reporter, nursery, leads=True, found=found)
    await trio.sleep(1)

    assert setting.port.kept == [
        (None, "old_snapshot", "old"),
        ("q", "lost", "attempts that lost their worker, or its heartbeats: 2"),
    ]
