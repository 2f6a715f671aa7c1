"""The program's side of the exchange with the harness. Standard library only: other queues' interpreters import it.

The first line on standard input is the specification: a JSON object that says what the program does. Each further
line is a command. The program answers with lines on standard output, each a JSON object with an `event`. It ends
when standard input is closed.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Spec", "cpu_seconds", "emit", "handle_commands", "now", "read_spec"]

Spec = dict[str, Any]

_LOCK = threading.Lock()


def now() -> float:
    """Seconds of CLOCK_MONOTONIC: the same clock in all processes of one machine, and in Node's hrtime."""
    return time.monotonic()


def read_spec() -> Spec:
    """Read the specification of this program."""
    spec: Spec = json.loads(sys.stdin.readline())
    return spec


def emit(event: str, **values: Any) -> None:
    """Send an event to the harness."""
    line = json.dumps({"event": event, **values}) + "\n"
    with _LOCK:  # a long line takes several writes, and two threads emit
        sys.stdout.write(line)
        sys.stdout.flush()


def cpu_seconds() -> float:
    """User and system time of this process and of the children it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def handle_commands(handle: Callable[[Spec], None]) -> None:
    """Call `handle` with each command, in a thread; end the process when standard input is closed.

    The process ends without any clean-up, because closing pools is not part of a measurement.
    """

    def read() -> None:
        for line in sys.stdin:
            handle(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
