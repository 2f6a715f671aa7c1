"""Messages of the command line: one line each, and readable."""

import pytest

from trioboss.cli.output import print_error
from trioboss.model.texts import printable


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
