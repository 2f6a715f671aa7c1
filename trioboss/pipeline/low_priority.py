"""Runs background work at a low priority, so that it takes the cores' time that other processes leave."""

import argparse
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["add_priority_argument", "lower_priority", "lower_priority_early"]

_LOWEST = 19

_AUTOGROUP = Path("/proc/self/autogroup")
"""Linux weighs sessions against each other first, and processes only within a session."""


def add_priority_argument(parser: argparse.ArgumentParser) -> None:
    """Describe the argument to the parser."""
    parser.add_argument(
        "--nice",
        type=int,
        choices=range(20),
        default=_LOWEST,
        metavar="0-19",
        help=f"the nice value of Spark on this machine (default {_LOWEST})",
    )


def lower_priority_early(arguments: Sequence[str]) -> None:
    """Lower the priority by the arguments of a command, before the command's modules are imported.

    The imports alone take a second of a core. Mistakes in the arguments are reported by the command later.
    """
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_priority_argument(parser)
    with suppress(argparse.ArgumentError):
        lower_priority(parser.parse_known_args(arguments)[0].nice)


def lower_priority(niceness: int) -> None:
    """Give this process, and those it starts (Java and Spark's workers), at least this nice value, 0 to 19.

    If the process leads a session, as one that cron started does, the session gets it, too. A session that a shell
    leads is not changed.
    """
    reached = os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _AUTOGROUP.write_text(str(reached))
