"""LeaseMachine: a lease is renewed in time, and its job is cancelled before others may take it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from trioboss.machines.lease import Due, LeaseMachine

STUCK_AFTER = 1.0
durations = st.floats(0.2, 1000, allow_nan=False)


class Leasing(RuleBasedStateMachine):
    """A lease here and in the database: renewals are sent, and confirmed late, out of order, or never."""

    @initialize(
        claim_sent_at=st.floats(0, 100),
        expire_in=durations,
        heartbeat=st.none() | st.floats(1, 100),
        auto_heartbeat=st.booleans(),
    )
    def begin(
        self, claim_sent_at: float, expire_in: float, heartbeat: float | None, auto_heartbeat: bool
    ) -> None:
        self.machine = LeaseMachine(claim_sent_at, expire_in, heartbeat, auto_heartbeat)
        self.now = claim_sent_at
        self.expires = claim_sent_at + expire_in
        self.heartbeat = heartbeat
        self.auto_heartbeat = auto_heartbeat
        self.renewed = claim_sent_at
        """When the database last renewed it, at the earliest."""
        self.under_way: list[float] = []
        self.cancelled_at: float | None = None

    @rule(share=st.floats(0.01, 1.5))
    def wake(self, share: float) -> None:
        """Let time pass; what is due by then is done when it is due."""
        at, due = self.machine.next()
        until = self.now + share * (self.heartbeat or 10)
        if at > until:
            self.now = until
            return
        self.now = max(self.now, at)
        if due is Due.BEAT:
            self.machine.beat_sent(self.now)
            self.under_way.append(self.now)
        elif due is Due.STUCK:
            assert self.cancelled_at is not None
            assert self.now == pytest.approx(max(self.cancelled_at + STUCK_AFTER, self.now))
        else:
            assert self.cancelled_at is None
            if due is Due.EXPIRED:
                assert self.now >= self.expires - 1e-9
            self.machine.cancelled(self.now)
            self.cancelled_at = self.now

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), lost=st.booleans())
    def answer(self, data: st.DataObject, lost: bool) -> None:
        sent_at = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        if not lost:
            self.renewed = max(self.renewed, sent_at)
            self.machine.beat_confirmed(sent_at)

    @rule()
    def touch(self) -> None:
        self.renewed = max(self.renewed, self.now)
        self.machine.beat_confirmed(self.now)

    @rule(more=st.floats(0.1, 100))
    def extend(self, more: float) -> None:
        self.expires += more
        self.machine.extended(self.expires - self.machine.claim_sent_at)

    @rule()
    def cancel(self) -> None:
        self.machine.cancelled(self.now)
        if self.cancelled_at is None:
            self.cancelled_at = self.now

    @invariant()
    def acts_before_the_lease_ends(self) -> None:
        """While the job runs, something is due before the lease ends, here and in the database."""
        at, due = self.machine.next()
        if self.cancelled_at is None:
            assert at <= self.expires + 1e-6
            if self.heartbeat is not None:
                assert at <= self.renewed + self.heartbeat * 0.9 + 1e-6
        else:
            assert (at, due) == (pytest.approx(self.cancelled_at + STUCK_AFTER), Due.STUCK)

    @invariant()
    def renews_only_with_auto_heartbeat(self) -> None:
        if self.machine.next()[1] is Due.BEAT:
            assert self.auto_heartbeat
            assert self.heartbeat is not None


TestLeasing = Leasing.TestCase
TestLeasing.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


@given(heartbeat=st.floats(1, 1000), losses=st.integers(0, 2))
def test_two_renewals_of_a_lease_in_a_row_may_be_lost(heartbeat: float, losses: int):
    lease = LeaseMachine(0.0, 1e9, heartbeat)
    for _ in range(losses):
        at, due = lease.next()
        assert due is Due.BEAT
        lease.beat_sent(at)
    at, due = lease.next()
    assert due is Due.BEAT
    lease.beat_sent(at)
    lease.beat_confirmed(at)

    assert lease.next()[1] is Due.BEAT


def test_after_a_third_lost_renewal_the_job_is_cancelled_with_a_tenth_to_spare():
    lease = LeaseMachine(0.0, 900.0, 10.0)
    sent = []
    while (next := lease.next())[1] is Due.BEAT:
        lease.beat_sent(next[0])
        sent.append(next[0])

    assert sent == [2.5, 5.0, 7.5]
    assert next == (9.0, Due.UNCONFIRMED)


def test_a_job_without_a_heartbeat_only_expires():
    assert LeaseMachine(5.0, 900.0).next() == (905.0, Due.EXPIRED)


def test_without_auto_heartbeat_no_renewal_is_due():
    lease = LeaseMachine(0.0, 900.0, 10.0, auto_heartbeat=False)
    assert lease.next() == (9.0, Due.UNCONFIRMED)
    lease.beat_confirmed(8.0)

    assert lease.next() == (17.0, Due.UNCONFIRMED)


def test_a_confirmation_that_comes_late_does_not_undo_a_later_one():
    lease = LeaseMachine(0.0, 900.0, 10.0, auto_heartbeat=False)
    lease.beat_confirmed(8.0)
    lease.beat_confirmed(3.0)

    assert lease.next() == (17.0, Due.UNCONFIRMED)


def test_the_first_cancellation_counts():
    lease = LeaseMachine(0.0, 900.0)
    lease.cancelled(5.0)
    lease.cancelled(50.0)

    assert lease.next() == (6.0, Due.STUCK)


def test_a_job_that_its_handler_has_settled_needs_no_renewal_and_still_expires():
    machine = LeaseMachine(0.0, 900.0, heartbeat=8.0)

    assert machine.next(held=False) == (900.0, Due.EXPIRED)
    assert machine.next() == (2.0, Due.BEAT)
