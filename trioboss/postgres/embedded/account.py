"""As whom the server runs. Postgres refuses root, so for root there are two ways.

A user namespace: the server believes to be `nobody` while its files stay root's. No account is needed and no
mode is changed. Where the kernel forbids that (a container with default rights): an existing account, which
then owns the data.
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

_IN_A_NAMESPACE = ("unshare", "--user", "--map-user=65534", "--map-group=65534", "--")


class _Detached(subprocess.Popen[bytes]):
    """A process meant to outlive this one, so forgetting it is no leak to warn about."""

    def __del__(self) -> None:
        pass


# Children of ours whose end is not collected yet. Whether a server lives is told by its lock, not by these.
_children: set[_Detached] = set()


@dataclass(frozen=True)
class Account:
    """Runs programs as ourselves, or as the server's user."""

    prefix: tuple[str, ...] = ()
    uid: int | None = None  # the account to become; None: stay who we are
    gid: int | None = None

    @property
    def owner(self) -> int:
        """Who owns the server's files, seen from here."""
        return os.geteuid() if self.uid is None else self.uid

    def run(self, command: Command, *, keep: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
        """Run a program to its end; it inherits the descriptors in `keep`."""
        return subprocess.run(
            [*self.prefix, *command],
            user=self.uid,
            group=self.gid,
            extra_groups=self._extra_groups,
            cwd="/",  # the account may not be allowed where we are
            env=_environment(),
            pass_fds=keep,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def launch(self, command: Command, *, stdin: int, output: int, keep: Sequence[int] = ()) -> None:
        """Start a program that outlives us; it inherits the descriptors in `keep`."""
        _collect_children()
        child = _Detached(
            [*self.prefix, *command],
            user=self.uid,
            group=self.gid,
            extra_groups=self._extra_groups,
            cwd="/",
            env=_environment(),
            pass_fds=keep,
            stdin=stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,  # a ^C in our terminal is not for the server
        )
        _children.add(child)

    @property
    def _extra_groups(self) -> list[int] | None:
        return None if self.uid is None else []

    def can_enter(self, folder: Path) -> bool:
        """Whether this account gets into a folder that exists."""
        return self.run(["sh", "-c", 'cd "$1"', "sh", folder]).returncode == 0

    def can_run(self, program: Path) -> bool:
        """Whether this account can execute a program."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except OSError:
            return False

    def give(self, path: Path) -> None:
        """Make this account the owner of something we have just made."""
        if self.uid is not None:
            os.chown(path, self.uid, -1, follow_symlinks=False)


def _collect_children() -> None:
    for child in tuple(_children):
        if child.poll() is not None:
            _children.discard(child)


def _environment() -> dict[str, str]:
    # The machine's locale must not decide how messages read, nor whether the server starts at all.
    return {**os.environ, "LC_ALL": "C"}


def choose_account() -> Account:
    """Return who runs the server: we do, unless we are root."""
    if os.geteuid() != 0:
        return Account()
    if wanted := os.environ.get("TRIOBOSS_PG_USER"):
        return _find_account(wanted)
    if _namespaces_work():
        return Account(prefix=_IN_A_NAMESPACE)
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
        return subprocess.run([*_IN_A_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
