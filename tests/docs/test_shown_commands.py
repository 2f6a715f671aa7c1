"""Every command that a page shows is one that the command line accepts."""

import re
import shlex
from pathlib import Path

import pytest

from docs.pages.commands import find_commands
from trioboss.cli.config import parse_with_file
from trioboss.cli.parser import PIPELINE_JOBS, make_parser

ROOT = Path(__file__).parent.parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_generated" not in page.parts),
]
SERVICES = sorted((ROOT / "docs" / "snippets" / "services").iterdir())
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    (trioboss .*)$", re.MULTILINE)
COMMAND = re.compile(r"^(?:\w+=\S+ )?(?:\S*/)?trioboss ")
PLACEHOLDERS = {"…": "[]", "ID": "0190a5c4-0000-7000-8000-000000000000"}


UNIT = re.compile(r"^ExecStart=\S*/trioboss (.*)$", re.MULTILINE)
CONTAINER = re.compile(r"command: \[trioboss, (.*)\]$", re.MULTILINE)


def services(text: str) -> list[list[str]]:
    """The commands of trioboss in the units of systemd and in containers."""
    units = [shlex.split(line) for line in UNIT.findall(text)]
    return units + [[word.strip(' "') for word in line.split(",")] for line in CONTAINER.findall(text)]


def commands(text: str) -> list[list[str]]:
    """The commands of trioboss in the blocks of a page, without their comments."""
    blocks = [*BLOCK.findall(text), *INDENTED.findall(text)]
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    split = [shlex.split(line, comments=True) for line in lines if COMMAND.match(line)]
    begin = [1 + ("=" in words[0]) for words in split]
    return [
        [PLACEHOLDERS.get(word, word) for word in words[first:]]
        for first, words in zip(begin, split, strict=True)
    ]


# Not with a colon behind the word: those are labels of queries in the UI of Spark.
INLINE = re.compile(r"(?<!`)`trioboss ([a-z][\w-]*+)(?!:)(?: ([a-z][\w-]*))?[^`\n]*`")
DOCUMENTS = [
    *PAGES,
    *(ROOT / f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "GUARANTEES", "CHANGELOG")),
]


def unknown_commands(text: str) -> list[str]:
    """The commands that a page names within its text, and that do not exist."""
    known = find_commands()
    return [
        f"{command} {job}".rstrip()
        for command, job in INLINE.findall(text)
        if command not in known or (command == "pipeline" and job and job not in PIPELINE_JOBS)
    ]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_command_that_a_page_names_exists(page):
    assert unknown_commands(page.read_text("utf-8")) == []


def test_a_name_of_a_command_that_does_not_exist_is_noticed():
    assert unknown_commands("`trioboss fly`, or `trioboss pipeline sail --to x`") == ["fly", "pipeline sail"]
    assert not unknown_commands(
        "`trioboss worker app:app --health 80`, `trioboss pipeline all`, `trioboss -h`"
    )


SHOWN = [
    pytest.param(words, id=f"{page.stem}: {' '.join(words)}")
    for page in (*PAGES, *SERVICES)
    for words in (*commands(page.read_text("utf-8")), *services(page.read_text("utf-8")))
]


@pytest.mark.parametrize("words", SHOWN)
def test_a_command_of_a_page_is_accepted(words):
    make_parser().parse_args(words)


def test_the_configuration_file_of_a_page_is_accepted(tmp_path):
    (text,) = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "docs" / "guides" / "operations.md").read_text("utf-8"), re.M | re.S
    )
    file = tmp_path / "trioboss.toml"
    file.write_text(text, "utf-8")
    given = ["worker", "jobs:app", "--config", str(file)]

    args = parse_with_file(make_parser(), given, make_parser().parse_args(given))

    assert (args.schema, args.processes, args.json_logs) == ("jobs", 4, True)


def test_many_commands_are_found():
    assert len(SHOWN) > 30


@pytest.mark.parametrize("line", ["trioboss fly", "trioboss jobs", "trioboss worker a:b --wings 2"])
def test_a_command_that_does_not_exist_is_noticed(line, capsys):
    (words,) = commands(f"x\n```sh\n{line}   # a comment\n```\n")

    with pytest.raises(SystemExit):
        make_parser().parse_args(words)
    assert "usage: trioboss" in capsys.readouterr().err
