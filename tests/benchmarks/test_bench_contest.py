"""From runs to verdicts: medians, the best of those alike, ratios, aims; and files that are added to."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.adapters.aims import Verdict, judge, summarize_aims
from benchmarks.adapters.contest import FLOOR, Contest, read_contests, relate_to_drain
from benchmarks.adapters.reporting import report_contests
from benchmarks.adapters.workloads import ALL
from benchmarks.harness.report import Report

TWO_PROGRAMS = f"{FLOOR}two blocking psycopg programs"


def contest(name: str, **results: Any) -> Contest:
    """A contest in which each queue had these values of the first metric."""
    found = Contest(ALL[name])
    key = found.workload.metrics[0].key
    for queue, values in results.items():
        for value in values:
            found.add(queue.replace("_", "-"), {key: value, "entry_rate": value, "noise": 0.0})
    return found


def verdict(found: Contest, work: str) -> Verdict:
    return {each.aim.work: each for each in judge({found.workload.name: found})}[work]


def test_a_verdict_compares_medians_with_the_best_of_those_alike():
    found = contest(
        "T3", trioboss_batched=[30.0, 20.0, 10.0], pg_boss_notify=[12.0], oban=[1.0], graphile_batched=[90.0]
    )
    each = verdict(found, "drain batched, history kept, jobs/s")
    assert (each.ours, each.best, each.is_met) == (20.0, "pg-boss-notify", True)
    assert each.to_peer == pytest.approx(20 / 12)


def test_all_bounds_of_an_aim_have_to_hold():
    found = contest("L1", trioboss=[1.0], oban=[2.0])
    found.add(TWO_PROGRAMS, {"p50": 0.5})
    each = verdict(found, "idle latency p50, ms")
    assert (each.to_peer, each.to_floor, each.is_met) == (0.5, 2.0, False)


def test_what_was_not_measured_is_not_decided():
    assert verdict(contest("L1", trioboss=[1.0]), "idle latency p50, ms").is_met is None


def test_an_aim_that_is_missed_is_missed_whatever_else_is_unknown():
    assert verdict(contest("L1", trioboss=[2.0], oban=[1.0]), "idle latency p50, ms").is_met is False


def test_a_backlog_is_related_to_the_drain_without_one():
    contests = {"T3": contest("T3", trioboss_batched=[100.0]), "T5": contest("T5", trioboss_batched=[80.0])}
    relate_to_drain(contests)
    (each,) = (each for each in judge(contests) if each.aim.workload == "T5")
    assert (each.ours, each.is_met) == (0.8, False)


def test_the_summary_has_a_row_for_each_aim_that_was_measured():
    table = summarize_aims({"T1": contest("T1", trioboss=[3.0], oban=[2.0])})
    assert [row[0] for row in table.rows] == ["single sends/s, 1 at a time"]
    assert table.rows[0][-1] == "yes"


def test_a_verdict_on_a_disturbed_run_says_so():
    found = contest("T1", trioboss=[3.0])
    found.add("oban", {"rate_1": 2.0, "noise": 1.5})
    assert summarize_aims({"T1": found}).rows[0][-1] == "yes (noisy)"


def test_failures_and_what_cannot_be_installed_are_shown():
    found = contest("T2", trioboss=[1.0])
    found.fail("oban", RuntimeError("no such luck"))
    report = Report("peers")
    report_contests(report, {"T2": found}, {"chancy": "needs Python 99"})
    text = report.render()
    assert "oban: failed: no such luck" in text
    assert "chancy: cannot be installed: needs Python 99" in text


def test_runs_are_added_to_those_of_an_earlier_file(tmp_path: Path):
    path = tmp_path / "peers.json"
    for value in (1.0, 3.0):
        earlier = read_contests(json.loads(path.read_text())["measures"]) if path.exists() else {}
        found = earlier.setdefault("T2", Contest(ALL["T2"]))
        found.add("trioboss", {"rate": value, "noise": 0.0})
        report = Report("peers")
        report_contests(report, earlier, {})
        report.save(tmp_path, {"command": "python -m benchmarks peers"}, path)
    kept = json.loads(path.read_text())
    assert [result["rate"] for result in kept["measures"]["T2"]["results"]["trioboss"]] == [1.0, 3.0]
    assert len(kept["runs"]) == 2


def test_a_disturbed_run_counts_only_where_there_is_no_other():
    found = Contest(ALL["T2"])
    for noise, rate in ((1.5, 10.0), (0.0, 30.0), (0.1, 50.0)):
        found.add("trioboss", {"rate": rate, "noise": noise})
    found.add("oban", {"rate": 7.0, "noise": 1.5})
    assert (found.median("trioboss", "rate"), found.median("oban", "rate"), found.left_out) == (40.0, 7.0, 1)


def test_a_drain_shows_batched_and_unbatched_apart():
    report = Report("peers")
    report_contests(report, {"T3": contest("T3", trioboss=[1.0], trioboss_batched=[2.0])}, {})
    assert [plot.title for plot in report.plots] == [
        "T3: drain, one worker process, unbatched: jobs/s",
        "T3: drain, one worker process, batched: jobs/s",
    ]
