"""The command line: what to measure, where, and how thoroughly."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import attrs

__all__ = ["COMMANDS", "Options", "parse"]

T = TypeVar("T")

COMMANDS = {
    "latency": "from send to handler: idle, under load, and every other wait of a job",
    "throughput": "jobs a second: sending, bulk, draining, steady state, each policy",
    "growth": "what a backlog, an archive, many queues and old transactions cost (also: backlog)",
    "idle": "what a worker costs that has nothing to do",
    "faults": "how long until a job starts after something broke",
    "peers": "the same work done by other queues, and by plain psycopg and pgbench",
    "profile": "where the microseconds of one job go",
    "store": "the statements and connections below, and what a job costs in Python",
}
_ALIASES = {"backlog": "growth"}


@attrs.frozen(kw_only=True)
class Options:
    """What the user wants."""

    commands: tuple[str, ...]
    dsn: str | None = None
    quick: bool = False
    repeats: int = 1
    attempts: int = 1
    plot: Path | None = None
    only: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    cache: Path = Path("~/.cache/trioboss-benchmarks").expanduser()
    peer_python: str | None = None
    append: Path | None = None
    results: Path = Path(__file__).parents[1] / "results"

    def size(self, full: T, quick: T) -> T:
        """How much of something: as much as is needed, or as little as shows that it works."""
        return quick if self.quick else full

    def wants(self, name: str) -> bool:
        """Whether this measure is to be taken."""
        return not self.only or any(part in name for part in self.only)


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line."""
    parser = _parser()
    found = parser.parse_args(arguments)
    command = _ALIASES.get(found.command, found.command)
    if found.repeats is not None and found.repeats < 1:
        parser.error("--repeats: at least 1")
    return Options(
        commands=tuple(COMMANDS) if command == "all" else (command,),
        dsn=found.dsn,
        quick=found.quick,
        repeats=found.repeats or (1 if found.quick else 3),
        attempts=max(1, found.attempts),
        plot=found.plot,
        only=_names(found.only),
        peers=_names(found.peers),
        workloads=_names(found.workloads),
        cache=found.cache,
        peer_python=found.peer_python,
        append=found.append,
        results=found.results,
    )


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {name:<11} {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Measure trioboss. Each command prints a table and keeps a JSON file.\n\n{listed}\n"
        "  all         everything above\n"
        "  chaos       what breaks when everything breaks (options of its own: chaos -h)",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=(*COMMANDS, *_ALIASES, "all"), metavar="COMMAND")
    parser.add_argument("--dsn", help="a Postgres to make databases in (default: one of our own)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, not how fast")
    parser.add_argument("--repeats", type=int, help="measure so often, show median and range (default: 3)")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw what was measured")
    parser.add_argument(
        "--only",
        default="",
        metavar="A,B",
        help="only those whose name contains one of these (peers: workloads and queues)",
    )
    parser.add_argument("--peers", default="", metavar="A,B", help="peers: only these")
    parser.add_argument("--workloads", default="", metavar="L1,T3", help="peers: only these workloads")
    parser.add_argument(
        "--attempts", type=int, default=1, help="peers: run again so often while others disturb it"
    )
    parser.add_argument("--peer-python", metavar="PYTHON", help="peers: the interpreter for the Python peers")
    default = Options(commands=())
    cache = Path(os.environ.get("TRIOBOSS_BENCH_CACHE", default.cache))
    parser.add_argument(
        "--cache", type=Path, default=cache, help=f"peers are installed here (default: {default.cache})"
    )
    parser.add_argument(
        "--append",
        type=Path,
        metavar="FILE.json",
        help="peers: add to the runs of this file, and show them all",
    )
    parser.add_argument("--results", type=Path, default=default.results, help="folder of the JSON files")
    return parser


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
