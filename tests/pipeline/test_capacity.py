"""Capacity, from a history of which it is known how many slots it had."""

import random
from datetime import timedelta

import pytest
from history_rows import DAY, make_jobs

from trioboss.errors import UsageError
from trioboss.pipeline.files import Files
from trioboss.pipeline.history import Source
from trioboss.pipeline.jobs import capacity as capacity_job
from trioboss.pipeline.jobs.capacity import capacity
from trioboss.pipeline.lake import make_lake
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.queueing import Work, percentile, replay

SLOTS = 4


def served(slots, key=None):
    """An hour of work for about three slots, and when each job was started by so many."""
    chance, now, work = random.Random(3), 0.0, []
    while (now := now + chance.expovariate(0.75)) < 3600:
        work.append(Work(now, chance.expovariate(1 / 4), key))
    return work, replay(work, slots)


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """Two queues: `even` is short of slots, the jobs of `keyed` have all the same key."""
    rows = []
    for queue, key, policy in (("even", None, "standard"), ("keyed", "k", "singleton")):
        work, waits = served(SLOTS, None) if key is None else served(100, key)
        for n, (item, wait) in enumerate(list(zip(work, waits, strict=True))[: None if key is None else 200]):
            due, start = item.due / 60, (item.due + wait) / 60
            rows.append(
                {"id": f"{queue}{n}", "queue": queue, "policy": policy, "singleton_key": key, "created_on": due,
                 "start_after": due, "started_on": start, "completed_on": start + item.run / 60}
            )  # fmt: skip
    path = tmp_path_factory.mktemp("capacity")
    make_lake(Manifest(Files(spark, path)), {"archive": make_jobs(spark, *rows).coalesce(1)})
    return path


@pytest.fixture(scope="module")
def found(spark, lake):
    return {queue.queue: queue for queue in capacity(Source(lake=lake), target=1.0, spark=spark)}


@pytest.mark.soak
def test_the_slots_that_were_there_are_seen_and_the_model_fits_the_waits(found):
    even = found["even"]

    assert even.slots_seen == SLOTS
    assert even.peak_rate == pytest.approx(0.75, rel=0.1)
    assert even.fit.hours >= 1
    assert even.fit.within_two == 1.0
    assert even.wait_p95 > 1.0


@pytest.mark.soak
def test_the_slots_that_are_needed_meet_the_target_in_a_replay_and_one_less_does_not(found):
    even, (work, _) = found["even"], served(SLOTS)

    assert even.slots_needed > SLOTS
    assert percentile(replay(work, even.slots_needed), 0.95) <= 1.0
    assert even.replayed_wait_p95 <= 1.0
    assert percentile(replay(work, SLOTS), 0.95) > 1.0
    assert even.limited_by is None
    assert even.by_hour[DAY.hour] == even.slots_needed


@pytest.mark.soak
def test_waits_behind_a_key_cannot_be_bought_with_slots(found):
    assert found["keyed"].limited_by == "keys"


def test_a_target_must_be_more_than_nothing():
    with pytest.raises(UsageError, match="target"):
        capacity(Source(lake="nowhere"), target=0)


def test_the_command_prints_a_line_a_queue(spark, lake, capsys):
    end = (DAY + timedelta(days=1)).isoformat()

    assert (
        capacity_job.main(["--from-lake", str(lake), "--queue", "even", "--to", end, "--slots", "even=4"])
        == 0
    )

    out = capsys.readouterr().out
    assert "slots_needed" in out
    assert "even" in out
    assert "keyed" not in out
