"""Attempt history: nothing for an attempt that completes, one row for every attempt that does not end well."""

from datetime import UTC, datetime, timedelta

import pytest
from sql_helpers import QueueUnderTest

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HISTORY = "SELECT job_id, attempt, worker, started_on, ended_on, outcome, error FROM trioboss.attempt"


class Story(QueueUnderTest):
    """One job, claimed at noon, ended ten seconds later."""

    def __init__(self, sessions, **options):
        sessions.now = NOON
        super().__init__(sessions, retry_limit=2, **options)
        self.send()
        (self.job,) = self.claim()
        sessions.now = NOON + timedelta(seconds=10)

    def rescue(self):
        operation = self.sessions.store.maintenance.rescue_leases
        self.sessions.run(0, lambda own: operation(10.0, 0.0, warnings=False))


ENDS = {
    "failed": lambda story: story.fail(story.job),
    "expired": Story.rescue,
    "released": lambda story: story.release([story.job]),
    "cancelled": lambda story: story.change("cancel", story.job),
}


@pytest.mark.parametrize("outcome", ENDS)
def test_an_attempt_that_does_not_end_well_leaves_one_row(sessions, outcome):
    story = Story(sessions, expire_in=5)

    ENDS[outcome](story)

    ((job, attempt, _, started, ended, found, error),) = sessions.query(HISTORY)
    assert (job, attempt, found) == (story.job.id, 1, outcome)
    assert (started, ended) == (story.job.started_on, NOON + timedelta(seconds=10))
    assert (error is not None) == (outcome in ("failed", "expired"))


def test_a_heartbeat_that_stopped_is_a_lost_attempt(sessions):
    story = Story(sessions, heartbeat=2)

    story.rescue()

    ((_, _, _, _, _, outcome, error),) = sessions.query(HISTORY)
    assert outcome == "lost"
    assert "heartbeats stopped" in error["message"]


@pytest.mark.parametrize(("at", "lost"), [(9, False), (7, True)])
def test_a_heartbeat_is_counted_from_the_last_one(sessions, at, lost):
    story = Story(sessions, heartbeat=2)
    sessions.now = NOON + timedelta(seconds=at)
    story.touch(story.job)
    sessions.now = NOON + timedelta(seconds=10)

    story.rescue()

    assert bool(sessions.query(HISTORY)) == lost


def test_the_terms_of_a_lease_are_those_of_its_claim(sessions):
    story = Story(sessions, expire_in=60, heartbeat=30)
    sessions.run(0, lambda own: sessions.store.queues.update("q", {"expire_in": 1, "heartbeat": 1}))

    story.rescue()
    assert sessions.query(HISTORY) == []
    story.release([story.job])
    story.claim()
    sessions.now = NOON + timedelta(seconds=20)
    story.rescue()

    assert [row[5] for row in sessions.query(HISTORY)] == ["released", "expired"]


def test_a_job_that_completes_is_its_own_record(sessions):
    story = Story(sessions)

    story.complete(story.job)

    assert sessions.query(HISTORY) == []
    assert sessions.query("SELECT id, attempt, started_on, outcome::text FROM trioboss.archive") == [
        (story.job.id, 1, story.job.started_on, "completed")
    ]


def test_history_is_in_the_table_of_its_day(sessions):
    story = Story(sessions)
    sessions.query("SELECT trioboss.add_days('2030-01-01', 0)")

    ENDS["failed"](story)

    found = sessions.query("SELECT tableoid::regclass::text, xid IS NOT NULL FROM trioboss.attempt")
    assert found == [("trioboss.attempt_20300101", True)]
