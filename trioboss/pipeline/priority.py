"""Background work gives way: it runs on what cores have left over."""

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

__all__ = ["give_way"]

_GROUP = Path("/proc/self/autogroup")
"""Linux weighs sessions against each other first, and processes only within one."""

_NUDGE = 0.0005  # seconds from one nudge of a core to the next; they take 3 to 6 % of it
_MANY = 8  # cores from which on each is nudged less often: the nudges of all take turns in one interpreter


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
        threading.Thread(target=_nudge, args=(core, pause), name=f"nudge core {core}", daemon=True).start()


def _nudge(core: int, pause: float) -> None:
    """Wake up again and again, for nothing but that: each time the core looks who else waits for it."""
    os.sched_setaffinity(0, {core})
    while True:
        time.sleep(pause)
