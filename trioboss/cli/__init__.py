"""The command line: parse, call, print. No logic lives here.

commands  what there is, and what a mistake looks like
output    tables and JSON
worker    `trioboss worker`: signals, processes, logs
health    probes and metrics over HTTP
demo      `trioboss demo`
doctor    `trioboss doctor`
admin     everything that is one call
grants    `trioboss grants`
pipeline  `trioboss pipeline`
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
