"""Which queues take part, in what, and compared with whom."""

import importlib.util
from pathlib import Path

import pytest

import benchmarks.adapters
from benchmarks.adapters.aims import AIMS
from benchmarks.adapters.catalogue import CATALOGUE, WORKLOADS, Package, Peer
from benchmarks.adapters.install import Installer, NotInstallable
from benchmarks.adapters.peerbench.__main__ import add_to
from benchmarks.adapters.workloads import ALL, rivals_of
from benchmarks.harness.options import parse
from benchmarks.peers import choose

FOLDER = Path(str(benchmarks.adapters.__file__)).parent
PEERS = {peer.name: peer for peer in CATALOGUE}


def rivals(name: str, workload: str) -> set[str]:
    return {peer.name for peer in rivals_of(PEERS[name], workload)}


def test_every_peer_that_was_asked_for_is_there():
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
    assert (FOLDER / "node" / peer.program if is_node else FOLDER / f"{peer.program}.py").exists()
    assert peer.workloads <= set(WORKLOADS)
    for workload in (ALL[name] for name in peer.workloads):
        if workload.uses:
            assert getattr(peer, workload.uses)


def test_python_peers_are_pinned_and_do_not_become_dependencies_of_ours():
    for package in (peer.package for peer in CATALOGUE if peer.package is not None):
        assert "==" in package.requirements[0] or package.requirements[0].count("@") == 1
    assert importlib.util.find_spec("pgqueuer") is None


def test_who_keeps_its_jobs_is_compared_with_those_that_keep_something():
    assert "graphile-batched" in rivals("trioboss-batched-lean", "T3")
    assert "graphile-batched" not in rivals("trioboss-batched", "T3")
    assert "pg-boss-notify" in rivals("trioboss-batched", "T3")


def test_batched_is_never_compared_with_unbatched():
    assert rivals("trioboss", "T3") == {"procrastinate", "graphile-default"}


def test_where_nothing_is_drained_everybody_is_a_rival():
    assert rivals("trioboss", "L1") == {name for name in PEERS if not name.startswith("trioboss")}


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.work)
def test_an_aim_is_about_something_that_is_measured(aim: object):
    workload = ALL[aim.workload]
    assert aim.workload in PEERS[aim.ours].workloads
    assert any(metric.key == aim.key for metric in workload.metrics)


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
        Installer(tmp_path).contender(broken_peer(package))


def test_a_peer_whose_installer_is_not_there_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotInstallable, match="npm"):
        Installer(tmp_path).contender(broken_peer(Package("it", ("it@1",), "npm")))


def test_our_adapter_is_added_to_the_other_harness_once(tmp_path: Path):
    (tmp_path / "adapters").mkdir()
    (tmp_path / "peers.py").write_text("PEERS = {}\n")
    add_to(tmp_path)
    once = (tmp_path / "peers.py").read_text()
    add_to(tmp_path)
    assert (tmp_path / "peers.py").read_text() == once
    assert (tmp_path / "adapters/trioboss_adapter.py").exists()


@pytest.mark.parametrize(
    ("option", "names"), [("--peers", "graphile"), ("--workloads", "L9"), ("--only", "T3,rabbit")]
)
def test_a_name_that_nobody_has_is_an_error_and_not_nobody(option, names):
    with pytest.raises(SystemExit, match=f"{option}: '{names.rpartition(',')[2]}' is none of"):
        choose(parse(["peers", option, names]))
