"""Which queues are run, on which workloads, and which peers trioboss is compared with."""

import importlib.util
from pathlib import Path

import pytest

import benchmarks.adapters
from benchmarks.harness.options import parse
from benchmarks.peer_comparison.catalogue import CATALOGUE, WORKLOADS, Package, Peer
from benchmarks.peer_comparison.install import NODE_PROGRAMS, Installer, NotInstallable
from benchmarks.peer_comparison.targets import TARGETS
from benchmarks.peer_comparison.workloads import ALL, comparable_peers
from benchmarks.peers import choose

FOLDER = Path(str(benchmarks.adapters.__file__)).parent
PEERS = {peer.name: peer for peer in CATALOGUE}


def peers_of(name: str, workload: str) -> set[str]:
    return {peer.name for peer in comparable_peers(PEERS[name], workload)}


def test_the_catalogue_has_every_peer_of_the_readme():
    assert {
        "procrastinate",
        "pgqueuer-asyncpg",
        "pgqueuer-psycopg",
        "oban",
        "chancy",
        "pg-boss-poll",
        "pg-boss-notify",
        "graphile-default",
        "graphile-batched",
    } <= set(PEERS)
    assert len(PEERS) == len(CATALOGUE)


@pytest.mark.parametrize("peer", CATALOGUE, ids=lambda peer: peer.name)
def test_a_peer_has_a_program_and_settings_for_what_it_takes_part_in(peer: Peer):
    is_node = peer.package is not None and peer.package.kind == "npm"
    assert (NODE_PROGRAMS / peer.program if is_node else FOLDER / f"{peer.program}.py").exists()
    assert peer.workloads <= set(WORKLOADS)
    for workload in (ALL[name] for name in peer.workloads):
        if workload.uses:
            assert getattr(peer, workload.uses)


def test_python_peers_are_pinned_and_do_not_become_dependencies_of_ours():
    for package in (peer.package for peer in CATALOGUE if peer.package is not None):
        assert "==" in package.requirements[0] or package.requirements[0].count("@") == 1
    assert importlib.util.find_spec("pgqueuer") is None


def test_a_queue_that_keeps_history_is_compared_with_peers_that_keep_some():
    assert "graphile-batched" in peers_of("trioboss-batched-lean", "T3")
    assert "graphile-batched" not in peers_of("trioboss-batched", "T3")
    assert "pg-boss-notify" in peers_of("trioboss-batched", "T3")


def test_batched_is_never_compared_with_unbatched():
    assert peers_of("trioboss", "T3") == {"procrastinate", "graphile-default"}


def test_workloads_other_than_drains_are_compared_with_all_peers():
    assert peers_of("trioboss", "L1") == {name for name in PEERS if not name.startswith("trioboss")}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.work)
def test_a_target_is_about_a_measured_value(target: object):
    workload = ALL[target.workload]
    assert target.workload in PEERS[target.ours].workloads
    assert any(metric.key == target.key for metric in workload.metrics)


def test_only_chooses_workloads_by_name_and_queues_by_a_part_of_it():
    workloads, peers = choose(parse(["peers", "--only", "T3,L1,graphile"]))
    assert workloads == ["L1", "T3"]
    assert [peer.name for peer in peers] == ["graphile-default", "graphile-batched"]


def test_without_a_choice_everything_is_run():
    workloads, peers = choose(parse(["peers"]))
    assert workloads == list(ALL)
    assert tuple(peers) == CATALOGUE


def broken_peer(package: Package) -> Peer:
    return Peer("it", "it", package, {}, {}, False, "jobs")


def test_a_peer_that_needs_a_newer_python_is_reported(tmp_path: Path):
    package = Package("it", ("it==1",), oldest_python=(99, 0))
    with pytest.raises(NotInstallable, match=r"needs Python 99\.0"):
        Installer(tmp_path).program(broken_peer(package))


def test_a_peer_whose_installer_is_missing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstallable, match="npm"):
        Installer(tmp_path).program(broken_peer(Package("it", ("it@1",), "npm")))


@pytest.mark.parametrize(
    ("option", "names"), [("--peers", "graphile"), ("--workloads", "L9"), ("--only", "T3,rabbit")]
)
def test_an_unknown_name_is_an_error(option, names):
    with pytest.raises(SystemExit, match=f"{option}: '{names.rpartition(',')[2]}' is none of"):
        choose(parse(["peers", option, names]))
