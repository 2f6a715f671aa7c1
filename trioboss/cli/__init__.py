"""The command line: parse, call, print. No decision is made here.

commands  the parser, how a command is run, and what a user's mistake looks like
admin     the commands that are one call on a boss
worker    `trioboss worker`: signals, and several processes
health    `trioboss worker --health`: probes and metrics over HTTP
database_metrics  metrics that the database has to be asked for
logs      `trioboss worker`: log lines for people, or as JSON
loading   finds the app that MODULE:APP names
demo      `trioboss demo`
dashboard  `trioboss dashboard`, and the dashboard beside a worker
doctor    `trioboss doctor`
grants    `trioboss grants`
pipeline  `trioboss pipeline`
opening   how a command opens its boss
output    tables, JSON and error messages
"""

import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:2] == ["pipeline", "archive"]:
        # Before anything else is imported: the imports alone would delay other processes.
        import_module("trioboss.pipeline.low_priority").lower_priority_early(given[2:])
    code: int = import_module("trioboss.cli.commands").run(given)
    return code
