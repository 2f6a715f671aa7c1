"""The files of one server in one folder: the data directory, and beside it the locks, the log and the password."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trioboss.errors import NoPostgres
from trioboss.postgres.embedded.account import Account, Command
from trioboss.postgres.embedded.binaries import Binaries
from trioboss.postgres.embedded.locks import FileLock

__all__ = ["SUPERUSER", "Cluster"]

SUPERUSER = "postgres"
_MAX_LOG = 4 * 1024 * 1024  # bytes; a larger log is renamed at the next start
_QUOTED_LINES = 15
_REMEDIES = (
    "to keep using that data, set TRIOBOSS_PG_BIN to the bin folder of its Postgres version; to move it, use "
    "pg_dump and pg_restore; to begin without data, set TRIOBOSS_HOME to another folder"
)


@dataclass(frozen=True)
class Cluster:
    """The data directory of one major version in ``home``, and the files that belong to it."""

    home: Path
    binaries: Binaries

    @property
    def major(self) -> int:
        """The Postgres version that the data is for."""
        return self.binaries.major

    @property
    def data(self) -> Path:
        """The data directory. Each major version has its own."""
        return self.home / f"pgdata-{self.major}"

    @property
    def users_lock(self) -> Path:
        """Held shared by each client of the server."""
        return self.beside("users")

    @property
    def server_lock(self) -> Path:
        """Held by every process of the server, and by the process that starts it."""
        return self.beside("server")

    @property
    def reaper_lock(self) -> Path:
        """Held by the reaper."""
        return self.beside("reaper")

    def beside(self, suffix: str) -> Path:
        """Return the path of a file that belongs to the data directory but is not in it."""
        return self.home / f"{self.data.name}.{suffix}"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.beside("log")

    @property
    def passfile(self) -> Path:
        """The password for TCP connections, in libpq's format. Connections through the socket need none."""
        return self.beside("pgpass")

    def refuse_foreign_data(self, account: Account) -> None:
        """Raise NoPostgres if there is data that this Postgres, or this account, cannot use."""
        if not self.data.exists():
            self._refuse_other_versions()
            return
        found = self._read_version()
        if found != str(self.major):
            described = f"data of Postgres {found}" if found else "no Postgres data"
            raise NoPostgres(f"{self.data} holds {described}, but this is Postgres {self.major}: {_REMEDIES}")
        owner = self.data.stat().st_uid
        if owner != account.owner:
            raise NoPostgres(
                f"{self.data} belongs to user {owner}, but the server would run as user {account.owner}: "
                "set TRIOBOSS_HOME to a folder of your own"
            )

    def _refuse_other_versions(self) -> None:
        # After an upgrade of Postgres a new, empty data directory would look as if all jobs were lost.
        folders = (path for path in self.home.glob("pgdata-*") if not path.suffix)
        others = sorted(path.name for path in folders if (path / "PG_VERSION").exists())
        if others:
            listed = ", ".join(others)
            raise NoPostgres(f"{self.home} holds {listed}, but this is Postgres {self.major}: {_REMEDIES}")

    def _read_version(self) -> str:
        try:
            return (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return ""

    def create(self, programs: Path, account: Account, lock: FileLock, *, durable: bool) -> None:
        """Create the data directory, under another name first, so that it is either complete or missing."""
        unfinished = self.beside("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        account.chown(unfinished)
        with self._new_password(account) as pwfile:
            command = self._initdb_command(programs, unfinished, pwfile, durable=durable)
            # If this process is killed, initdb goes on and keeps the lock: no other process starts a second one.
            answer = account.run(command, inherit=[lock.fileno()])
        if answer.returncode != 0:
            raise NoPostgres(f"initdb failed in {self.home}: {(answer.stderr or answer.stdout).strip()}")
        unfinished.rename(self.data)
        _sync_folder(self.home)  # initdb has synced the files, but not their new parent

    @contextlib.contextmanager
    def _new_password(self, account: Account) -> Iterator[Path]:
        password = secrets.token_urlsafe(24)
        _write_secret(self.passfile, f"*:*:*:{SUPERUSER}:{password}\n")
        pwfile = self.beside("password")
        _write_secret(pwfile, password)
        account.chown(pwfile)
        try:
            yield pwfile
        finally:
            pwfile.unlink()

    def _initdb_command(self, programs: Path, folder: Path, pwfile: Path, *, durable: bool) -> Command:
        # The builtin provider sorts in the same way on every machine, and an upgrade of glibc breaks no text index.
        builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if self.major >= 17 else []
        return [
            programs / "initdb",
            f"--pgdata={folder}",
            f"--username={SUPERUSER}",
            f"--pwfile={pwfile}",
            "--auth-local=trust",  # the socket is in a folder that only the server's owner can enter
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            *builtin,
            "--data-checksums",
            *([] if durable else ["--no-sync"]),
        ]

    def discard_leftovers(self, socket_folder: Path) -> None:
        """Remove the pid file and sockets of a crashed server. The caller holds the server's lock, so none is running.

        Postgres would refuse to start if the pid in such a file has been given to another program since.
        """
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for leftover in socket_folder.glob(".s.PGSQL.*"):
            leftover.unlink()

    def open_log(self) -> BinaryIO:
        """Open the log for appending. A large one is renamed first."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > _MAX_LOG:
                self.log.replace(self.beside("log.old"))
        return open(self.log, "ab", opener=_open_private)

    def read_log(self, start: int) -> str:
        """Return the last lines after the first ``start`` bytes."""
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_QUOTED_LINES:])


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _write_secret(path: Path, text: str) -> None:
    """Write a file that no other user can read at any moment."""
    # A new file with its final mode: chmod after writing would leave a moment in which it is readable.
    path.unlink(missing_ok=True)
    with open(path, "x", opener=_open_private) as file:
        file.write(text)


def _sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
