"""The files of one server, all in one folder: the data, and beside it locks, log and password."""

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
_LARGE_LOG = 4 * 1024 * 1024  # bytes; a log of that size makes room for a new one at the next start
_QUOTED_LINES = 15
_WAYS_OUT = (
    "to go on with that data, set TRIOBOSS_PG_BIN to the bin folder of its Postgres version; to move it, use "
    "pg_dump and pg_restore; to begin with nothing, set TRIOBOSS_HOME to another folder"
)


@dataclass(frozen=True)
class Cluster:
    """The data directory of one major version in `home`, and what belongs to it."""

    home: Path
    binaries: Binaries

    @property
    def major(self) -> int:
        """The Postgres version that the data is for."""
        return self.binaries.major

    @property
    def data(self) -> Path:
        """The data directory. Another major version has another one."""
        return self.home / f"pgdata-{self.major}"

    @property
    def users_lock(self) -> Path:
        """Shared by everybody who needs the server."""
        return self.beside("users")

    @property
    def server_lock(self) -> Path:
        """Held by every process of the server, and by whoever starts it."""
        return self.beside("server")

    @property
    def reaper_lock(self) -> Path:
        """Held by the reaper."""
        return self.beside("reaper")

    def beside(self, suffix: str) -> Path:
        """Return a file that belongs to the data directory but is not in it."""
        return self.home / f"{self.data.name}.{suffix}"

    @property
    def log(self) -> Path:
        """What the server has to say."""
        return self.beside("log")

    @property
    def passfile(self) -> Path:
        """The password for TCP connections, as libpq reads it. Through the socket none is needed."""
        return self.beside("pgpass")

    def refuse_foreign_data(self, account: Account) -> None:
        """Raise NoPostgres when there is data that this Postgres, or this account, cannot continue."""
        if not self.data.exists():
            self._refuse_to_start_afresh()
            return
        found = self._read_version()
        if found != str(self.major):
            described = f"data of Postgres {found}" if found else "no Postgres data"
            raise NoPostgres(f"{self.data} holds {described}, but this is Postgres {self.major}: {_WAYS_OUT}")
        owner = self.data.stat().st_uid
        if owner != account.owner:
            raise NoPostgres(
                f"{self.data} belongs to user {owner}, but the server would run as user {account.owner}: "
                "set TRIOBOSS_HOME to a folder of your own"
            )

    def _refuse_to_start_afresh(self) -> None:
        folders = (path for path in self.home.glob("pgdata-*") if not path.suffix)
        others = sorted(path.name for path in folders if (path / "PG_VERSION").exists())
        if others:
            listed = ", ".join(others)
            raise NoPostgres(f"{self.home} holds {listed}, but this is Postgres {self.major}: {_WAYS_OUT}")

    def _read_version(self) -> str:
        try:
            return (self.data / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return ""

    def create(self, programs: Path, account: Account, lock: FileLock, *, durable: bool) -> None:
        """Make the data directory: elsewhere first, so that it is either complete or not there."""
        unfinished = self.beside("unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        account.give(unfinished)
        with self._new_password(account) as pwfile:
            command = self._initdb_command(programs, unfinished, pwfile, durable=durable)
            answer = account.run(command, keep=[lock.fileno()])
        if answer.returncode != 0:
            raise NoPostgres(f"initdb failed in {self.home}: {(answer.stderr or answer.stdout).strip()}")
        unfinished.rename(self.data)
        _sync_folder(self.home)

    @contextlib.contextmanager
    def _new_password(self, account: Account) -> Iterator[Path]:
        password = secrets.token_urlsafe(24)
        _write_secret(self.passfile, f"*:*:*:{SUPERUSER}:{password}\n")
        pwfile = self.beside("password")
        _write_secret(pwfile, password)
        account.give(pwfile)
        try:
            yield pwfile
        finally:
            pwfile.unlink()

    def _initdb_command(self, programs: Path, folder: Path, pwfile: Path, *, durable: bool) -> Command:
        # The builtin provider sorts the same on every machine, and text indexes survive a glibc upgrade.
        builtin = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"] if self.major >= 17 else []
        return [
            programs / "initdb",
            f"--pgdata={folder}",
            f"--username={SUPERUSER}",
            f"--pwfile={pwfile}",
            "--auth-local=trust",  # the socket lies in a folder that only the server's owner can enter
            "--auth-host=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            *builtin,
            "--data-checksums",
            *([] if durable else ["--no-sync"]),
        ]

    def discard_leftovers(self, socket_folder: Path) -> None:
        """Remove what a crashed server left behind. Only for the holder of the server's lock: there is none.

        Postgres itself is deceived by a pid file whose pid belongs to some other program by now.
        """
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for leftover in socket_folder.glob(".s.PGSQL.*"):
            leftover.unlink()

    def open_log(self) -> BinaryIO:
        """Open the log for writing at its end. One that grew large is put aside first."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > _LARGE_LOG:
                self.log.replace(self.beside("log.old"))
        return open(self.log, "ab", opener=_open_private)

    def read_log(self, start: int) -> str:
        """Return the last lines that were written after the first `start` bytes."""
        with self.log.open("rb") as log:
            log.seek(start)
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-_QUOTED_LINES:])


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _write_secret(path: Path, text: str) -> None:
    """Write a file that nobody else can read, not even for a moment."""
    path.unlink(missing_ok=True)
    with open(path, "x", opener=_open_private) as file:
        file.write(text)


def _sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
