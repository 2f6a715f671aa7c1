"""The attempts that a process has leased: two of one job, and those that have ended."""

import weakref
from datetime import UTC, datetime, timedelta

import attrs
import pytest
import trio
from scripted_ports import make_job

from trioboss.actors.attempts import ClaimedBatch, LeaseWatchers, Running, superseded
from trioboss.machines.attempt import Completed
from trioboss.model.job import Job

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def run(job: Job, attempt: int, started_on: datetime) -> Running:
    claimed = attrs.evolve(job, attempt=attempt, started_on=started_on)
    return Running(claimed, completer=None, claim_sent_at=0.0)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "second_number", [1, 2], ids=["the same number, issued again after a crash", "the next"]
)
def test_an_attempt_is_superseded_by_a_later_one_of_its_job(second_number, turned):
    job, other = make_job(), make_job()
    first = run(job, 1, NOON)
    second = run(job, second_number, NOON + timedelta(seconds=5))
    pair = [second, first] if turned else [first, second]

    assert superseded([*pair, run(other, 1, NOON)]) == {first}


class Forgetful:
    """A completer that keeps nothing."""

    def put(self, running, action, now) -> None:
        pass


async def test_an_attempt_that_ended_is_not_held_until_its_heartbeat_would_have_been_due(autojump_clock):
    watchers = LeaseWatchers()
    jobs = [attrs.evolve(make_job(), attempt=1, started_on=NOON) for _ in range(2)]
    ended, _other = attempts = ClaimedBatch(jobs, Forgetful(), 0.0).unpack()
    watchers.add(attempts)
    ended.start(trio.CancelScope(), (), 0.0)
    ended.end(Completed("null"), 0.0)
    freed = weakref.ref(ended)
    del ended, attempts[0]

    assert freed() is None
