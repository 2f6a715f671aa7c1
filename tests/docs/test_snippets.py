"""Every snippet of the documentation runs, and prints what the documentation shows. CONTRIBUTING has the rules."""

import os
import re
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from snippet_runner import run_program

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
SNIPPETS = DOCS / "snippets"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_generated" not in page.parts)
FILES = sorted(file for file in SNIPPETS.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
TESTS = [file for file in FILES if file.name.startswith("test_") and file.suffix == ".py"]
SCRIPTS = [file for file in FILES if file.suffix == ".sh"]
UPDATE = "TRIOBOSS_UPDATE_SNIPPETS"

# Texts that differ from run to run. A page shows what was printed once, and a test compares the rest.
VARYING = [
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<id>"),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:\.\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? (?:s|ms|seconds)\b *"), "<n> s"),  # with the spaces behind it, in a table
    (re.compile(r"\b\d+(?:\.\d+)?(?:ms|s)\b *"), "<n>"),  # in a table
]


def named(file: Path) -> str:
    return file.relative_to(SNIPPETS).as_posix()


def settled(text: str) -> str:
    """A text without what differs from run to run."""
    for pattern, instead in VARYING:
        text = pattern.sub(instead, text)
    return text.rstrip()


def imported(snippet: Path) -> list[str]:
    """The modules that a snippet imports, by their first name."""
    return re.findall(r"^(?:from|import) (\w+)", snippet.read_text("utf-8"), re.MULTILINE)


# A program that a test imports is run by that test: a web service would not end by itself.
_TESTED = {file.parent / f"{name}.py" for file in TESTS for name in imported(file)}
PROGRAMS = [file for file in FILES if file.suffix == ".py" and file not in TESTS and file not in _TESTED]


def compare(snippet: Path, printed: str) -> None:
    """Compare what a snippet has printed with the text beside it, if there is one; or write it."""
    kept = snippet.with_suffix(".txt")
    if os.environ.get(UPDATE):
        kept.write_text(printed, "utf-8")
    if kept.exists():
        assert settled(printed) == settled(kept.read_text("utf-8")), f"{UPDATE}=1 writes it again"


def require(snippet: Path) -> None:
    """Skip a snippet that uses a library which is not installed: `test-core` brings neither Django nor SQLAlchemy."""
    for name in imported(snippet):
        if (beside := snippet.parent / f"{name}.py").exists():
            require(beside)
        elif find_spec(name) is None:
            pytest.skip(f"{name} is not installed")


@pytest.mark.parametrize("program", PROGRAMS, ids=named)
def test_a_program_runs_and_prints_what_is_shown(program, dsn, tmp_path):
    require(program)
    output = tmp_path / "output"

    code = run_program(program, dsn, output)

    printed = output.read_text("utf-8")
    assert code == 0, printed + output.with_suffix(".err").read_text("utf-8")
    compare(program, printed)


def free_port() -> str:
    """A port on which nothing listens now, for scripts that start a server."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def run(arguments: list[object], folder: Path, dsn: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = os.environ | {
        "TRIOBOSS_DSN": dsn,
        "PATH": path,
        "PYTHONPATH": str(folder),
        "COLUMNS": "100",
        "PORT": free_port(),
    }
    command = [str(argument) for argument in arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("script", SCRIPTS, ids=named)
def test_the_commands_of_a_script_print_what_is_shown(script, dsn):
    done = run(["bash", "-eu", script], script.parent, dsn)

    assert done.returncode == 0, done.stderr
    compare(script, done.stdout)


@pytest.mark.parametrize("file", TESTS, ids=named)
def test_the_tests_that_are_shown_pass(file, dsn):
    require(file)
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file], file.parent, dsn)

    assert done.returncode == 0, done.stdout


# -- what is shown comes from files, and every file is shown

INCLUDED = re.compile(r"\{(?:literalinclude|include)\} *(\S+)")
FENCE = re.compile(r"^ *(`{3,}|~{3,}|:{3,}) *(.*?) *$")
# Code is in a file that is run; commands are checked by test_shown_commands.py.
ALLOWED = {"sh", "text", "toml"}
ALLOWED |= {
    f"{{{name}}}" for name in ("admonition", "eval-rst", "image", "include", "literalinclude", "toctree")
}


def included(page: Path) -> set[Path]:
    return {(page.parent / name).resolve() for name in INCLUDED.findall(page.read_text("utf-8"))}


def inline_code(text: str) -> list[str]:
    """The kinds of the blocks in a page that are none of those which may be there."""
    kinds, closing = [], ""
    for line in text.splitlines():
        found = FENCE.match(line)
        if closing and found and not found[2] and found[1].startswith(closing):
            closing = ""
        elif not closing and found:
            closing = found[1]
            kinds.append((found[2].split() or ["nothing"])[0])
    return [kind for kind in kinds if kind not in ALLOWED]


@pytest.mark.parametrize(
    "page",
    [*PAGES, *(ROOT / name for name in ("GUARANTEES.md", "SECURITY.md", "CHANGELOG.md"))],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_a_page_shows_only_code_that_is_run(page):
    assert inline_code(page.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "begin",
    [
        *("```python", "```Python", "````python", "~~~python", "```pycon", "```sql", "```", "  ```py"),
        *("``` python", "```{code} python", "```{code-block} python", ":::{code-block} sql"),
    ],
)
def test_code_that_is_not_run_is_noticed(begin):
    end = begin.strip()[: len(begin.strip()) - len(begin.strip().lstrip("`~:"))]

    assert len(inline_code(f"x\n{begin}\nimport trio\n{end}\n")) == 1


def test_other_blocks_are_fine():
    assert not inline_code("x\n```{literalinclude} snippets/a.py\n```\n```sh\nls\n```\n")
    assert not inline_code("````text\n```python\n```\n````\n:::{admonition} A title\ntext\n:::\n")


def test_every_snippet_is_shown():
    shown = {file for page in PAGES for file in included(page)}
    modules = {
        file.parent / f"{name}.py" for file in FILES if file.suffix == ".py" for name in imported(file)
    }

    assert [named(file) for file in FILES if file not in shown | modules] == []
