"""Workers, connections and the server fail at random, and every promise holds. See also `python -m tests.chaos`."""

import os

import attrs
import pytest

from tests.chaos.harness.chaos_run import run
from tests.chaos.harness.checker import check
from tests.chaos.harness.command import main
from tests.chaos.harness.figures import count
from tests.chaos.harness.plan import QUICK, Plan


def run_and_check(plan: Plan, folder, *, drain_within: float) -> dict[str, float]:
    history = run(plan, folder, print, drain_within=drain_within)
    result = check(history)
    assert result.is_good, f"seed {plan.seed}: {result}"
    figures = count(history)
    assert figures["sends"] >= plan.jobs
    assert figures["fault: kill"] >= plan.kills
    assert figures["fault: term"] >= plan.terms
    assert figures["fault: restart"] == plan.restarts
    return figures


def test_twenty_kills_and_two_restarts_break_no_promise(tmp_path):
    run_and_check(QUICK, tmp_path, drain_within=90.0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_two_hundred_kills_and_twenty_restarts_break_no_promise(tmp_path, seed):
    figures = run_and_check(attrs.evolve(Plan(), seed=seed), tmp_path, drain_within=300.0)
    assert figures["handler calls that overlapped their successor"] > 0


@pytest.mark.soak
def test_two_hours_of_steady_load_break_no_promise():
    """300 jobs a second and a fault every ten seconds; TRIOBOSS_SOAK_SECONDS makes it shorter.

    The result is stored in benchmarks/results: `python -m benchmarks publish` writes its summary.
    """
    assert main(["--soak", os.environ.get("TRIOBOSS_SOAK_SECONDS", "7200")]) == 0


@pytest.mark.soak
def test_a_promoted_standby_breaks_no_promise(tmp_path):
    figures = run_and_check(attrs.evolve(QUICK, failover=True, calm=2), tmp_path, drain_within=300.0)
    assert figures["fault: failover"] == 1


@pytest.mark.soak
def test_two_versions_side_by_side_break_no_promise(tmp_path):
    """The other one is the commit before this: its schema must be the same."""
    figures = run_and_check(attrs.evolve(QUICK, other="HEAD~1"), tmp_path, drain_within=300.0)
    assert figures["worker processes of another version"] > 0
