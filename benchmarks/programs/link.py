"""The side of a program that speaks with the harness. Only the standard library: peers' interpreters run it, too.

The first line on standard input says what to do; each further one is a command. Answers are lines on standard
output, each a JSON object with an `event`. When standard input ends, so does the program.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Spec", "cpu_seconds", "emit", "follow", "now", "read_spec"]

Spec = dict[str, Any]

_LOCK = threading.Lock()


def now() -> float:
    """Seconds of CLOCK_MONOTONIC: the same clock in all processes of one machine, and in Node's hrtime."""
    return time.monotonic()


def read_spec() -> Spec:
    """What this program is to do."""
    spec: Spec = json.loads(sys.stdin.readline())
    return spec


def emit(event: str, **values: Any) -> None:
    """Tell the harness something."""
    line = json.dumps({"event": event, **values}) + "\n"
    with _LOCK:  # a long line is several writes
        sys.stdout.write(line)
        sys.stdout.flush()


def cpu_seconds() -> float:
    """User and system time of this process and of the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def follow(obey: Callable[[Spec], None]) -> None:
    """Obey the harness's commands in a thread; leave at once when it has no more.

    Tearing down pools is no part of any measurement.
    """

    def read() -> None:
        for line in sys.stdin:
            obey(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
