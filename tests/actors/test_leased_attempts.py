"""Two attempts of one job in one process: the later one counts."""

from datetime import UTC, datetime, timedelta

import attrs
import pytest
from scripted_ports import make_job

from trioboss.actors.attempts import Running, superseded
from trioboss.model.job import Job, Lease

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def run(job: Job, attempt: int, started_on: datetime) -> Running:
    claimed = attrs.evolve(job, attempt=attempt, started_on=started_on)
    return Running(claimed, Lease(job.id, attempt, started_on), completer=None, claim_sent_at=0.0)


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
