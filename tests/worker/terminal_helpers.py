"""A process on a terminal of its own, with a person who reads and types."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from contextlib import contextmanager

from worker_helpers import HERE, TIMEOUT

CONTROL_C = "\x03"
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def rows_of(raw, columns):
    """The rows of a terminal after this was written: long lines wrap, and only the row of the cursor is cleared."""
    rows, column = [""], 0
    for part in re.findall(rf"{_ESCAPE.pattern}|.", raw, re.DOTALL):
        if part == "\x1b[2K":
            rows[-1] = " " * column
        elif part == "\r":
            column = 0
        elif part == "\n":
            rows.append("")
            column = 0
        elif not part.startswith("\x1b"):
            if column == columns:
                rows.append("")
                column = 0
            rows[-1] = rows[-1][:column] + part + rows[-1][column + 1 :]
            column += 1
    return [row.rstrip() for row in rows]


class Terminal:
    """The text on the screen, in the order in which it was written."""

    def __init__(self, process, master):
        self.process = process
        self._master = master
        self.raw = ""

    @property
    def text(self):
        """Everything that was written, without escape sequences."""
        return _ESCAPE.sub("", self.raw)

    def reads(self, *parts, times=1):
        """Wait until each of these texts was written so many times."""
        deadline = time.monotonic() + TIMEOUT
        while any(self.text.count(part) < times for part in parts):
            assert time.monotonic() < deadline, self.text
            assert self._read(deadline), self.text
        return self.text

    def _read(self, deadline):
        """Read what is there, or wait for it; False at the end."""
        ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            return True
        try:
            chunk = os.read(self._master, 65536)
        except OSError:  # the process has ended
            return False
        self.raw += chunk.decode(errors="replace")
        return bool(chunk)

    def types(self, keys):
        os.write(self._master, keys.encode())

    def ends(self):
        """Wait until the process has ended; return its exit code."""
        deadline = time.monotonic() + TIMEOUT
        while self._read(deadline):
            assert time.monotonic() < deadline, self.text
        return self.process.wait(TIMEOUT)


def _take_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def on_terminal(*arguments, columns=200, lines=60, **environment):
    """Run `trioboss` with these arguments on a terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "trioboss", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=HERE,
        env={**os.environ, "TERM": "xterm", **environment},
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(master)
