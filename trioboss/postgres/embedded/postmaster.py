"""The running server as its pid file shows it, and the reaper that stops it once nobody is left.

The reaper runs this file as a script (`python -I -S postmaster.py …`): it starts in milliseconds and stays
small, because nothing of trioboss is imported here. Keep it so.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

__all__ = ["Postmaster", "find_postmaster", "reap"]

POLL = 0.005  # seconds between two looks at something that has no event to wait for
PATIENCE = 60.0  # seconds for a fast shutdown, and as many again for an immediate one


class Postmaster(NamedTuple):
    """The main process of a server that is alive, and where it listens."""

    pid: int
    port: int
    socket_folder: str
    listen_address: str  # empty without TCP
    status: str  # starting, ready, stopping, standby; empty at the very beginning

    @property
    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        return self.status == "ready"


def find_postmaster(data: Path) -> Postmaster | None:
    """Return the server that runs on this data directory, be it still starting; None if there is none."""
    try:
        written = os.fsdecode((data / "postmaster.pid").read_bytes()).splitlines()
        # The file is written bit by bit. A server with half a pid file is one already.
        pid, _, _, port, socket_folder, listen_address, _, status, *_ = written + [""] * 8
        postmaster = Postmaster(int(pid), int(port or 0), socket_folder, listen_address, status.strip())
    except (OSError, ValueError):
        return None
    return postmaster if _runs_on(postmaster.pid, data) else None


def _runs_on(pid: int, data: Path) -> bool:
    """Whether that process is a server of this data directory, not a stranger who got a dead one's pid.

    A server works in its data directory. Where that is hidden (from a root without CAP_SYS_PTRACE, as in
    Docker; on a system without /proc) its command line names the directory.
    """
    if not os.path.exists("/proc/self"):
        return f" -D {data} " in _read_command_from_ps(pid)
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", data)
    except PermissionError:
        return f" -D {data} " in _read_command_from_proc(pid)
    except OSError:  # it has just ended
        return False


def _read_command_from_proc(pid: int) -> str:
    try:
        return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" "))
    except OSError:
        return ""


def _read_command_from_ps(pid: int) -> str:
    listing = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return os.fsdecode(subprocess.run(listing, capture_output=True, check=False).stdout)


def reap(nobody_left: int, server: Path, data: Path, linger: float) -> bool:
    """Wait until nobody shares the lock file open as `nobody_left`, then stop the server of `data`.

    Not bound to one server process: it stops whichever runs on `data` then. Returns whether it is gone, and
    with the lock held: nobody can have joined.
    """
    _wait_until_unused(nobody_left, linger)
    # A fast shutdown leaves nothing to recover; an immediate one is for a server that hangs.
    return _shut_down(server, data, signal.SIGINT) or _shut_down(server, data, signal.SIGQUIT)


def _wait_until_unused(nobody_left: int, linger: float) -> None:
    fcntl.flock(nobody_left, fcntl.LOCK_EX)
    while linger > 0:
        fcntl.flock(nobody_left, fcntl.LOCK_UN)
        time.sleep(linger)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(nobody_left, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(nobody_left, fcntl.LOCK_EX)


def _shut_down(server: Path, data: Path, order: signal.Signals) -> bool:
    """Return whether the server ended in time.

    While its lock is held there is a server, even one whose pid file is not written yet because the process
    that started it was killed a moment ago.
    """
    end = time.monotonic() + PATIENCE
    told: dict[int, str] = {}
    while _is_held(server):
        if time.monotonic() > end:
            return False
        postmaster = find_postmaster(data)
        if postmaster is not None and postmaster.pid not in told:
            told[postmaster.pid] = postmaster.socket_folder
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster.pid, order)
        time.sleep(POLL)
    for socket_folder in told.values():
        with contextlib.suppress(OSError):  # gone already, or not empty: then it is not ours alone
            os.rmdir(socket_folder)
    return True


def _is_held(path: Path) -> bool:
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _main(users: str, server: str, data: str, linger: str, *doomed: str) -> None:
    """Reap, and delete the folders that go with the server. Standard input is the reaper's lock."""
    # The end of its last user is the end of a reaper: ended earlier, it would leave the server behind.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open(users, "ab") as nobody_left:
        if reap(nobody_left.fileno(), Path(server), Path(data), float(linger)):
            for folder in doomed:
                shutil.rmtree(folder, ignore_errors=True)
        os.close(0)  # before the users' lock: whoever gets a share next must see that there is no reaper


if __name__ == "__main__":
    _main(*sys.argv[1:])
