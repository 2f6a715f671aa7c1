"""Background work gives way: it runs on what cores have left over, and leaves some of them alone."""

import os
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["give_way"]

_GROUP = Path("/proc/self/autogroup")
"""Linux weighs sessions against each other first, and processes only within one."""


def give_way(niceness: int) -> None:
    """Be at least so nice (0 to 19), with all that is started from now on: Java, and the workers of Spark.

    A session that is all ours, as one of cron's is, becomes as nice as a whole; one shared with a shell does not.
    Whoever is nice at all also keeps to half of the cores: on a core that is busy others wait for milliseconds before
    they get it, however nice its process is.
    """
    reached = os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):
            _GROUP.write_text(str(reached))
    if niceness and sys.platform == "linux":
        cores = sorted(os.sched_getaffinity(0))
        with suppress(OSError):
            os.sched_setaffinity(0, cores[len(cores) // 2 :])
