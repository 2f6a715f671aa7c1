"""`trioboss psql`: psql on the database that the other commands use, with an embedded server that runs meanwhile."""

import argparse
import os
import shutil
import signal
import subprocess
from importlib import import_module

from trioboss.cli.opening import open_sync
from trioboss.errors import NoPostgres
from trioboss.postgres.dsn import hide_password, parse_dsn

__all__ = ["run_psql"]


def run_psql(args: argparse.Namespace) -> int:
    """Run psql, interactively or for some statements and files; return its exit code."""
    with open_sync(args) as boss:
        command = [_find_psql(), "--dbname", hide_password(boss.dsn)]
        if args.statements or args.files or args.passed:
            command += ["--set", "ON_ERROR_STOP=1"]  # a script ends at its first error, with exit code 3
        for statement in args.statements or ():
            command += ["--command", statement]
        for file in args.files or ():
            command += ["--file", file]
        command += args.passed
        # In the environment: everybody on the machine can read a command line.
        password = parse_dsn(boss.dsn).get("password")
        secret = {} if password is None else {"PGPASSWORD": str(password)}
        # Ctrl-C is for psql, which cancels its query and goes on.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return subprocess.run(command, env={**os.environ, **secret}, check=False).returncode
        finally:
            signal.signal(signal.SIGINT, before)
    raise AssertionError


def _find_psql() -> str:
    """The psql of the PATH, or the one beside the programs of the embedded server."""
    if found := shutil.which("psql"):
        return found
    folder = import_module("trioboss.postgres.embedded.binaries").find_binaries().folder
    if not (folder / "psql").exists():
        raise NoPostgres(f"psql is neither in the PATH nor in {folder}: install a client of Postgres")
    return str(folder / "psql")
