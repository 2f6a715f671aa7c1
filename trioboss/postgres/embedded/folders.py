"""The folders of a server: for its data, and a private one for its sockets.

Rule: this module sets the modes of folders that it has created, and never changes those of others.
"""

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path

from trioboss.errors import NoPostgres
from trioboss.postgres.embedded.account import Account

__all__ = ["make_home", "make_socket_folder", "make_temporary_home", "socket_folder_of"]

_LONGEST_SOCKET = 103  # bytes of a socket's path on the strictest system, macOS
_MEMORY = Path("/dev/shm")  # Linux's file system in memory
_MEMORY_NEEDED = 4 << 30  # bytes; /dev/shm has 64 MB in a container, and half of the memory on a machine
_ROOT_HOME = Path("/var/lib/trioboss")  # for a server account that cannot enter root's own home


def make_home(named: Path | None, account: Account) -> Path:
    """Return the folder for the data, created if needed: the named one, TRIOBOSS_HOME, or the default."""
    home = (named or _choose_home(account)).expanduser().resolve()
    if not home.exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(_mode_for(account))
    if account.uid is not None and not account.can_enter(home):
        raise NoPostgres(
            f"the server runs as user {account.uid}, which cannot enter {home}: set TRIOBOSS_HOME to a folder "
            f"that this user can reach, such as {_ROOT_HOME}"
        )
    return home


def make_temporary_home(account: Account, *, durable: bool) -> Path:
    """Return a new folder for temporary data: in memory if it need not be durable and there is enough memory.

    A database consists of hundreds of small files, which some file systems take ten times as long to create and delete.
    """
    parent = None if durable or "TMPDIR" in os.environ or not _has_memory(_MEMORY) else _MEMORY
    home = Path(tempfile.mkdtemp(prefix="trioboss-", dir=parent)).resolve()
    home.chmod(_mode_for(account))
    return home


def _has_memory(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= _MEMORY_NEEDED


def _mode_for(account: Account) -> int:
    # Another account must be able to enter its data directory in there (x), but not to list the folder (r).
    return 0o700 if account.uid is None else 0o711


def _choose_home(account: Account) -> Path:
    if named := os.environ.get("TRIOBOSS_HOME"):
        return Path(named)
    home = _user_data_folder() / "trioboss"
    if account.uid is not None and not account.can_enter(_nearest_existing(home)):
        return _ROOT_HOME
    return home


def _user_data_folder() -> Path:
    if named := os.environ.get("XDG_DATA_HOME"):
        return Path(named)
    try:
        user = Path.home()
    except RuntimeError as error:
        raise NoPostgres(
            "this user has no home directory: set TRIOBOSS_HOME to a folder for the data"
        ) from error
    return user / ("Library/Application Support" if sys.platform == "darwin" else ".local/share")


def _nearest_existing(path: Path) -> Path:
    return path if path.exists() else _nearest_existing(path.parent)


def make_socket_folder(data: Path, account: Account) -> Path:
    """Return a folder for sockets that only the server's owner can enter.

    It is among the temporary files of all users, and another user may have taken its name. Then it gets a random name:
    clients read it from the server's pid file.
    """
    folder = socket_folder_of(data)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        # Otherwise another user may read and replace the sockets in it, or is waiting for clients there.
        if _is_private(folder, account.owner):
            return folder
        folder = Path(tempfile.mkdtemp(prefix="trioboss-", dir=folder.parent))
    account.chown(folder)
    return folder


def socket_folder_of(data: Path) -> Path:
    """Return the usual folder of the sockets, which is the same for the same data: a dsn is valid after a restart.

    The path is short enough for a socket and contains no comma, which separates two hosts in a dsn.
    """
    name = f"trioboss-{os.geteuid()}-{hashlib.sha256(os.fsencode(data)).hexdigest()[:10]}"
    folder = Path(tempfile.gettempdir()).resolve() / name
    fits = len(os.fsencode(folder / ".s.PGSQL.65535")) <= _LONGEST_SOCKET
    return folder if fits and "," not in str(folder) else Path("/tmp", name)


def _is_private(folder: Path, owner: int) -> bool:
    found = folder.lstat()  # not stat: a link may lead to a private folder now and elsewhere later
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o077
