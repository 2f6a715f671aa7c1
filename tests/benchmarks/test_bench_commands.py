"""The command line of the benchmarks: help, errors, and two small measurements."""

import importlib
import json
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import main
from benchmarks.harness.environment import describe
from benchmarks.harness.options import COMMANDS, OTHER_COMMANDS, parse
from benchmarks.harness.server import Server, open_server, run_sql


def read_help(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments, "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_help_lists_every_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    text = read_help(monkeypatch, capsys)
    assert all(name in text for name in (*COMMANDS, *OTHER_COMMANDS))


@pytest.mark.parametrize("command", [*COMMANDS, "all"])
def test_every_benchmark_has_a_help_with_its_options(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    text = read_help(monkeypatch, capsys, command)
    assert all(name in text for name in ("--dsn", "--plot", "--quick", "--only", "--repeats"))
    assert ("--append" in text) == (command in ("peers", "all"))


@pytest.mark.parametrize("command", ["compare", "pipeline", "publish"])
def test_commands_with_their_own_options_have_a_help(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    if command == "pipeline":
        pytest.importorskip("pyspark")
    assert f"usage: python -m benchmarks {command}" in read_help(monkeypatch, capsys, command)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_benchmark_is_a_module_that_measures(command: str):
    assert callable(importlib.import_module(f"benchmarks.{command}").measure)


def test_all_runs_every_benchmark():
    assert parse(["all"]).commands == tuple(COMMANDS)


@pytest.mark.parametrize("arguments", [["nonsense"], [], ["latency", "--repeats", "0"]])
def test_wrong_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2


def test_a_quick_run_is_one_round_and_a_full_one_is_three():
    assert parse(["latency", "--quick"]).repeats == 1
    assert parse(["latency"]).repeats == 3


def test_a_result_contains_neither_passwords_nor_paths(server_dsn: str, monkeypatch: pytest.MonkeyPatch):
    arguments = ["latency", "--dsn", "postgresql://u:secret@h/d", "--results=/home/me", "--quick"]
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    command = describe(Server(server_dsn))["command"]
    assert command == "python -m benchmarks latency --dsn … --results=… --quick"


def test_the_cpu_of_a_server_on_this_machine_is_not_counted_as_noise(server_dsn: str):
    postmaster = Server(server_dsn).postmaster
    assert postmaster is not None
    assert Path(f"/proc/{postmaster}/comm").read_text().strip() == "postgres"


@pytest.mark.parametrize(
    "conninfo", ["dbname=a user=u host=/tmp/x port=7", "postgresql://u@/a?host=/tmp/x&port=7"]
)
def test_a_dsn_may_have_any_form(conninfo: str):
    with open_server(conninfo) as server:
        assert server.name(server._dsn_of("b")) == "b"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
    assert main() == 0


def read_result(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*.json")
    return dict(json.loads(path.read_text()))


def test_latency_is_measured_printed_stored_and_drawn(
    server_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    plot = tmp_path / "plot.svg"
    options = [
        "--quick",
        "--only",
        "idle",
        "--dsn",
        server_dsn,
        "--results",
        str(tmp_path),
        "--plot",
        str(plot),
    ]
    run(monkeypatch, "latency", *options)
    result = read_result(tmp_path)
    (row,) = result["tables"][0]["rows"]
    assert row[0].startswith("send → handler, idle")
    assert row[1] == 60
    assert 0 < row[2] <= row[-1]
    assert {"machine", "versions", "postgres_settings"} <= set(result["environment"])
    assert "### Latency, ms" in capsys.readouterr().out
    ElementTree.parse(plot)


def test_throughput_is_measured_and_leaves_nothing_in_the_server(
    server_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = run_sql(server_dsn, "select datname from pg_database order by 1")
    options = ["--quick", "--dsn", server_dsn, "--results", str(tmp_path)]
    run(monkeypatch, "throughput", "--only", "one after the other", *options)
    rows = {row[0]: row[2]["median"] for row in read_result(tmp_path)["tables"][0]["rows"]}
    assert rows["send, one after the other"] > 0
    assert run_sql(server_dsn, "select datname from pg_database order by 1") == before
