"""Breaks the product in one place at a time, and shows which tests notice.

    python tests/mutants/apply.py            # all of mutants.toml
    python tests/mutants/apply.py fence      # those whose name has this in it

Each break is made in a copy of the working tree, never here. First all these tests run on a copy without any break: if
they fail there, what they notice means nothing. A mutant that no test notices has survived: that is a defect of the
tests, and the exit code is 1.
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
PARTS = ("trioboss", "tests", "benchmarks", "examples", "pyproject.toml", "README.md")
PATIENCE = 300.0  # seconds for the tests of one mutant; to hang is to notice


@attrs.frozen
class Mutant:
    """One break: what stands in a file, what to put there instead, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = attrs.field(converter=tuple)

    def break_in(self, tree: Path) -> None:
        """Make the break in a copy of the tree."""
        path = tree / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise SystemExit(
                f"{self.name}: {self.file} has {text.count(self.old)} times {self.old!r}, not once"
            )
        path.write_text(text.replace(self.old, self.new))


def read_mutants(path: Path = LIST) -> list[Mutant]:
    """The list, in its order."""
    return [Mutant(name, **entry) for name, entry in tomllib.loads(path.read_text()).items()]


def copy_tree(target: Path) -> None:
    """Copy what the tests need."""
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__", "results"))
        else:
            shutil.copy(source, target / part)


def run_tests(tree: Path, tests: tuple[str, ...], *, patience: float = PATIENCE) -> tuple[bool, str]:
    """Run these tests on the copy; whether all of them passed, and the last line or the first that failed."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=patience, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "hangs"
    if done.returncode not in (0, 1):
        raise SystemExit(f"pytest could not run {tests}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return done.returncode == 0, failed[1] if failed else done.stdout.strip().rpartition("\n")[2]


def try_mutants(mutants: list[Mutant]) -> Iterator[Mutant]:
    """Try one after the other, say what happened, and yield the survivors."""
    for place, mutant in enumerate(mutants, 1):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            copy_tree(tree)
            mutant.break_in(tree)
            begun = time.monotonic()
            survived, noticed = run_tests(tree, mutant.tests)
        verdict = "SURVIVED" if survived else "noticed by"
        seconds = time.monotonic() - begun
        print(f"[{place}/{len(mutants)}] {mutant.name}: {verdict} {noticed} ({seconds:.0f} s)", flush=True)
        if survived:
            yield mutant


def check_unbroken(mutants: list[Mutant]) -> None:
    """Stop unless the tests pass where nothing is broken."""
    tests = sorted({test for mutant in mutants for test in mutant.tests})
    with tempfile.TemporaryDirectory() as folder:
        copy_tree(Path(folder))
        passed, said = run_tests(Path(folder), tuple(tests), patience=PATIENCE * 4)
    if not passed:
        raise SystemExit(f"without any break the tests fail, too: {said}")


def main(words: list[str]) -> int:
    """Try the mutants whose names have all these words in them."""
    mutants = [mutant for mutant in read_mutants() if all(word in mutant.name for word in words)]
    if not mutants:
        raise SystemExit(f"no mutant's name has {' and '.join(words)} in it")
    check_unbroken(mutants)
    survivors = list(try_mutants(mutants))
    print(
        f"{len(mutants)} mutants, {len(survivors)} survived",
        *(mutant.name for mutant in survivors),
        sep="\n  ",
    )
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
