"""The account that runs the server. Postgres refuses to run as root, so for root there are two ways.

In a user namespace the server runs as `nobody` while its files belong to root. No account is needed and no mode is
changed. Where the kernel forbids that (in a container with default rights), an existing account runs the server and
owns the data.
"""

import functools
import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trioboss.errors import NoPostgres

__all__ = ["Account", "Command", "choose_account"]

Command: TypeAlias = Sequence[str | Path]

_USER_NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")


class _Detached(subprocess.Popen[bytes]):
    """A process that outlives this one. Popen would warn if such a process is not waited for."""

    def __del__(self) -> None:
        pass


# Children whose exit status is not collected yet. They would be zombies until we end. Whether a server runs is decided
# by its lock, not by this set.
_children: set[_Detached] = set()


@dataclass(frozen=True)
class Account:
    """Runs programs as the present user, in a user namespace, or as another user."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None  # None: as the present user
    gid: int | None = None

    @property
    def owner(self) -> int:
        """The uid that owns the server's files, outside any namespace."""
        return os.geteuid() if self.uid is None else self.uid

    def run(self, command: Command, *, inherit: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
        """Run a program to its end. It inherits the descriptors in ``inherit``."""
        return subprocess.run(
            [*self.prefix, *command],
            user=self.uid,
            group=self.gid,
            extra_groups=self._extra_groups,
            cwd="/",  # the account may not be able to enter our working directory
            env=_environment(),
            pass_fds=inherit,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def launch(self, command: Command, *, stdin: int, output: int, inherit: Sequence[int] = ()) -> None:
        """Start a program that outlives this process. It inherits the descriptors in ``inherit``."""
        _collect_children()
        child = _Detached(
            [*self.prefix, *command],
            user=self.uid,
            group=self.gid,
            extra_groups=self._extra_groups,
            cwd="/",
            env=_environment(),
            pass_fds=inherit,
            stdin=stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,  # otherwise a ^C in our terminal would stop the server
        )
        _children.add(child)

    @property
    def _extra_groups(self) -> list[int] | None:
        return None if self.uid is None else []

    def can_enter(self, folder: Path) -> bool:
        """Tell whether this account can enter an existing folder."""
        return self.run(["sh", "-c", 'cd "$1"', "sh", folder]).returncode == 0

    def can_run(self, program: Path) -> bool:
        """Tell whether this account can execute a program."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except OSError:
            return False

    def chown(self, path: Path) -> None:
        """Make this account the owner of a file or folder that was just created."""
        if self.uid is not None:
            # Not through a link that another user may have put in its place.
            os.chown(path, self.uid, -1, follow_symlinks=False)


def _collect_children() -> None:
    for child in tuple(_children):
        if child.poll() is not None:
            _children.discard(child)


def _environment() -> dict[str, str]:
    # With the machine's locale messages would be translated, and a missing locale would stop the server from starting.
    return {**os.environ, "LC_ALL": "C"}


def choose_account() -> Account:
    """Return the account that runs the server: the present user, unless that is root."""
    if os.geteuid() != 0:
        return Account()
    if wanted := os.environ.get("TRIOBOSS_PG_USER"):
        return _find_account(wanted)
    if _namespaces_work():
        return Account(prefix=_USER_NAMESPACE)
    return _find_account("postgres", "nobody")


def _find_account(*names: str) -> Account:
    for name in names:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid)
    listed = " or ".join(names)
    raise NoPostgres(
        f"Postgres does not run as root and this machine has no account {listed}: "
        "set TRIOBOSS_PG_USER to an account that may run it, or DATABASE_URL to a server you have"
    )


@functools.cache
def _namespaces_work() -> bool:
    try:
        return subprocess.run([*_USER_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
