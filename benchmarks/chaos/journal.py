"""What a process did, line by line, in a file that outlives it.

Times are of CLOCK_MONOTONIC: one clock for all processes of a machine, which no nemesis can set.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Entry", "Journal", "read_journals"]

Entry = dict[str, Any]


class Journal:
    """The journal of one process."""

    def __init__(self, folder: Path | str, who: str) -> None:
        self.who = who
        path = Path(folder, f"{who}.{os.getpid()}.jsonl")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, what: str, **values: Any) -> None:
        """One line by one system call: it is there completely or not at all, whatever happens to us next."""
        entry = {"at": time.monotonic(), "who": self.who, "what": what, **values}
        os.write(self._file, json.dumps(entry, default=str).encode() + b"\n")


def read_journals(folder: Path) -> list[Entry]:
    """Everything that was written down, in the order in which it happened."""
    return sorted(_entries(folder), key=lambda entry: entry["at"])


def _entries(folder: Path) -> Iterator[Entry]:
    for path in folder.glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            yield json.loads(line)
