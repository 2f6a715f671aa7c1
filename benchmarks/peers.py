"""How do other queues do on the same work, in the same run? And what does Postgres give without any queue?

A full round of all queues for each repeat, so that a machine that changes its mood does so for all of them. Who cannot
be installed, or fails, is listed with the reason.
"""

import time
from contextlib import ExitStack
from typing import Any

import attrs
import psycopg

from benchmarks.adapters.catalogue import CATALOGUE, Peer
from benchmarks.adapters.install import Installer, NotInstallable
from benchmarks.adapters.workloads import ALL, Metric, Workload, rivals_of
from benchmarks.harness.contenders import Contender
from benchmarks.harness.idling import Watched, count_statements, log_statements, watch
from benchmarks.harness.meters import NOISY
from benchmarks.harness.options import Options
from benchmarks.harness.percentiles import median
from benchmarks.harness.plots import Bar, Bars
from benchmarks.harness.processes import ProgramFailed
from benchmarks.harness.progress import say
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server
from benchmarks.harness.tables import Cell, Spread, Table

__all__ = ["measure"]

_FAILURES = (ProgramFailed, NotInstallable, psycopg.Error, OSError, AssertionError)
_FLOOR = "floor: "

Result = dict[str, Any]


@attrs.define
class _Contest:
    """What each queue, and the floor, did in one workload."""

    workload: Workload
    results: dict[str, list[Result]] = attrs.field(factory=dict)
    failures: dict[str, str] = attrs.field(factory=dict)
    discarded: int = 0

    def add(self, name: str, result: Result) -> None:
        self.results.setdefault(name, []).append(result)

    def fail(self, name: str, error: Exception) -> None:
        text = str(error) or repr(error)
        self.failures[name] = text.splitlines()[0][:200]
        say(f"{self.workload.name} {name} failed: {text[:1000]}")

    def median(self, name: str, key: str) -> float | None:
        values = [result[key] for result in self.results.get(name, ()) if result.get(key) is not None]
        return median(values) if values else None


def measure(server: Server, options: Options) -> Report:
    """One table for each workload."""
    report = Report("peers")
    peers = [peer for peer in CATALOGUE if not options.peers or peer.name in options.peers]
    contenders, missing = _install(peers, options)
    contests: dict[str, _Contest] = {}
    for name, workload in ALL.items():
        if options.workloads and name not in options.workloads:
            continue
        taking_part = [peer for peer in peers if peer.name in contenders and name in peer.workloads]
        contest = contests[name] = _Contest(workload)
        for repeat in range(options.repeats):
            say(f"{name}, round {repeat + 1} of {options.repeats}")
            _play_round(server, options, contest, taking_part, contenders)
        if name == "T5":
            _relate_to_t3(contest, contests.get("T3"))
        _report(report, contest, taking_part, missing)
    return report


def _install(peers: list[Peer], options: Options) -> tuple[dict[str, Contender], dict[str, str]]:
    installer = Installer(options.cache, options.peer_python)
    contenders: dict[str, Contender] = {}
    missing: dict[str, str] = {}
    for peer in peers:
        try:
            contenders[peer.name] = installer.contender(peer)
        except NotInstallable as error:
            missing[peer.name] = str(error)
            say(f"{peer.name} cannot be installed: {error}")
    return contenders, missing


# -- running


def _play_round(
    server: Server, options: Options, contest: _Contest, peers: list[Peer], contenders: dict[str, Contender]
) -> None:
    if contest.workload.run is None:
        _idle_together(server, options, contest, peers, contenders)
        return
    for peer in peers:
        _play(server, options, contest, peer, contenders[peer.name])
    for floor in contest.workload.floors:
        try:
            contest.add(_FLOOR + floor.name, floor.run(server, options))
        except _FAILURES as error:
            contest.fail(_FLOOR + floor.name, error)


def _play(server: Server, options: Options, contest: _Contest, peer: Peer, contender: Contender) -> None:
    """Run until a run was undisturbed, or often enough; the quietest one counts."""
    assert contest.workload.run is not None
    best: Result | None = None
    for _ in range(options.attempts):
        try:
            result = contest.workload.run(server, contender, peer, options)
        except _FAILURES as error:
            contest.fail(peer.name, error)
            return
        contest.discarded += best is not None
        if best is None or result["noise"] < best["noise"]:
            best = result
        if best["noise"] <= NOISY:
            break
    assert best is not None
    contest.add(peer.name, best)
    key = contest.workload.metrics[0].key
    say(f"{contest.workload.name} {peer.name}: {best[key]:,.4g} (others used {best['noise']:.1f} cores)")


def _idle_together(
    server: Server, options: Options, contest: _Contest, peers: list[Peer], contenders: dict[str, Contender]
) -> None:
    """Once without logging, for the CPU; once with it, to count statements."""
    seconds = options.size(20.0, 3.0)
    found: dict[str, Result] = {}
    for logged in (False, True):
        with ExitStack() as stack:
            watched: list[Watched] = []
            for peer in peers:
                try:
                    watched.append(_start_idle(server, stack, peer, contenders[peer.name], logged))
                except _FAILURES as error:
                    contest.fail(peer.name, error)
            time.sleep(options.size(8.0, 1.0))
            if not logged:
                found = watch(server, watched, seconds)
            elif (
                statements := count_statements(server, [each.database for each in watched], seconds)
            ) is not None:
                for each in watched:
                    found.setdefault(each.name, {})["statements"] = statements[each.database]
    for name, result in found.items():
        scale = 20.0 / result["seconds"]
        cpu = {key: result[key] * scale for key in ("worker_cpu", "postgres_cpu")}
        contest.add(name, {**result, **cpu})


def _start_idle(server: Server, stack: ExitStack, peer: Peer, contender: Contender, logged: bool) -> Watched:
    dsn = stack.enter_context(server.database(contender.template(server, peer.latency).name))
    if logged:
        log_statements(server, server.name(dsn))
    program = stack.enter_context(contender.run("work", dsn, peer.latency))
    program.wait("ready")
    return Watched(peer.name, program, server.name(dsn))


def _relate_to_t3(contest: _Contest, drained: _Contest | None) -> None:
    if drained is None:
        return
    for name, results in contest.results.items():
        base = drained.median(name, "entry_rate")
        for result in results:
            result["of_t3"] = result["entry_rate"] / base if base else None


# -- reporting


def _report(report: Report, contest: _Contest, peers: list[Peer], missing: dict[str, str]) -> None:
    table = _table(contest, peers)
    table.notes += _ratios(contest, peers)
    for name, reason in {**missing, **contest.failures}.items():
        table.notes.append(f"{name}: {'cannot be installed' if name in missing else 'failed'}: {reason}")
    noisy = [
        name for name, results in contest.results.items() if any(r.get("noise", 0) > NOISY for r in results)
    ]
    if noisy:
        listed = "all" if len(noisy) == len(contest.results) else ", ".join(noisy)
        table.notes.append(f"noisy, others used more than {NOISY} cores: {listed}")
    if contest.discarded:
        table.notes.append(f"{contest.discarded} noisy runs were discarded for quieter ones")
    capped = [name for name, results in contest.results.items() if any(r.get("capped") for r in results)]
    if capped:
        table.notes.append(f"stopped early, what was durable by then counts: {', '.join(capped)}")
    report.tables.append(table)
    report.plots += _plots(contest)
    report.measures[contest.workload.name] = {"results": contest.results, "failures": contest.failures}
    for name, results in contest.results.items():
        for result in results:
            report.noise.add(f"{contest.workload.name} {name}", result.get("noise", 0.0))


def _table(contest: _Contest, peers: list[Peer]) -> Table:
    workload = contest.workload
    drains = workload.uses == "drain"
    columns = [
        "queue",
        *(("batched", "keeps") if drains else ()),
        *(metric.title for metric in workload.metrics),
    ]
    table = Table(workload.title, [*columns, "settings"])
    for peer in peers:
        if peer.name in contest.results:
            apart: list[Cell] = ["yes" if peer.batched else "no", peer.keeps] if drains else []
            table.add(peer.name, *apart, *_cells(contest, peer.name), _settings(peer, workload))
    for name in contest.results:
        if name.startswith(_FLOOR):
            table.add(name, *(["", ""] if drains else []), *_cells(contest, name), "")
    return table


def _cells(contest: _Contest, name: str) -> list[Cell]:
    cells: list[Cell] = []
    for metric in contest.workload.metrics:
        values = [
            result[metric.key] for result in contest.results[name] if result.get(metric.key) is not None
        ]
        cells.append(Spread.of(values) if values else None)
    return cells


def _settings(peer: Peer, workload: Workload) -> str:
    settings = peer.drain if workload.uses == "drain" else peer.latency if workload.uses else {}
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _ratios(contest: _Contest, peers: list[Peer]) -> list[str]:
    """Ours to the best of those that do the work alike, and to the floor."""
    lines: list[str] = []
    for ours in peers:
        if ours.package is not None or ours.name not in contest.results:
            continue
        for metric in contest.workload.metrics:
            mine = contest.median(ours.name, metric.key)
            if (
                metric.better is not None
                and mine is not None
                and (found := _compared(contest, ours, metric, mine))
            ):
                lines.append(f"{ours.name}, {metric.title}: {' and '.join(found)}")
    return lines


def _compared(contest: _Contest, ours: Peer, metric: Metric, mine: float) -> list[str]:
    found: list[str] = []
    names = [peer.name for peer in rivals_of(ours, contest.workload.name)]
    rivals = {name: value for name in names if (value := contest.median(name, metric.key)) is not None}
    if rivals:
        choose = min if metric.better == "low" else max
        best = choose(rivals, key=rivals.__getitem__)
        if rivals[best]:
            found.append(f"{mine / rivals[best]:.2f}x the best peer's ({best})")
    for floor in contest.workload.floors:
        lowest = contest.median(_FLOOR + floor.name, metric.key)
        if lowest and floor.batched in (None, ours.batched):
            found.append(f"{mine / lowest:.2f}x the floor ({floor.name})")
    return found


def _plots(contest: _Contest) -> list[Bars]:
    plots = []
    for metric in contest.workload.metrics:
        if metric.better is None:
            continue
        bars = []
        for name, results in contest.results.items():
            if values := [result[metric.key] for result in results if result.get(metric.key) is not None]:
                spread = Spread.of(values)
                bars.append(Bar(name, spread.median, spread.low, spread.high))
        if bars:
            plots.append(Bars(f"{contest.workload.title}: {metric.title}", f"{metric.better} is good", bars))
    return plots
