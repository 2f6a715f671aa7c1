"""Attempt history: nothing on the happy path, one row for every attempt that did not end well."""

from datetime import UTC, datetime, timedelta

import pytest
from lifecycle_desk import OWN

from trioboss.model.job import NewJob
from trioboss.model.settle_and_claim import ClaimRequest

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
HISTORY = "SELECT job_id, attempt, worker, started_on, ended_on, outcome, error FROM trioboss.attempt"


class Story:
    """One job with a heartbeat, claimed at noon, ended ten seconds later."""

    def __init__(self, desk):
        self.desk, desk.now = desk, NOON
        self.say("queues", "create", "q", {"retry_limit": 2, "dead_letter": None, "expire_in": 5.0})
        self.say("sending", "send", "q", NewJob(), own=True)
        (self.job,) = self.say("claiming", "claim", "q", ClaimRequest(1)).jobs
        desk.now = NOON + timedelta(seconds=10)

    def say(self, part, verb, *args, **options):
        method = getattr(getattr(self.desk.store, part), verb)
        return self.desk.say(OWN, lambda own: method(*args, **options))


ENDS = {
    "failed": lambda story: story.say("settling", "fail", "q", story.job, "an error", own=True),
    "expired": lambda story: story.say("maintenance", "watch", 10.0, 0.0, full=True),
    "released": lambda story: story.say("settling", "release_leases", "q", [story.job.lease]),
    "cancelled": lambda story: story.say("settling", "cancel", "q", [story.job.id], own=True),
}


@pytest.mark.parametrize("outcome", ENDS)
def test_an_attempt_that_does_not_end_well_leaves_one_row(desk, outcome):
    story = Story(desk)

    ENDS[outcome](story)

    ((job, attempt, _, started, ended, found, error),) = desk.query(HISTORY)
    assert (job, attempt, found) == (story.job.id, 1, outcome)
    assert (started, ended) == (story.job.started_on, NOON + timedelta(seconds=10))
    assert (error is not None) == (outcome in ("failed", "expired"))


def test_a_heartbeat_that_stopped_is_a_lost_attempt(desk):
    story = Story(desk)
    desk.query(
        "UPDATE trioboss.job SET heartbeat = '2 s', heartbeat_on = started_on, expire_in = '1 h' RETURNING id"
    )

    story.say("maintenance", "watch", 1.0, 0.0, full=True)

    ((_, _, _, _, _, outcome, error),) = desk.query(HISTORY)
    assert outcome == "lost"
    assert "heartbeats stopped" in error["message"]


def test_a_job_that_completes_is_its_own_record(desk):
    story = Story(desk)

    story.say("settling", "complete", "q", story.job, None, own=True)

    assert desk.query(HISTORY) == []
    assert desk.query("SELECT id, attempt, started_on, state::text FROM trioboss.archive") == [
        (story.job.id, 1, story.job.started_on, "completed")
    ]


def test_history_is_appended_to_and_lies_in_the_table_of_its_day(desk):
    story = Story(desk)
    desk.query("SELECT trioboss.add_days('2030-01-01', 0)")

    ENDS["failed"](story)

    found = desk.query("SELECT tableoid::regclass::text, xid IS NOT NULL FROM trioboss.attempt")
    assert found == [("trioboss.attempt_20300101", True)]
