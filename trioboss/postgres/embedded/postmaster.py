"""The running server according to its pid file, and the reaper that stops it when no user is left.

The reaper runs this file as a script (`python -I -S postmaster.py …`). It must not import anything of trioboss, so that
it starts in milliseconds and needs little memory.
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

POLL_INTERVAL = 0.005  # seconds between two checks of a lock, which sends no event
SHUTDOWN_TIMEOUT = 60.0  # seconds for a fast shutdown, and again for an immediate one


class Postmaster(NamedTuple):
    """The main process of a running server, and its addresses."""

    pid: int
    port: int
    socket_folder: str
    listen_address: str  # empty without TCP
    status: str  # starting, ready, stopping, standby; empty until it is written

    @property
    def is_ready(self) -> bool:
        """Whether it accepts connections."""
        return self.status == "ready"


def find_postmaster(data: Path) -> Postmaster | None:
    """Return the server that runs or is starting on this data directory, or None."""
    try:
        written = os.fsdecode((data / "postmaster.pid").read_bytes()).splitlines()
        # Postgres writes the file line by line. A server with an incomplete pid file is running already.
        pid, _, _, port, socket_folder, listen_address, _, status, *_ = written + [""] * 8
        postmaster = Postmaster(int(pid), int(port or 0), socket_folder, listen_address, status.strip())
    except (OSError, ValueError):
        return None
    return postmaster if _runs_on(postmaster.pid, data) else None


def _runs_on(pid: int, data: Path) -> bool:
    """Tell whether that process is a server of this data directory, and not another program with a reused pid.

    The working directory of a server is its data directory. Where it cannot be read (by root without CAP_SYS_PTRACE, as
    in Docker; on a system without /proc), the command line is compared, which contains the directory.
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


def reap(users: int, server: Path, data: Path, linger: float) -> bool:
    """Wait until no client holds the lock file open as descriptor ``users``, then stop the server of ``data``.

    Stops any server that is running on ``data`` by then. Returns whether it has ended. The lock is still held
    exclusively, so no client can have joined.
    """
    _wait_until_unused(users, linger)
    # A fast shutdown leaves nothing to recover. An immediate one is for a server that does not end otherwise.
    return _shut_down(server, data, signal.SIGINT) or _shut_down(server, data, signal.SIGQUIT)


def _wait_until_unused(users: int, linger: float) -> None:
    fcntl.flock(users, fcntl.LOCK_EX)
    while linger > 0:
        # Clients can join while the server lingers. If one has, the time begins again after the last one has left.
        fcntl.flock(users, fcntl.LOCK_UN)
        time.sleep(linger)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        fcntl.flock(users, fcntl.LOCK_EX)


def _shut_down(server: Path, data: Path, number: signal.Signals) -> bool:
    """Send the signal to the server; return whether it ended in time.

    While its lock is held there is a server, even if its pid file is not written yet because the process that started
    it was killed a moment ago.
    """
    end = time.monotonic() + SHUTDOWN_TIMEOUT
    signalled: dict[int, str] = {}
    while _is_held(server):
        if time.monotonic() > end:
            return False
        postmaster = find_postmaster(data)
        if postmaster is not None and postmaster.pid not in signalled:
            signalled[postmaster.pid] = postmaster.socket_folder
            with contextlib.suppress(ProcessLookupError):
                os.kill(postmaster.pid, number)
        time.sleep(POLL_INTERVAL)
    for socket_folder in signalled.values():
        with contextlib.suppress(OSError):  # deleted already, or not empty because another server uses it
            os.rmdir(socket_folder)
    return True


def _is_held(path: Path) -> bool:
    with path.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _main(users_path: str, server: str, data: str, linger: str, *folders: str) -> None:
    """Reap, then delete the folders. Standard input is the reaper's lock."""
    # A reaper that ended before the last user would leave the server running for ever.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with open(users_path, "ab") as users:
        if reap(users.fileno(), Path(server), Path(data), float(linger)):
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)
        # Releases the reaper's lock before that of the users: the next client must see that there is no reaper.
        os.close(0)


if __name__ == "__main__":
    _main(*sys.argv[1:])
