"""The table of faults is complete, and every test that it names exists."""

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
ENTRIES = {"A": 15, "B": 12, "C": 8, "D": 15, "E": 17, "F": 9, "G": 13}
ROW = re.compile(r"^\| ([A-G]\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")

table = {
    id: covered_by for id, _, covered_by in ROW.findall(Path(__file__).with_name("README.md").read_text())
}


@cache
def names(path: str) -> set[str]:
    tree = ast.parse((TESTS / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_each_fault_is_in_the_table():
    assert list(table) == [f"{kind}{n}" for kind, count in ENTRIES.items() for n in range(1, count + 1)]


def test_each_test_in_the_table_exists():
    missing = [
        f"{id}: {path}::{name}"
        for id, covered_by in table.items()
        for path, name in TEST.findall(covered_by)
        if not (TESTS / path).exists() or name not in names(path)
    ]

    assert missing == []


def test_each_fault_has_a_test_or_a_reason():
    assert [
        id
        for id, covered_by in table.items()
        if not TEST.findall(covered_by) and "not here: " not in covered_by
    ] == []


def test_each_test_with_an_id_is_in_the_table():
    tests = {
        (match[1], name)
        for path in Path(__file__).parent.glob("test_*.py")
        for name in names(f"faults/{path.name}")
        if (match := re.match(r"test_([A-G]\d+)_", name))
    }

    assert [(id, name) for id, name in sorted(tests) if f"::{name}`" not in table[id]] == []
