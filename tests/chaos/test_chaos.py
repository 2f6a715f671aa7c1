"""Everything breaks at once, and every promise holds. `python -m benchmarks chaos` is the same to watch."""

import attrs
import pytest

from benchmarks.chaos.checker import judge
from benchmarks.chaos.command import QUICK
from benchmarks.chaos.conductor import run
from benchmarks.chaos.figures import count
from benchmarks.chaos.plan import Plan


def check(plan: Plan, folder, *, drain_within: float) -> dict[str, float]:
    history = run(plan, folder, print, drain_within=drain_within)
    verdict = judge(history)
    assert verdict.is_good, f"seed {plan.seed}: {verdict}"
    figures = count(history)
    assert figures["sends"] == plan.jobs
    assert figures["fault: kill"] >= plan.kills
    assert figures["fault: restart"] == plan.restarts
    return figures


def test_twenty_kills_and_two_restarts_break_no_promise(tmp_path):
    check(QUICK, tmp_path, drain_within=90.0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_hundred_kills_and_twenty_restarts_break_no_promise(tmp_path, seed):
    figures = check(attrs.evolve(Plan(), seed=seed), tmp_path, drain_within=300.0)
    assert figures["runs that met their successor"] > 0
