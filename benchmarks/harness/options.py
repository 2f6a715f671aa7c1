"""The command line: what to measure, on which server, and how thoroughly."""

import argparse
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

__all__ = ["COMMANDS", "OTHER_COMMANDS", "RESULTS", "Options", "parse"]

T = TypeVar("T")

RESULTS = Path(__file__).parents[1] / "results"

COMMANDS = {
    "latency": "how long a job waits: send to handler, idle and under load, and its other waits",
    "throughput": "jobs a second: sends, bulk, drains, steady state, each policy",
    "growth": "what a backlog, an archive, many queues and an old transaction cost",
    "idle": "what a worker costs that has nothing to do",
    "dashboard": "what people who look at the dashboard cost a worker",
    "faults": "how long until a job starts after something broke",
    "peers": "the same work done by nine other queues, and by Postgres without a queue",
    "profile": "where the microseconds of one job go",
    "store": "what the operations and connections below the runtime cost",
}
"""The benchmarks, which `all` runs one after the other. Each is a module with `measure(server, options)`."""

OTHER_COMMANDS = {
    "all": "all benchmarks above, one after the other",
    "compare": "two checkouts of trioboss in the same run",
    "pipeline": "reading, loading and exporting history with Spark",
    "publish": "write the small summary of a stored run",
}


@attrs.frozen(kw_only=True)
class Options:
    """The command line of a benchmark."""

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
    results: Path = RESULTS

    def size(self, full: T, quick: T) -> T:
        """Return the size of a measurement: the full one, or the one of --quick."""
        return quick if self.quick else full

    def includes(self, name: str) -> bool:
        """Whether --only selects this measurement."""
        return not self.only or any(part in name for part in self.only)


def parse(arguments: Sequence[str] | None = None) -> Options:
    """Read the command line of a benchmark."""
    parser = _parser()
    given = vars(parser.parse_args(arguments))
    command = given["command"]
    if given["repeats"] is not None and given["repeats"] < 1:
        parser.error("--repeats: at least 1")
    fields = {field.name for field in attrs.fields(Options)} & set(given)
    chosen: dict[str, Any] = {
        name: _names(value) if name in _LISTS else value for name, value in given.items() if name in fields
    }
    chosen["repeats"] = given["repeats"] or (1 if given["quick"] else 3)
    return Options(commands=tuple(COMMANDS) if command == "all" else (command,), **chosen)


_LISTS = ("only", "peers", "workloads")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure trioboss. Each benchmark prints tables and stores a raw JSON file.",
        epilog="`python -m benchmarks COMMAND -h` explains a command and its options; "
        "benchmarks/README.md explains how to read the figures.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=text,
            description=importlib.import_module(f"benchmarks.{name}").__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_common(command)
        if name == "peers":
            _add_peers(command)
    for name, text in OTHER_COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"Runs {text}." if name == "all" else None)
        if name == "all":
            _add_common(command)
            _add_peers(command)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dsn", help="a Postgres in which databases are created (default: start one)")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, not how fast")
    parser.add_argument(
        "--repeats", type=int, metavar="N", help="rounds; tables show median and range (default: 3)"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="A,B",
        help="only the measurements whose names contain one of these (peers: workloads and queues)",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the result")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, help="folder of the raw JSON files (default: %(default)s)"
    )


def _add_peers(parser: argparse.ArgumentParser) -> None:
    default = Options(commands=())
    parser.add_argument("--peers", default="", metavar="A,B", help="only these queues, by their full names")
    parser.add_argument("--workloads", default="", metavar="L1,T3", help="only these workloads")
    parser.add_argument(
        "--attempts",
        type=int,
        default=1,
        metavar="N",
        help="run up to so often while other processes disturb",
    )
    parser.add_argument("--peer-python", metavar="PYTHON", help="the interpreter for the Python peers")
    cache = Path(os.environ.get("TRIOBOSS_BENCH_CACHE", default.cache))
    parser.add_argument(
        "--cache", type=Path, default=cache, help=f"folder of the installed peers (default: {default.cache})"
    )
    parser.add_argument(
        "--append", type=Path, metavar="FILE.json", help="add to the runs of this file, and show all of them"
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)
