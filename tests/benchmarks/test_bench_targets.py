"""From runs to targets: medians, the best comparable peer, ratios, targets; and files that runs are appended to."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.report import Report
from benchmarks.peer_comparison.reporting import report_results
from benchmarks.peer_comparison.results import FLOOR, WorkloadResults, read_results, relate_to_drain
from benchmarks.peer_comparison.targets import TargetResult, evaluate, summarize_targets
from benchmarks.peer_comparison.workloads import ALL

TWO_PROGRAMS = f"{FLOOR}two blocking psycopg programs"


def make_results(name: str, **results: Any) -> WorkloadResults:
    """Return results in which each queue has these values of the first metric."""
    found = WorkloadResults(ALL[name])
    key = found.workload.metrics[0].key
    for queue, values in results.items():
        for value in values:
            found.add(queue.replace("_", "-"), {key: value, "entry_rate": value, "noise": 0.0})
    return found


def result(found: WorkloadResults, work: str) -> TargetResult:
    return {each.target.work: each for each in evaluate({found.workload.name: found})}[work]


def test_a_target_compares_medians_with_the_best_comparable_peer():
    found = make_results(
        "T3", trioboss_batched=[30.0, 20.0, 10.0], pg_boss_notify=[12.0], oban=[1.0], graphile_batched=[90.0]
    )
    each = result(found, "drain batched, history kept, jobs/s")
    assert (each.ours, each.best, each.is_met) == (20.0, "pg-boss-notify", True)
    assert each.to_peer == pytest.approx(20 / 12)


def test_all_bounds_of_a_target_have_to_hold():
    found = make_results("L1", trioboss=[1.0], oban=[2.0])
    found.add(TWO_PROGRAMS, {"p50": 0.5})
    each = result(found, "idle latency p50, ms")
    assert (each.to_peer, each.to_floor, each.is_met) == (0.5, 2.0, False)


def test_a_target_that_needs_more_measurements_is_undecided():
    assert result(make_results("L1", trioboss=[1.0]), "idle latency p50, ms").is_met is None


def test_a_missed_bound_decides_even_if_another_was_not_measured():
    assert result(make_results("L1", trioboss=[2.0], oban=[1.0]), "idle latency p50, ms").is_met is False


def test_a_backlog_is_related_to_the_drain_without_one():
    all_results = {
        "T3": make_results("T3", trioboss_batched=[100.0]),
        "T5": make_results("T5", trioboss_batched=[80.0]),
    }
    relate_to_drain(all_results)
    (each,) = (each for each in evaluate(all_results) if each.target.workload == "T5")
    assert (each.ours, each.is_met) == (0.8, False)


def test_the_summary_has_a_row_for_each_target_that_was_measured():
    table = summarize_targets({"T1": make_results("T1", trioboss=[3.0], oban=[2.0])})
    assert [row[0] for row in table.rows] == ["single sends/s, 1 at a time"]
    assert table.rows[0][-1] == "yes"


def test_the_result_of_a_noisy_run_is_marked():
    found = make_results("T1", trioboss=[3.0])
    found.add("oban", {"rate_1": 2.0, "noise": 1.5})
    assert summarize_targets({"T1": found}).rows[0][-1] == "yes (noisy)"


def test_failures_and_peers_that_cannot_be_installed_are_shown():
    found = make_results("T2", trioboss=[1.0])
    found.fail("oban", RuntimeError("no connection"))
    report = Report("peers")
    report_results(report, {"T2": found}, {"chancy": "needs Python 99"})
    text = report.render()
    assert "oban: failed: no connection" in text
    assert "chancy: cannot be installed: needs Python 99" in text


def test_runs_are_added_to_those_of_an_earlier_file(tmp_path: Path):
    path = tmp_path / "peers.json"
    for value in (1.0, 3.0):
        earlier = read_results(json.loads(path.read_text())["measures"]) if path.exists() else {}
        found = earlier.setdefault("T2", WorkloadResults(ALL["T2"]))
        found.add("trioboss", {"rate": value, "noise": 0.0})
        report = Report("peers")
        report_results(report, earlier, {})
        report.save(tmp_path, {"command": "python -m benchmarks peers"}, path)
    kept = json.loads(path.read_text())
    assert [run["rate"] for run in kept["measures"]["T2"]["runs"]["trioboss"]] == [1.0, 3.0]
    assert len(kept["runs"]) == 2


def test_a_noisy_run_counts_only_for_a_queue_without_quiet_ones():
    found = WorkloadResults(ALL["T2"])
    for noise, rate in ((1.5, 10.0), (0.0, 30.0), (0.1, 50.0)):
        found.add("trioboss", {"rate": rate, "noise": noise})
    found.add("oban", {"rate": 7.0, "noise": 1.5})
    assert (found.median("trioboss", "rate"), found.median("oban", "rate"), found.left_out) == (40.0, 7.0, 1)


def test_a_drain_has_separate_plots_for_batched_and_unbatched_queues():
    report = Report("peers")
    report_results(report, {"T3": make_results("T3", trioboss=[1.0], trioboss_batched=[2.0])}, {})
    assert [plot.title for plot in report.plots] == [
        "T3: drain, one worker process, unbatched: jobs/s",
        "T3: drain, one worker process, batched: jobs/s",
    ]
