"""Messages of the command line and of errors: one line each, readable, and with the address of a page."""

import json
import re
import traceback
from pathlib import Path

import pytest

import trioboss
from trioboss.cli import main
from trioboss.cli.output import print_error
from trioboss.errors import HELP_NOTE, help_note
from trioboss.model.described_error import describe_error
from trioboss.model.texts import printable

DOCS = Path(__file__).parent.parent.parent / "docs"


def find_section(address: str) -> bool:
    """Whether the address of an error leads to a heading of its page."""
    page, _, anchor = address.partition("#")
    text = (DOCS / page.rpartition("/docs/")[2]).read_text("utf-8")
    return anchor in [found.lower() for found in re.findall(r"^##+ (\w+)$", text, re.MULTILINE)]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain  text", "plain  text"),
        ("first\nsecond\r\n\tthird", "first second third"),
        ("red \x1b[31m alarm\a", "red ?[31m alarm?"),
        ("line\u2028separator", "line separator"),
    ],
)
def test_a_message_of_several_lines_is_one_readable_line(text, line):
    assert printable(text) == line


def test_an_error_is_one_line(capsys):
    print_error("the server says:\n  DETAIL: no")

    assert capsys.readouterr().err == "trioboss: the server says: DETAIL: no\n"


@pytest.mark.parametrize("name", trioboss.errors.__all__)
def test_the_address_of_an_error_leads_to_its_section(name):
    note = help_note(getattr(trioboss, name))

    assert note.endswith(f"#{name.lower()}")
    assert find_section(note.removeprefix(f"{HELP_NOTE[: -len(trioboss.errors.PAGE)]}"))


def test_an_error_of_a_subclass_has_the_address_of_its_base():
    class OurError(trioboss.LeaseLost):
        """Of a program."""

    assert help_note(OurError) == help_note(trioboss.LeaseLost)


def test_a_traceback_ends_with_the_address_and_the_stored_error_has_none():
    error = trioboss.UnknownQueue("email")
    error.add_note("while sending")

    assert f"{help_note(trioboss.UnknownQueue)}\nwhile sending" in "".join(traceback.format_exception(error))
    assert json.loads(describe_error(error))["notes"] == ["while sending"]


def test_a_command_that_fails_prints_the_address_of_the_error(dsn, capsys):
    assert main(["send", "nowhere", "--dsn", dsn]) == 2

    message, address = capsys.readouterr().err.splitlines()
    assert message.startswith("trioboss: queue 'nowhere' does not exist")
    assert address == f"  {help_note(trioboss.UnknownQueue)}"


def test_a_wrong_argument_prints_the_address_of_the_page_of_its_command(dsn, capsys):
    assert main(["send", "email", "{", "--dsn", dsn]) == 2

    _, address = capsys.readouterr().err.splitlines()
    assert address.startswith("  documentation: ")
    assert address.endswith("/docs/guides/sending-jobs.md")
