"""The actions of a process, line by line, in a file that survives the process.

Times are of CLOCK_MONOTONIC: all processes of a machine share it, and no fault can set it.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Entry", "Journal", "entries_of", "read_journals"]

Entry = dict[str, Any]


class Journal:
    """The journal of one process."""

    def __init__(self, folder: Path | str, process: str) -> None:
        self.process = process
        path = Path(folder, f"{process}.{os.getpid()}.jsonl")
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, event: str, **values: Any) -> None:
        """Write one line by one system call. A kill may leave a part of it: a write that reaches into another page of
        the file can end between two pages. Readers leave that part out: nothing follows what a process wrote last.
        """
        entry = {"at": time.monotonic(), "process": self.process, "event": event, **values}
        os.write(self._file, json.dumps(entry, default=str).encode() + b"\n")


def read_journals(folder: Path) -> list[Entry]:
    """Return the entries of all processes, in the order of their times."""
    return sorted(entries_of(folder), key=lambda entry: entry["at"])


def entries_of(folder: Path) -> Iterator[Entry]:
    """Yield the entries of all processes, one process after the other."""
    for path in folder.glob("*.jsonl"):
        with path.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    yield json.loads(line)
