"""Applies one mutant of trioboss at a time, and shows which test finds it.

    python tests/mutants/apply.py            # all of mutants.toml
    python tests/mutants/apply.py fence      # those whose names contain this

Each mutant is applied to a copy of the working tree. The tests first run on a copy without a mutant: if they fail
there, their failures prove nothing. A mutant that no test finds has survived: that is a defect of the tests, and the
exit code is 1.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import attrs

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LIST = HERE / "mutants.toml"
PARTS = ("trioboss", "tests", "benchmarks", "docs", "examples", "pyproject.toml", "README.md")
TIMEOUT = 300.0  # seconds for the tests of one mutant; a mutant that makes them hang is found


@attrs.frozen
class Mutant:
    """One mutant: a text of a file, its replacement, and the tests that must find it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = attrs.field(converter=tuple)

    def apply_to(self, tree: Path) -> None:
        """Replace the text in a copy of the tree."""
        path = tree / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise SystemExit(
                f"{self.name}: {self.file} contains {self.old!r} {text.count(self.old)} times, not once"
            )
        path.write_text(text.replace(self.old, self.new))


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """Return the mutants in the order of the file."""
    return [Mutant(name, **entry) for name, entry in tomllib.loads(path.read_text()).items()]


def copy_tree(target: Path) -> None:
    """Copy the parts of the repository that the tests need."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(source, target / part)


def run_tests(tree: Path, tests: tuple[str, ...], *, timeout: float = TIMEOUT) -> tuple[bool, str]:
    """Run tests on the copy; return whether all passed, and the first failure or the last line of the output."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "hangs"
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run {tests}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode == 0, failed[1] if failed else done.stdout.strip().rpartition("\n")[2]


def try_mutants(mutants: list[Mutant]) -> Iterator[Mutant]:
    """Apply one mutant after the other, print the result, and yield the survivors."""
    for place, mutant in enumerate(mutants, 1):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            copy_tree(tree)
            mutant.apply_to(tree)
            begun = time.monotonic()
            survived, found_by = run_tests(tree, mutant.tests)
        result = "SURVIVED" if survived else "found by"
        seconds = time.monotonic() - begun
        print(f"[{place}/{len(mutants)}] {mutant.name}: {result} {found_by} ({seconds:.0f} s)", flush=True)
        if survived:
            yield mutant


def check_without_mutants(mutants: list[Mutant]) -> None:
    """Exit unless the tests pass without a mutant."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        passed, failure = run_tests(Path(folder), tuple(tests), timeout=TIMEOUT * 4)
    if not passed:
        raise SystemExit(f"the tests fail without a mutant, too: {failure}")


def main(parts: list[str]) -> int:
    """Apply the mutants whose names contain all these parts."""
    mutants = [mutant for mutant in read_mutants() if all(part in mutant.name for part in parts)]
    if not mutants:
        raise SystemExit(f"no mutant's name contains {' and '.join(parts)}")
    check_without_mutants(mutants)
    survivors = list(try_mutants(mutants))
    print(
        f"{len(mutants)} mutants, {len(survivors)} survived",
        *(mutant.name for mutant in survivors),
        sep="\n  ",
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
