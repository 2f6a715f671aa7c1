"""Type checkers understand programs that use trioboss, find the mistakes in them, and know every public name.

mypy checks the same files as part of the lint (`files` in pyproject.toml).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

import trioboss

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "tests" / "typing"


@pytest.fixture
def pyright():
    """Run pyright, and return what it found as JSON."""
    if os.environ.get("TRIOBOSS_REQUIRE_PYRIGHT") != "1":
        pytest.importorskip("pyright")
        if shutil.which("node") is None:
            pytest.skip("pyright needs node")

    def pyright(*arguments, cwd=ROOT, path=""):
        command = [
            sys.executable,
            "-m",
            "pyright",
            "--pythonpath",
            sys.executable,
            "--outputjson",
            *arguments,
        ]
        env = {"PATH": sysconfig.get_path("scripts") + ":/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": path}
        env |= {"HOME": str(Path.home()), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
        run = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=500)
        return json.loads(run.stdout)

    return pyright


def test_pyright_finds_the_mistakes_and_no_others(pyright):
    found = pyright()

    problems = [
        f"{each['file']}:{each['range']['start']['line']}: {each['message']}"
        for each in found["generalDiagnostics"]
    ]
    assert problems == []
    assert found["summary"]["filesAnalyzed"] > 10


def test_the_types_of_all_public_names_are_known(pyright, tmp_path):
    # pyright judges an installed package: a copy, and not the working tree, which is a project.
    shutil.copytree(
        Path(trioboss.__file__).parent, tmp_path / "trioboss", ignore=shutil.ignore_patterns("__pycache__")
    )
    path = f"{tmp_path}:{sysconfig.get_path('purelib')}"
    found = pyright("--verifytypes", "trioboss", "--ignoreexternal", cwd=tmp_path, path=path)[
        "typeCompleteness"
    ]

    unknown = [each["name"] for each in found["symbols"] if each["isExported"] and not each["isTypeKnown"]]
    assert unknown == []
    assert found["completenessScore"] == 1
    assert len(found["symbols"]) > 1000


def test_mypy_checks_this_folder_and_the_examples_strictly():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]

    assert {"trioboss", "examples", "tests/typing"} <= set(settings["files"])
    assert settings["strict"]


def test_the_programs_in_the_readme_are_the_checked_ones():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)

    assert blocks == [path.read_text("utf-8") for path in sorted(PROGRAMS.glob("readme_*.py"))]
