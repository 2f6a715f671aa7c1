"""GUARANTEES.md names tests, files and commands that exist, and every promise has one."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "GUARANTEES.md").read_text()
NAMED = sorted(set(re.findall(r"tests/[\w/]+\.\w+(?:::\w+)?", PAGE)))


def is_there(name: str) -> bool:
    path, _, test = name.partition("::")
    file = ROOT / path
    return file.exists() and (not test or re.search(rf"def {test}\(", file.read_text()) is not None)


@pytest.mark.parametrize("name", NAMED)
def test_a_name_in_the_guarantees_exists(name):
    assert is_there(name)


PROMISES = [int(number) for number in re.findall(r"^\*\*P(\d+)\. ", PAGE, re.MULTILINE)]


def test_promises_are_numbered_from_one():
    assert list(range(1, len(PROMISES) + 1)) == PROMISES
    assert len(PROMISES) > 10


@pytest.mark.parametrize("number", PROMISES)
def test_each_promise_names_a_test(number):
    promise = PAGE.partition(f"**P{number}. ")[2].partition("\n\n")[0]

    assert "tests/" in promise


def test_the_readme_has_every_promise_in_a_line():
    listed = (ROOT / "README.md").read_text().partition("## Promises\n")[2].partition("\n## ")[0]

    assert [int(number) for number in re.findall(r"^(\d+)\. ", listed, re.MULTILINE)] == PROMISES


def test_a_name_that_does_not_exist_is_noticed():
    assert not is_there("tests/test_guarantees.py::test_nobody_wrote")
    assert not is_there("tests/nowhere.py")
