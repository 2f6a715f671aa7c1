"""How do other queues do the same work, in the same run? And what does Postgres reach without a queue?

L1, L2    latency on an idle queue, and at 200 jobs/s
T1, T2    single sends, 1 and 10 at a time; bulk
T3, T3x2  drain by one process, by two
T4        10 senders and a worker at full speed
T5        the first 10,000 jobs of a backlog of 500,000
I1        an idle worker

Each repeat is a round of all queues, so that a change of the machine's speed affects all of them. The peers are
installed from PyPI and npm into --cache; a queue that cannot be installed, or fails, is listed with the reason. With
--append the runs are added to those of an earlier file, so that a long comparison can be run in parts. Takes about
80 minutes.
"""

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import psycopg

from benchmarks.harness.idling import SETTLING, IdleProgram, count_statements, log_statements, observe
from benchmarks.harness.meters import NOISY
from benchmarks.harness.options import Options
from benchmarks.harness.processes import ProgramFailed
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import QueueProgram
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server
from benchmarks.peer_comparison.catalogue import CATALOGUE, Peer
from benchmarks.peer_comparison.install import Installer, NotInstallable
from benchmarks.peer_comparison.reporting import report_results
from benchmarks.peer_comparison.results import FLOOR, WorkloadResults, read_results, relate_to_drain
from benchmarks.peer_comparison.workloads import ALL

__all__ = ["choose", "measure"]

_FAILURES = (ProgramFailed, NotInstallable, psycopg.Error, OSError, AssertionError)

Result = dict[str, Any]


def measure(server: Server, options: Options) -> Report:
    """Make one table for each workload, and one that compares trioboss with the best peer."""
    report = Report("peers")
    workloads, peers = choose(options)
    programs, missing = _install(peers, options)
    all_results = _read_earlier(options)
    for name in workloads:
        taking_part = [peer for peer in peers if peer.name in programs and name in peer.workloads]
        results = all_results.setdefault(name, WorkloadResults(ALL[name]))
        for repeat in range(options.repeats):
            log(f"{name}, round {repeat + 1} of {options.repeats}")
            first = repeat % max(1, len(taking_part))  # so that no queue always runs after the same other one
            order = taking_part[first:] + taking_part[:first]
            _run_round(server, options, results, order, programs)
        _store(options, all_results)
    ordered = {name: all_results[name] for name in ALL if name in all_results}
    relate_to_drain(ordered)
    report_results(report, ordered, missing)
    return report


def choose(options: Options) -> tuple[list[str], list[Peer]]:
    """Return the selected workloads and queues. `--only` names either, queues also by a part of their name."""
    queues = [peer.name for peer in CATALOGUE]
    named = {name for name in options.only if name in ALL}
    parts = [part for part in options.only if part not in ALL]
    _check("--peers", [name for name in options.peers if name not in queues], queues)
    _check("--workloads", [name for name in options.workloads if name not in ALL], ALL)
    _check("--only", [part for part in parts if not any(part in name for name in queues)], [*ALL, *queues])
    wanted = {*options.workloads, *named}
    peers = [
        peer
        for peer in CATALOGUE
        if (not options.peers and not parts)
        or peer.name in options.peers
        or any(part in peer.name for part in parts)
    ]
    return [name for name in ALL if not wanted or name in wanted], peers


def _check(option: str, unknown: Sequence[str], known: Iterable[str]) -> None:
    if unknown:
        raise SystemExit(f"{option}: {unknown[0]!r} is none of {', '.join(known)}")


def _read_earlier(options: Options) -> dict[str, WorkloadResults]:
    if options.append is None or not options.append.exists():
        return {}
    return read_results(json.loads(options.append.read_text())["measures"])


def _store(options: Options, all_results: dict[str, WorkloadResults]) -> None:
    """Store the runs so far, so that an interrupted comparison loses only the current workload."""
    if options.append is None:
        return
    stored = json.loads(options.append.read_text()) if options.append.exists() else {"runs": []}
    stored["measures"] = {name: results.as_json() for name, results in all_results.items()}
    options.append.parent.mkdir(parents=True, exist_ok=True)
    options.append.write_text(json.dumps(stored, indent=1, default=str) + "\n")


def _install(peers: list[Peer], options: Options) -> tuple[dict[str, QueueProgram], dict[str, str]]:
    installer = Installer(options.cache, options.peer_python)
    programs: dict[str, QueueProgram] = {}
    missing: dict[str, str] = {}
    for peer in peers:
        try:
            programs[peer.name] = installer.program(peer)
        except NotInstallable as error:
            missing[peer.name] = str(error)
            log(f"{peer.name} cannot be installed: {error}")
    return programs, missing


# -- running


def _run_round(
    server: Server,
    options: Options,
    results: WorkloadResults,
    peers: list[Peer],
    programs: dict[str, QueueProgram],
) -> None:
    if results.workload.run is None:
        _observe_idle(server, options, results, peers, programs)
        return
    for peer in peers:
        _run(server, options, results, peer, programs[peer.name])
    for floor in results.workload.floors:
        try:
            results.add(FLOOR + floor.name, floor.run(server, options))
        except _FAILURES as error:
            results.fail(FLOOR + floor.name, error)


def _run(server: Server, options: Options, results: WorkloadResults, peer: Peer, queue: QueueProgram) -> None:
    """Run until a run was undisturbed, at most --attempts times; the quietest run counts."""
    assert results.workload.run is not None
    best: Result | None = None
    for _ in range(options.attempts):
        try:
            result = results.workload.run(server, queue, peer, options)
        except _FAILURES as error:
            results.fail(peer.name, error)
            return
        results.discarded += best is not None
        if best is None or result["noise"] < best["noise"]:
            best = result
        if best["noise"] <= NOISY:
            break
    assert best is not None
    results.add(peer.name, best)
    settings = peer.drain if results.workload.uses == "drain" else peer.latency
    results.versions[peer.name] = str(queue.template(server, settings).facts["version"])
    key = results.workload.metrics[0].key
    log(
        f"{results.workload.name} {peer.name}: {best[key]:,.4g} (other processes used {best['noise']:.1f} cores)"
    )


def _observe_idle(
    server: Server,
    options: Options,
    results: WorkloadResults,
    peers: list[Peer],
    programs: dict[str, QueueProgram],
) -> None:
    """Observe all queues side by side, twice: without logging for the CPU, with logging to count statements."""
    found: dict[str, Result] = {}
    for logged in (False, True):
        with ExitStack() as stack:
            observed: list[IdleProgram] = []
            for peer in peers:
                try:
                    observed.append(_start_idle(server, stack, peer, programs[peer.name], logged))
                except _FAILURES as error:
                    results.fail(peer.name, error)
            time.sleep(options.size(SETTLING, 1.0))
            if not logged:
                found = observe(server, observed, options.size(20.0, 3.0))
                continue
            # A minute, because some queues execute only a few statements in it.
            databases = [each.database for each in observed]
            statements = count_statements(server, databases, options.size(60.0, 3.0)) or {}
            for each in observed:
                if each.name in found and each.database in statements:
                    found[each.name]["statements"] = statements[each.database]
    for name, result in found.items():
        scale = 20.0 / result["seconds"]
        cpu = {key: result[key] * scale for key in ("worker_cpu", "postgres_cpu")}
        results.add(name, {**result, **cpu})


def _start_idle(
    server: Server, stack: ExitStack, peer: Peer, queue: QueueProgram, logged: bool
) -> IdleProgram:
    dsn = stack.enter_context(server.database(queue.template(server, peer.latency).name))
    if logged:
        log_statements(server, server.name(dsn))
    program = stack.enter_context(queue.run("work", dsn, peer.latency))
    program.wait("ready")
    return IdleProgram(peer.name, program, server.name(dsn))
