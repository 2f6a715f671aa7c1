"""How do other queues do on the same work, in the same run? And what does Postgres give without any queue?

A full round of all queues for each repeat, so that a machine that changes its mood does so for all of them. Who cannot
be installed, or fails, is listed with the reason. With --append the runs are added to those of an earlier file, so that
a long contest can be played in parts.
"""

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import psycopg

from benchmarks.adapters.catalogue import CATALOGUE, Peer
from benchmarks.adapters.contest import FLOOR, Contest, read_contests, relate_to_drain
from benchmarks.adapters.install import Installer, NotInstallable
from benchmarks.adapters.reporting import report_contests
from benchmarks.adapters.workloads import ALL
from benchmarks.harness.contenders import Contender
from benchmarks.harness.idling import SETTLING, Watched, count_statements, log_statements, watch
from benchmarks.harness.meters import NOISY
from benchmarks.harness.options import Options
from benchmarks.harness.processes import ProgramFailed
from benchmarks.harness.progress import say
from benchmarks.harness.report import Report
from benchmarks.harness.server import Server

__all__ = ["choose", "measure"]

_FAILURES = (ProgramFailed, NotInstallable, psycopg.Error, OSError, AssertionError)

Result = dict[str, Any]


def measure(server: Server, options: Options) -> Report:
    """One table for each workload, and one for all of them."""
    report = Report("peers")
    workloads, peers = choose(options)
    contenders, missing = _install(peers, options)
    contests = _read_earlier(options)
    for name in workloads:
        taking_part = [peer for peer in peers if peer.name in contenders and name in peer.workloads]
        contest = contests.setdefault(name, Contest(ALL[name]))
        for repeat in range(options.repeats):
            say(f"{name}, round {repeat + 1} of {options.repeats}")
            first = repeat % max(1, len(taking_part))  # nobody always comes after the same one
            order = taking_part[first:] + taking_part[:first]
            _play_round(server, options, contest, order, contenders)
        _keep(options, contests)
    ordered = {name: contests[name] for name in ALL if name in contests}
    relate_to_drain(ordered)
    report_contests(report, ordered, missing)
    return report


def choose(options: Options) -> tuple[list[str], list[Peer]]:
    """The workloads and the queues that are asked for. `--only` names either, queues also by a part of their name."""
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


def _read_earlier(options: Options) -> dict[str, Contest]:
    if options.append is None or not options.append.exists():
        return {}
    return read_contests(json.loads(options.append.read_text())["measures"])


def _keep(options: Options, contests: dict[str, Contest]) -> None:
    """What was played so far is in the file even if the rest is cut off."""
    if options.append is None:
        return
    kept = json.loads(options.append.read_text()) if options.append.exists() else {"runs": []}
    kept["measures"] = {name: contest.as_json() for name, contest in contests.items()}
    options.append.parent.mkdir(parents=True, exist_ok=True)
    options.append.write_text(json.dumps(kept, indent=1, default=str) + "\n")


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
    server: Server, options: Options, contest: Contest, peers: list[Peer], contenders: dict[str, Contender]
) -> None:
    if contest.workload.run is None:
        _idle_together(server, options, contest, peers, contenders)
        return
    for peer in peers:
        _play(server, options, contest, peer, contenders[peer.name])
    for floor in contest.workload.floors:
        try:
            contest.add(FLOOR + floor.name, floor.run(server, options))
        except _FAILURES as error:
            contest.fail(FLOOR + floor.name, error)


def _play(server: Server, options: Options, contest: Contest, peer: Peer, contender: Contender) -> None:
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
    settings = peer.drain if contest.workload.uses == "drain" else peer.latency
    contest.versions[peer.name] = str(contender.template(server, settings).facts["version"])
    key = contest.workload.metrics[0].key
    say(f"{contest.workload.name} {peer.name}: {best[key]:,.4g} (others used {best['noise']:.1f} cores)")


def _idle_together(
    server: Server, options: Options, contest: Contest, peers: list[Peer], contenders: dict[str, Contender]
) -> None:
    """Once without logging, for the CPU; once with it, to count statements."""
    found: dict[str, Result] = {}
    for logged in (False, True):
        with ExitStack() as stack:
            watched: list[Watched] = []
            for peer in peers:
                try:
                    watched.append(_start_idle(server, stack, peer, contenders[peer.name], logged))
                except _FAILURES as error:
                    contest.fail(peer.name, error)
            time.sleep(options.size(SETTLING, 1.0))
            if not logged:
                found = watch(server, watched, options.size(20.0, 3.0))
                continue
            # A minute, because some look after themselves no more than a few times in it.
            databases = [each.database for each in watched]
            statements = count_statements(server, databases, options.size(60.0, 3.0)) or {}
            for each in watched:
                if each.name in found and each.database in statements:
                    found[each.name]["statements"] = statements[each.database]
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
