"""The queueing model, against formulas that are known and against waits that are simulated."""

import random
from math import inf

import pytest

from trioboss.pipeline.queueing import Demand, Work, percentile, replay, slots_needed, wait_percentile


def simulate(slots, load, jobs=40_000):
    """Poisson arrivals, exponential runs with a mean of 1 s: M/M/c."""
    chance, now, work = random.Random(7), 0.0, []
    for _ in range(jobs):
        now += chance.expovariate(load)
        work.append(Work(now, chance.expovariate(1)))
    return replay(work, slots)


def test_one_slot_waits_as_the_textbook_says():
    # M/M/1: P(wait > t) = load * exp(-(1 - load) * t)
    assert wait_percentile(Demand(0.5, 1.0), 1, 0.95) == pytest.approx(4.605, abs=0.001)


def test_too_little_capacity_waits_for_ever_and_plenty_not_at_all():
    assert wait_percentile(Demand(3.0, 1.0), 3, 0.95) == inf
    assert wait_percentile(Demand(3.0, 1.0), 30, 0.95) == 0


@pytest.mark.parametrize(("slots", "load"), [(1, 0.7), (4, 3.0), (8, 6.0)])
def test_a_simulated_queue_waits_as_the_model_says(slots, load):
    told = wait_percentile(Demand(load, 1.0), slots, 0.95)

    assert percentile(simulate(slots, load), 0.95) == pytest.approx(told, rel=0.15)


def test_regular_work_waits_less_and_irregular_work_longer():
    waits = [wait_percentile(Demand(3.0, 1.0, variation), 4, 0.95) for variation in (0.0, 1.0, 4.0)]

    assert waits == sorted(waits)
    assert waits[0] == pytest.approx(waits[1] / 2)


def test_the_fewest_slots_that_meet_a_target():
    demand = Demand(10.0, 1.0)
    slots = slots_needed(demand, 0.5, 0.95)

    assert wait_percentile(demand, slots, 0.95) <= 0.5 < wait_percentile(demand, slots - 1, 0.95)


def test_a_replay_serves_first_come_first_and_one_at_a_time_for_each_key():
    assert replay([Work(0, 2), Work(1, 2), Work(1, 2)], 2) == [0, 0, 1]
    assert replay([Work(0, 2, "k"), Work(1, 2, "k"), Work(1, 2, "other")], 9) == [0, 1, 0]
