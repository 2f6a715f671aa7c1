"""Contests as tables and plots."""

from collections.abc import Iterable, Iterator

from benchmarks.adapters.aims import summarize_aims
from benchmarks.adapters.catalogue import CATALOGUE, Peer
from benchmarks.adapters.contest import FLOOR, Contest
from benchmarks.adapters.workloads import Metric, Workload
from benchmarks.harness.meters import NOISY
from benchmarks.harness.percentiles import median
from benchmarks.harness.plots import Bar, Bars, Curve, Curves, Plot
from benchmarks.harness.report import Report
from benchmarks.harness.tables import Cell, Table

__all__ = ["report_contests"]


def report_contests(report: Report, contests: dict[str, Contest], missing: dict[str, str]) -> None:
    """A table and plots for each workload; at the end, what they come to."""
    for contest in contests.values():
        table = _table(contest)
        table.notes += _notes(contest, missing)
        report.tables.append(table)
        report.plots += _plots(contest)
        report.measures[contest.workload.name] = contest.as_json()
        for name, results in contest.results.items():
            for result in results:
                report.noise.add(f"{contest.workload.name} {name}", result.get("noise", 0.0))
    summary = summarize_aims(contests)
    summary.notes += _versions(contests.values())
    summary.notes += [f"cannot be installed: {name}: {reason}" for name, reason in missing.items()]
    report.tables.append(summary)


def _versions(contests: Iterable[Contest]) -> list[str]:
    found = {name: version for contest in contests for name, version in contest.versions.items()}
    return [", ".join(f"{name} {version}" for name, version in found.items())] if found else []


def _notes(contest: Contest, missing: dict[str, str]) -> Iterator[str]:
    for name, reason in missing.items():
        yield f"{name}: cannot be installed: {reason}"
    for name, reason in contest.failures.items():
        yield f"{name}: failed: {reason}"
    noisy = [name for name in contest.results if contest.is_noisy(name)]
    if noisy:
        listed = "all" if len(noisy) == len(contest.results) else ", ".join(noisy)
        yield f"noisy, others used more than {NOISY} cores: {listed}"
    if unheard := contest.discarded + contest.left_out:
        yield f"{unheard} noisy runs do not count, because the same queue had quieter ones"
    if capped := [name for name in contest.results if any(contest.values(name, "capped"))]:
        yield f"stopped early, what was durable by then counts: {', '.join(capped)}"


def _table(contest: Contest) -> Table:
    workload = contest.workload
    drains = workload.uses == "drain"
    apart = ("batched", "keeps") if drains else ()
    table = Table(workload.title, ["queue", *apart, *(m.title for m in workload.metrics), "settings"])
    for peer in sorted(CATALOGUE, key=lambda peer: drains and peer.batched):
        if peer.name in contest.results:
            kind: list[Cell] = ["yes" if peer.batched else "no", peer.keeps] if drains else []
            table.add(peer.name, *kind, *_cells(contest, peer.name), _settings(peer, workload))
    for name in contest.results:
        if name.startswith(FLOOR):
            table.add(name, *(["", ""] if drains else []), *_cells(contest, name), "")
    return table


def _cells(contest: Contest, name: str) -> list[Cell]:
    return [contest.spread(name, metric) for metric in contest.workload.metrics]


def _settings(peer: Peer, workload: Workload) -> str:
    settings = peer.drain if workload.uses == "drain" else peer.latency if workload.uses else {}
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _plots(contest: Contest) -> Iterator[Plot]:
    if curves := list(_curves(contest)):
        yield Curves(contest.workload.title, "ms", curves)
        return
    for metric in contest.workload.metrics:
        for how, names in _groups(contest) if metric.better is not None else ():
            if bars := list(_bars(contest, metric, names)):
                title = f"{contest.workload.title}{how}: {metric.title}"
                yield Bars(title, f"{metric.better} is good", bars)


def _groups(contest: Contest) -> Iterator[tuple[str, list[str]]]:
    """Where jobs are drained: those that do it one by one, and those that do it many at a time."""
    if contest.workload.uses != "drain":
        yield "", list(contest.results)
        return
    batched = {peer.name: peer.batched for peer in CATALOGUE}
    batched |= {FLOOR + floor.name: bool(floor.batched) for floor in contest.workload.floors}
    yield ", unbatched", [name for name in contest.results if not batched[name]]
    yield ", batched", [name for name in contest.results if batched[name]]


def _bars(contest: Contest, metric: Metric, names: list[str]) -> Iterator[Bar]:
    for name in names:
        if (spread := contest.spread(name, metric)) is not None:
            yield Bar(name, spread.median, spread.low, spread.high)


def _curves(contest: Contest) -> Iterator[Curve]:
    """Each point is the median of the runs at this share of the jobs."""
    for name in contest.results:
        runs = [result["curve_ms"] for result in contest.counted(name) if result.get("curve_ms")]
        if runs:
            points = zip(*runs, strict=False)
            yield Curve(name, [(each[0][0], median(value for _, value in each)) for each in points])
