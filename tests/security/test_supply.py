"""The code that we run and depend on: no code out of data, and few dependencies."""

import ast
import re
import tomllib
from pathlib import Path

import trioboss

ROOT = Path(trioboss.__file__).parent
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "marshal", "shelve", "yaml", "jsonpickle", "cloudpickle"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}


def unsafe(root):
    """Places where data could become code."""
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {name.partition(".")[0] for name in imported} & UNSAFE_MODULES:
                yield f"{path.relative_to(root)}:{node.lineno}"
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in UNSAFE_CALLS
            ):
                yield f"{path.relative_to(root)}:{node.lineno}"


def test_no_data_ever_becomes_code():
    assert list(unsafe(ROOT)) == []


def test_a_place_where_data_becomes_code_is_found(tmp_path):
    (tmp_path / "a.py").write_text("import pickle\nfrom yaml import load\neval('1')\n")

    assert list(unsafe(tmp_path)) == ["a.py:1", "a.py:2", "a.py:3"]


def test_there_are_few_dependencies():
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["project"]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}

    assert names <= {"attrs", "croniter", "psycopg", "python-dateutil", "trio", "trio-asyncio", "tzdata"}


def test_everything_that_runs_as_a_server_has_an_upper_bound():
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["project"]

    (embedded,) = project["optional-dependencies"]["embedded"]
    assert re.search(r"<\d", embedded)


def test_the_versions_of_ci_are_pinned():
    project = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))["project"]
    lines = (ROOT.parent / ".ci" / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    wanted = [*project["dependencies"], *project["optional-dependencies"]["embedded"]]
    names = {re.match(r"[\w-]+", each)[0].lower() for each in wanted if "sys_platform" not in each}

    assert names - {"trioboss"} <= pinned


def test_a_payload_that_looks_like_an_object_is_just_a_payload(quarry):
    data = {
        "__class__": "os.system",
        "py/object": "os.system",
        "__reduce__": ["os.system", ["true"]],
        "!!python": 1,
    }
    quarry.send("q", data, singleton_key="objects")
    (job,) = quarry.fetch("q")
    quarry.complete("q", job)

    assert job.data == data
