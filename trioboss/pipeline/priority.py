"""Background work gives way: it runs on what cores have left over."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["add_nice_argument", "give_way", "give_way_as_told"]

_NICE = 19

_GROUP = Path("/proc/self/autogroup")
"""Linux weighs sessions against each other first, and processes only within one."""

_NUDGE = 0.00025  # seconds from one nudge of a core to the next; they take 6 % of it
_MANY = 8  # cores from which on each is nudged less often: the nudges of all take turns in one interpreter


def add_nice_argument(parser: argparse.ArgumentParser) -> None:
    """Describe the argument to the parser."""
    parser.add_argument(
        "--nice",
        type=int,
        choices=range(20),
        default=_NICE,
        metavar="0-19",
        help=f"how far Spark on this machine gives way to other processes (default {_NICE})",
    )


def give_way_as_told(arguments: Sequence[str]) -> None:
    """Give way as the arguments of a command say, before they are all understood. Mistakes are left for then."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_nice_argument(parser)
    with suppress(argparse.ArgumentError):
        give_way(parser.parse_known_args(arguments)[0].nice)


def give_way(niceness: int) -> None:
    """Be at least so nice (0 to 19), with all that is started from now on: Java, and the workers of Spark.

    A session that is all ours, as one of cron's is, becomes as nice as a whole; one shared with a shell does not.
    Whoever is nice at all also nudges the cores: Linux often leaves somebody who has just woken up behind a process
    that runs, however nice that is, until the next tick (4 ms on many machines), even if another core has become free.
    """
    if niceness and sys.platform == "linux":
        _nudge_cores()
    reached = os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _GROUP.write_text(str(reached))


def _nudge_cores() -> None:
    """The threads that do so stay as they are: who is nice is nice by thread, and these have to come first."""
    cores = os.sched_getaffinity(0)
    pause = _NUDGE * max(1.0, len(cores) / _MANY)
    for core in cores:
        name = f"nudge core {core}"
        if all(thread.name != name for thread in threading.enumerate()):
            threading.Thread(target=_nudge, args=(core, pause), name=name, daemon=True).start()


def _nudge(core: int, pause: float) -> None:
    """Wake up again and again, for nothing but that: each time the core looks who else waits for it."""
    os.sched_setaffinity(0, {core})
    while True:
        time.sleep(pause)
