"""A checkout of trioboss: where it is, which interpreter runs it, and how a program imports it."""

import contextlib
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import attrs

from benchmarks.harness.processes import Program, ProgramFailed, python_module, run_program, started
from benchmarks.harness.progress import log

__all__ = ["THIS_ROOT", "Checkout", "find_python", "open_checkout"]

THIS_ROOT = Path(__file__).parents[2]
_PROGRAM = "benchmarks.programs.compared"
_FILL_TIMEOUT = 900.0


@attrs.define(eq=False)
class Checkout:
    """One side of a comparison.

    Both sides run the benchmark code of this checkout. `folder` has a link to it and a link to the side's own package
    trioboss; programs run there, and Python imports from the working directory first.
    """

    name: str
    root: Path
    python: str
    folder: Path
    versions: dict[str, str] = attrs.field(factory=dict)

    @property
    def commit(self) -> str:
        """The commit, with a mark if files were changed since."""
        found = _git(self.root, "rev-parse", "--short", "HEAD")
        changed = _git(self.root, "status", "--porcelain", "--untracked-files=no", "--", "trioboss")
        return f"{found or 'no commit'}{' with changes' if changed else ''}"

    def fill(self, spec: Mapping[str, Any]) -> None:
        """Run the role `fill`, and check that the program imported this checkout."""
        command = python_module(_PROGRAM, self.python)
        filled = run_program(command, {"role": "fill", **spec}, "done", None, _FILL_TIMEOUT, self.folder)
        expected = (self.root / "trioboss").resolve()
        if Path(filled["trioboss"]) != expected:
            raise ProgramFailed(f"{self.python} imports {filled['trioboss']} instead of {expected}")
        self.versions = filled["versions"]

    def run(self, spec: Mapping[str, Any]) -> AbstractContextManager[Program]:
        """Run another role for the length of a block."""
        return started(python_module(_PROGRAM, self.python), spec, None, self.folder)


def _git(root: Path, *arguments: str) -> str:
    answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return answer.stdout.strip()


@contextlib.contextmanager
def open_checkout(name: str, root: Path, python: str) -> Iterator[Checkout]:
    """Make the folder of a checkout for the length of a block."""
    if not (root / "trioboss" / "__init__.py").exists():
        raise SystemExit(f"{root}: there is no package trioboss")
    with tempfile.TemporaryDirectory(prefix=f"compare-{name}-") as folder:
        Path(folder, "trioboss").symlink_to((root / "trioboss").resolve())
        Path(folder, "benchmarks").symlink_to(THIS_ROOT / "benchmarks")
        yield Checkout(name, root, python, Path(folder))


def find_python(root: Path, given: str | None, cache: Path) -> str:
    """Return the interpreter of another checkout: the given one, that of its .venv, or one made for it."""
    if given is not None:
        # Programs run in another folder. The path is not resolved: a link to the base interpreter has no packages.
        return str(Path(given).absolute()) if "/" in given else given
    if (own := root.absolute() / ".venv" / "bin" / "python").exists():
        return str(own)
    place = cache / f"compare-{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:12]}"
    python = place / "bin" / "python"
    if not python.exists():
        log(f"installing the dependencies of {root.name}")
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", str(root)], check=True)
    return str(python)
