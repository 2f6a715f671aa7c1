"""A small disk in memory for the data of a run, so that a fault can fill it."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from trioboss.postgres.embedded.account import choose_account

__all__ = ["mount_small_disk", "move_to_disk"]

_SPACE = "small"


@contextlib.contextmanager
def mount_small_disk(folder: Path, gigabytes: int, log: Callable[[str], None]) -> Iterator[Path | None]:
    """Mount a small disk for the length of the block; None, and a line in the log, if that is not possible here."""
    disk = folder / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={gigabytes}g,mode=0700", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(command, check=False, capture_output=True).returncode:
        log("no disk can be mounted here: the fault disk_full is left out")
        yield None
        return
    try:
        choose_account().chown(disk)
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=False)  # the server may still be stopping


def move_to_disk(server_dsn: str, dsn: str, disk: Path) -> Path:
    """Move a database to the disk; return the folder of its tablespace."""
    space, name = disk / _SPACE, conninfo_to_dict(dsn)["dbname"]
    space.mkdir(mode=0o700)
    choose_account().chown(space)
    with psycopg.connect(server_dsn, autocommit=True) as connection:
        connection.execute(
            sql.SQL("create tablespace {} location {}").format(
                sql.Identifier(_SPACE), sql.Literal(str(space))
            )
        )
        connection.execute(
            sql.SQL("alter database {} set tablespace {}").format(
                sql.Identifier(str(name)), sql.Identifier(_SPACE)
            )
        )
    return space
