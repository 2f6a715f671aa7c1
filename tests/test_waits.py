"""No test fails by chance: the limits that guard waits on the real clock are generous."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent
VIRTUAL = ("actors", "machines", "benchmarks")  # folders whose tests have a virtual clock
LEAST = 30  # seconds: a busy machine is no failure


def short_limits(root: Path) -> Iterator[str]:
    """Calls of fail_after with a literal that is too short."""
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in VIRTUAL:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("fail_after"):
                (limit,) = node.args
                if isinstance(limit, ast.Constant) and limit.value < LEAST:
                    yield f"{path.relative_to(root)}:{node.lineno}"


def test_limits_that_guard_a_wait_are_generous():
    assert list(short_limits(ROOT)) == []


def test_a_short_limit_is_found(tmp_path):
    (tmp_path / "a.py").write_text("with trio.fail_after(5):\n    pass\nwith fail_after(60):\n    pass\n")

    assert list(short_limits(tmp_path)) == ["a.py:1"]
