"""ListenMachine, RestartMachine and MaintenanceMachine: when the services of a boss do something."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from trioboss.machines.listening import ListenMachine, OutageReports
from trioboss.machines.maintenance import BusyNotifier, MaintenanceMachine
from trioboss.machines.restart import RestartMachine

# -- listening


class Listening(RuleBasedStateMachine):
    """A listener that does everything on time, on a connection whose probes arrive or do not."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = ListenMachine()
        self.now = 100.0
        self.machine.connected(self.now)
        self.received_at = self.now
        self.polled_at = -math.inf
        self.probe_lost_at = math.inf

    def do_what_is_due(self, probe_arrives: bool) -> None:
        machine, now = self.machine, self.now
        if machine.is_poll_due(now):
            machine.polled(now)
            self.polled_at = self.received_at = now
            if probe_arrives:
                machine.received_probe()
                self.probe_lost_at = math.inf
            else:
                self.probe_lost_at = min(self.probe_lost_at, now)
        elif machine.is_probe_overdue(now):
            self.reconnect()
        elif machine.is_ping_due(now):
            machine.received(now)
            self.received_at = now

    def reconnect(self) -> None:
        delay = self.machine.failed(1.0)
        assert 0 < delay <= 5
        self.now += delay
        self.machine.connected(self.now)
        assert self.machine.is_poll_due(self.now)
        self.received_at, self.probe_lost_at, self.polled_at = self.now, math.inf, -math.inf

    @rule(seconds=st.floats(0.01, 30), probe_arrives=st.booleans())
    def pass_time(self, seconds: float, probe_arrives: bool) -> None:
        until = self.now + seconds
        for _ in range(1000):
            if (due := self.machine.next()) > until:
                break
            self.now = max(self.now, due)
            self.do_what_is_due(probe_arrives)
        else:
            raise AssertionError("never rests")
        self.now = max(self.now, until)

    @rule()
    def receive(self) -> None:
        self.machine.received(self.now)
        self.received_at = self.now

    @rule()
    def poll_now(self) -> None:
        self.machine.poll_now()

    @rule()
    def lose_connection(self) -> None:
        self.reconnect()

    @invariant()
    def is_awake_in_time(self) -> None:
        due = self.machine.next()
        assert due <= self.received_at + 5
        assert due <= max(self.polled_at + 20, self.now)
        assert due <= self.probe_lost_at + 3


TestListening = Listening.TestCase
TestListening.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


def test_in_polling_mode_it_polls_every_two_seconds():
    machine = ListenMachine(polling=True)
    machine.connected(0.0)
    machine.polled(0.0)

    assert machine.next() == 2.0
    assert not machine.is_probe_overdue(1000.0)


def test_polling_mode_begins_when_no_probe_arrives_on_the_first_connection():
    machine = ListenMachine()
    machine.connected(0.0)
    machine.polled(0.0)

    assert machine.missed_probe()
    assert machine.polling
    assert machine.is_poll_due(0.0)


@pytest.mark.parametrize("before", ["a probe", "another connection"])
def test_a_missing_probe_means_a_broken_connection_after(before):
    machine = ListenMachine()
    machine.connected(0.0)
    machine.polled(0.0)
    machine.received_probe() if before == "a probe" else machine.connected(1.0)

    assert not machine.missed_probe()
    assert not machine.polling


def test_delays_grow_up_to_five_seconds_and_are_spread():
    machine = ListenMachine()

    assert [machine.failed(1.0) for _ in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert machine.failed(0.0) == 2.5


def test_after_an_answered_poll_delays_are_short_again():
    machine = ListenMachine()
    for _ in range(5):
        machine.failed(1.0)
    machine.connected(0.0)
    machine.polled(0.0)

    assert machine.failed(1.0) == 0.1


def test_delays_stay_bounded_during_an_outage_of_days():
    machine = ListenMachine()
    for _ in range(5000):
        delay = machine.failed(1.0)

    assert delay == 5.0


def test_an_outage_is_reported_at_once_and_then_less_and_less_often():
    reports = OutageReports()

    reported = [now for now in range(300) if reports.failed(float(now), "refused") is not None]

    assert reported == [0, 5, 15, 35, 75, 135, 195, 255]


def test_an_outage_is_reported_for_each_of_the_first_reasons():
    reports = OutageReports()

    reported = [reports.failed(0.1 * number, f"reason {number}") for number in range(20)]

    assert [seconds is not None for seconds in reported] == [True] * 5 + [False] * 15


def test_the_end_of_an_outage_says_how_long_it_was_and_the_next_one_is_reported_at_once():
    reports = OutageReports()
    assert reports.ended(1.0) is None
    reports.failed(2.0, "refused")
    reports.failed(3.0, "refused")

    assert reports.ended(4.0) == 2.0
    assert reports.failed(5.0, "refused") == 0.0


# -- restarting


@given(st.lists(st.floats(0, 1000), max_size=40), st.integers(0, 5), st.floats(1, 100))
def test_it_gives_up_exactly_when_there_were_too_many_crashes_within_the_window(gaps, limit, window):
    machine = RestartMachine(limit, window)
    now, crashes = 0.0, []
    for gap in gaps:
        now += gap
        crashes.append(now)
        recent = [crash for crash in crashes if crash > now - window]

        assert machine.crashed(now) is (len(recent) <= limit)


# -- maintenance


class Pacing(RuleBasedStateMachine):
    """A boss that leads or does not, and has its rounds on time."""

    def __init__(self) -> None:
        super().__init__()
        self.machine = MaintenanceMachine()
        self.now = 0.0
        self.leads = False
        self.active = 0
        self.rounds: list[float] = []
        self.busy_until = -math.inf
        self.elected_at = -math.inf

    @rule(seconds=st.floats(0.1, 100))
    def pass_time(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.machine.next(self.leads)) <= until:
            self.now = max(self.now, due)
            self.machine.starts_round(self.now)
            self.rounds.append(self.now)
            if self.leads:
                self.machine.finished_round(self.now, self.active, None)
                if self.active:
                    self.busy_until = max(self.busy_until, self.now + 15)
        self.now = until

    @rule(active=st.integers(0, 2))
    def jobs_change(self, active: int) -> None:
        self.active = active

    @rule()
    def receive_busy(self) -> None:
        self.machine.notified_of_work(self.now)
        self.busy_until = max(self.busy_until, self.now + 15)

    @rule()
    def lead(self) -> None:
        if not self.leads:
            self.machine.elected(self.now, 0.5)
            self.elected_at = self.now
        self.leads = True

    @rule()
    def follow(self) -> None:
        self.leads = False

    @invariant()
    def has_rounds_as_often_as_needed(self) -> None:
        due = self.machine.next(self.leads)
        # A new leader has had no round yet, whatever it did before.
        last = max((at for at in self.rounds if at >= self.elected_at), default=-math.inf)
        if last < self.busy_until:
            assert due <= max(last + 1.5, self.now)
        elif self.leads:
            assert due <= max(last + 60, self.now)
        else:
            assert due == math.inf

    @precondition(lambda self: len(self.rounds) > 1)
    @invariant()
    def never_more_often_than_that(self) -> None:
        before, last = self.rounds[-2:]
        assert last - before >= 1.5 - 1e-6 or before < self.elected_at <= last


TestPacing = Pacing.TestCase
TestPacing.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


def test_warnings_are_wanted_once_a_minute():
    machine = MaintenanceMachine()

    assert [machine.warnings_due(now) for now in (0.0, 1.5, 59.0, 60.0, 61.0, 120.0)] == [
        True,
        False,
        False,
        True,
        False,
        True,
    ]


def test_retention_is_once_an_hour_and_after_a_failure_a_minute_later():
    machine = MaintenanceMachine()

    machine.elected(0.0, 0.0)
    assert machine.starts_pruning(0.0)
    assert not machine.starts_pruning(3599.0)
    assert machine.starts_pruning(3600.0)
    machine.failed_to_prune(3610.0)
    assert not machine.starts_pruning(3669.0)
    assert machine.starts_pruning(3670.0)


def test_a_new_leader_prunes_soon_but_not_within_an_hour_of_the_last_time():
    machine = MaintenanceMachine()

    machine.elected(0.0, 0.5)
    machine.starts_round(0.0)
    assert not machine.starts_pruning(0.0)
    assert machine.next(leads=True) == 7.5
    assert machine.starts_pruning(7.5)
    machine.elected(100.0, 0.5)
    assert not machine.starts_pruning(3607.0)
    assert machine.starts_pruning(3607.5)


def test_the_end_of_the_first_lease_starts_a_round():
    machine = MaintenanceMachine()
    machine.starts_round(0.0)
    machine.finished_round(0.0, 0, 17.0)

    assert machine.next(leads=True) == 17.0


def test_a_boss_that_always_has_jobs_notifies_every_ten_seconds_and_always_counts_as_busy():
    notifier, leader = BusyNotifier(), MaintenanceMachine()
    notified = []
    for now in range(100):
        if notifier.due_notification(now) is not None:
            leader.notified_of_work(now)
            notified.append(now)
        leader.starts_round(now)

        assert leader.next(leads=True) == now + 1.5
    assert notified == list(range(0, 100, 10))


# -- idle


@pytest.mark.parametrize("leads", [True, False])
def test_an_idle_boss_makes_at_most_four_statements_a_minute(leads):
    """Polls of the listener and, in a leader, rounds of maintenance. Pruning, once an hour, is not counted."""
    listening, maintenance = ListenMachine(), MaintenanceMachine()
    listening.connected(0.0)
    now, statements = 0.0, 0
    while now < 3600.0:
        if listening.is_poll_due(now):
            statements += 1
            listening.polled(now)
            listening.received_probe()
        elif listening.is_ping_due(now):
            listening.received(now)  # no statement
        if maintenance.next(leads) <= now:
            statements += 1
            maintenance.starts_round(now)
            maintenance.finished_round(now, 0, None)
        now = min(listening.next(), maintenance.next(leads))

    assert statements <= 4 * 60 + 1
