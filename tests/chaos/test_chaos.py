"""Workers, connections and the server fail at random, and every promise holds. See also `python -m tests.chaos`."""

import attrs
import pytest

from tests.chaos.harness.chaos_run import run
from tests.chaos.harness.checker import check
from tests.chaos.harness.figures import count
from tests.chaos.harness.plan import QUICK, Plan


def run_and_check(plan: Plan, folder, *, drain_within: float) -> dict[str, float]:
    history = run(plan, folder, print, drain_within=drain_within)
    verdict = check(history)
    assert verdict.is_good, f"seed {plan.seed}: {verdict}"
    figures = count(history)
    assert figures["sends"] == plan.jobs
    assert figures["fault: kill"] >= plan.kills
    assert figures["fault: restart"] == plan.restarts
    return figures


def test_twenty_kills_and_two_restarts_break_no_promise(tmp_path):
    run_and_check(QUICK, tmp_path, drain_within=90.0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_hundred_kills_and_twenty_restarts_break_no_promise(tmp_path, seed):
    figures = run_and_check(attrs.evolve(Plan(), seed=seed), tmp_path, drain_within=300.0)
    assert figures["handler calls that overlapped their successor"] > 0
