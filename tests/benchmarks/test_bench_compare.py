"""Two checkouts are compared by the public API alone, and their rounds by ratios."""

import ast
import json
import sys
from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.comparing.checkout import THIS_ROOT, find_python, open_checkout
from benchmarks.comparing.measuring import Figures
from benchmarks.comparing.reporting import make_tables
from benchmarks.comparing.rows import EMPTY, STANDARD, Row, Sizes, make_rows
from benchmarks.programs import compared

PUBLIC = {"create_queue", "send", "insert", "work", "off_work", "fetch", "complete"}


def test_the_program_uses_only_the_public_api():
    tree = ast.parse(Path(str(compared.__file__)).read_text())
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "boss"}
    imported = {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    assert used == PUBLIC
    assert not any(module.startswith("trioboss") for module in imported)


def test_every_row_has_a_name_and_a_role_of_the_program():
    rows = make_rows(Sizes())
    assert len({row.name for row in rows}) == len(rows)
    assert {row.spec["role"] for row in rows} <= set(compared.ROLES)
    assert {STANDARD, EMPTY} <= {row.name for row in rows}


def test_a_ratio_is_the_median_of_the_ratios_of_the_rounds():
    rows = [Row(STANDARD, {"role": "drain"}), Row("keyed drain, short", {"role": "drain"})]
    measured = {
        STANDARD: {"new": rates(20.0, 20.0, 90.0), "old": rates(10.0, 10.0, 30.0)},
        "keyed drain, short": {"new": rates(10.0, 5.0, 30.0), "old": rates(10.0, 10.0, 10.0)},
    }
    tables = {table.title: table for table in make_tables(rows, measured, ("new", "old"))}
    assert tables["jobs/s"].rows[0][-1].median == 2.0
    assert tables["New/old, medians of the rounds"].rows[1][1] == 1.0
    within = tables["Ratios within one checkout"].rows[0]
    assert [cell.median for cell in within[1:]] == [pytest.approx(1 / 3), 1.0]


def rates(*values: float) -> list[Figures]:
    return [Figures(0.0, rate=value) for value in values]


def test_one_checkout_alone_has_no_ratios_to_another(tmp_path: Path):
    measured = {STANDARD: {"new": rates(1.0)}}
    (table,) = make_tables([Row(STANDARD, {"role": "drain"})], measured, ("new",))
    assert table.columns == ("work", "new")


def test_a_folder_without_the_package_is_refused(tmp_path: Path):
    with pytest.raises(SystemExit, match="no package trioboss"), open_checkout("old", tmp_path, "python"):
        pass


def test_the_interpreter_is_the_given_one_or_that_of_the_checkout(tmp_path: Path):
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch()
    assert find_python(tmp_path, None, tmp_path) == str(own)
    assert find_python(tmp_path, "/some/python", tmp_path) == "/some/python"


def test_an_unknown_row_is_refused():
    with pytest.raises(SystemExit, match="no row has 'nonsense'"):
        compare.main(["--only", "nonsense"])


@pytest.mark.soak
def test_this_checkout_is_compared_with_itself(server_dsn: str, tmp_path: Path):
    options = ["--quick", "--only", "bulk,nothing else", "--dsn", server_dsn, "--results", str(tmp_path)]
    assert compare.main([str(THIS_ROOT), "--other-python", sys.executable, *options]) == 0
    (path,) = tmp_path.glob("*.json")
    measures = json.loads(path.read_text())["measures"]
    assert list(measures) == ["bulk sends", EMPTY]
    for side in ("new", "old"):
        assert measures["bulk sends"][side][0]["rate"] > 0
        assert measures["bulk sends"][side][0]["wal_bytes"] > 100
        assert measures[EMPTY][side][0]["median_ms"] <= measures[EMPTY][side][0]["worst_ms"]
