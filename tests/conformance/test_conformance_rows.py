"""Every row has a result and a test, and the page that lists them is up to date."""

import ast
import importlib
import re
from pathlib import Path

import pytest
from conformance_page import PAGE, anchor_of, render_page
from conformance_rows import ELSEWHERE, GUIDE, READ, ROOT, read_differences, read_rows

ROWS = read_rows()
HERE = Path(__file__).parent


def rows_with_tests() -> list[str]:
    """The rows that have a test in this folder."""
    modules = [importlib.import_module(file.stem) for file in HERE.glob("test_seed_*.py")]
    tests = [test for module in modules for name, test in vars(module).items() if name.startswith("test_")]
    return [id for test in tests for id in test.rows]


def test_every_row_has_one_test_here_or_one_elsewhere_or_cannot_be_run():
    checked = [*rows_with_tests(), *ELSEWHERE, *READ]

    assert sorted(checked) == sorted(row.id for row in ROWS)
    assert len(ROWS) == 352


def find_collected(path: Path) -> set[str]:
    """The names of the tests of a file that a plain run collects and does not skip in any case."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    left_out = re.compile(r"pytest\.mark\.(soak|skip)\b")
    return {
        node.name
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, functions) and node.name.startswith("test_")
        if not any(left_out.match(ast.unparse(decorator)) for decorator in node.decorator_list)
    }


@pytest.mark.parametrize("test", sorted({test for tests in ELSEWHERE.values() for test in tests}))
def test_the_tests_elsewhere_are_collected(test):
    file, _, name = test.partition("::")

    assert Path(file).name.startswith("test_")
    assert name in find_collected(ROOT / file)


def test_every_difference_is_in_the_guide_and_is_a_row():
    differing = read_differences()

    assert set(differing) <= {row.id for row in ROWS}
    assert len(differing) > 60


def test_the_guide_has_the_sections_that_the_page_links_to():
    headings = {
        anchor_of(heading) for heading in re.findall("^## (.*)", GUIDE.read_text("utf-8"), re.MULTILINE)
    }

    assert {anchor_of(heading) for heading in read_differences().values()} <= headings


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == render_page(), "run python tests/conformance/conformance_page.py"
