"""Results of the peer comparison as tables and plots."""

from collections.abc import Iterable, Iterator

from benchmarks.harness.meters import NOISY
from benchmarks.harness.percentiles import median
from benchmarks.harness.plots import Bar, Bars, Curve, Curves, Plot
from benchmarks.harness.report import Report
from benchmarks.harness.tables import Cell, Table
from benchmarks.peer_comparison.catalogue import CATALOGUE, Peer
from benchmarks.peer_comparison.results import FLOOR, WorkloadResults
from benchmarks.peer_comparison.targets import summarize_targets
from benchmarks.peer_comparison.workloads import Metric, Workload

__all__ = ["report_results"]


def report_results(report: Report, all_results: dict[str, WorkloadResults], missing: dict[str, str]) -> None:
    """Add a table and plots for each workload, and at the end the table of targets."""
    for results in all_results.values():
        table = _table(results)
        table.notes += _notes(results, missing)
        report.tables.append(table)
        report.plots += _plots(results)
        report.measures[results.workload.name] = results.as_json()
        for name, runs in results.runs.items():
            for result in runs:
                report.noise.add(f"{results.workload.name} {name}", result.get("noise", 0.0))
    summary = summarize_targets(all_results)
    summary.notes += _versions(all_results.values())
    summary.notes += [f"cannot be installed: {name}: {reason}" for name, reason in missing.items()]
    report.tables.append(summary)


def _versions(found: Iterable[WorkloadResults]) -> list[str]:
    versions = {name: version for results in found for name, version in results.versions.items()}
    return [", ".join(f"{name} {version}" for name, version in versions.items())] if versions else []


def _notes(results: WorkloadResults, missing: dict[str, str]) -> Iterator[str]:
    for name, reason in missing.items():
        yield f"{name}: cannot be installed: {reason}"
    for name, reason in results.failures.items():
        yield f"{name}: failed: {reason}"
    noisy = [name for name in results.runs if results.is_noisy(name)]
    if noisy:
        listed = "all" if len(noisy) == len(results.runs) else ", ".join(noisy)
        yield f"noisy, other processes used more than {NOISY} cores: {listed}"
    if ignored := results.discarded + results.left_out:
        yield f"{ignored} noisy runs do not count, because the same queue had quieter ones"
    if capped := [name for name in results.runs if any(results.values(name, "capped"))]:
        yield f"stopped early, only durable completions count: {', '.join(capped)}"


def _table(results: WorkloadResults) -> Table:
    workload = results.workload
    drains = workload.uses == "drain"
    apart = ("batched", "keeps") if drains else ()
    table = Table(workload.title, ["queue", *apart, *(m.title for m in workload.metrics), "settings"])
    for peer in sorted(CATALOGUE, key=lambda peer: drains and peer.batched):
        if peer.name in results.runs:
            kind: list[Cell] = ["yes" if peer.batched else "no", peer.keeps] if drains else []
            table.add(peer.name, *kind, *_cells(results, peer.name), _settings(peer, workload))
    for name in results.runs:
        if name.startswith(FLOOR):
            table.add(name, *(["", ""] if drains else []), *_cells(results, name), "")
    return table


def _cells(results: WorkloadResults, name: str) -> list[Cell]:
    return [results.spread(name, metric) for metric in results.workload.metrics]


def _settings(peer: Peer, workload: Workload) -> str:
    settings = peer.drain if workload.uses == "drain" else peer.latency if workload.uses else {}
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _plots(results: WorkloadResults) -> Iterator[Plot]:
    if curves := list(_curves(results)):
        yield Curves(results.workload.title, "ms", curves)
        return
    for metric in results.workload.metrics:
        for how, names in _groups(results) if metric.better is not None else ():
            if bars := list(_bars(results, metric, names)):
                title = f"{results.workload.title}{how}: {metric.title}"
                yield Bars(title, f"{metric.better} is good", bars)


def _groups(results: WorkloadResults) -> Iterator[tuple[str, list[str]]]:
    """Yield the queues of one plot; drains have one plot for unbatched queues and one for batched ones."""
    if results.workload.uses != "drain":
        yield "", list(results.runs)
        return
    batched = {peer.name: peer.batched for peer in CATALOGUE}
    batched |= {FLOOR + floor.name: bool(floor.batched) for floor in results.workload.floors}
    yield ", unbatched", [name for name in results.runs if not batched[name]]
    yield ", batched", [name for name in results.runs if batched[name]]


def _bars(results: WorkloadResults, metric: Metric, names: list[str]) -> Iterator[Bar]:
    for name in names:
        if (spread := results.spread(name, metric)) is not None:
            yield Bar(name, spread.median, spread.low, spread.high)


def _curves(results: WorkloadResults) -> Iterator[Curve]:
    """Yield a curve for each queue; a point is the median of the runs at this share of the jobs."""
    for name in results.runs:
        runs = [result["curve_ms"] for result in results.counted(name) if result.get("curve_ms")]
        if runs:
            points = zip(*runs, strict=False)
            yield Curve(name, [(each[0][0], median(value for _, value in each)) for each in points])
