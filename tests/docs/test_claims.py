"""Numbers in the text of pages are those of the code."""

import re
from pathlib import Path

import psycopg
import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


def table_rows(page: str, beginning: str) -> list[list[str]]:
    """The cells of the table whose first row begins with this text, without the line below that."""
    text = (DOCS / page).read_text("utf-8")
    table = text[text.index(beginning) :].partition("\n\n")[0]
    lines = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [lines[0], *lines[2:]]


def test_the_table_of_the_readme_is_a_part_of_the_comparison():
    header, *rows = table_rows("comparison.md", "| | trioboss | pg-boss |")
    compared = {row[0]: dict(zip(header, row, strict=True)) for row in rows}
    shown_header, *shown = table_rows("../README.md", "| | trioboss | pg-boss |")
    names = {"Graphile Worker": "Graphile", "": ""}
    own_rows = {"runs on"}

    for row in shown:
        name = "workflows, DAGs" if row[0] == "workflows" else row[0].removesuffix(" within")
        if name in own_rows:
            continue
        for queue, cell in zip(shown_header[1:], row[1:], strict=True):
            there = compared[name][names.get(queue, queue)]
            assert there.startswith(cell), f"{name}, {queue}: {cell} here, {there} in the comparison"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_pauses_of_the_tutorial_are_those_of_the_database(dsn, number):
    header, *rows = table_rows("tutorial/failure-and-retry.md", "| failure |")
    options = dict(re.findall(r"(\w+)=(\d+)", rows[number - 1][0]))
    longest = options.get("retry_delay_max")

    with psycopg.connect(dsn) as conn:
        for failures, shown in zip(header[1:], rows[number - 1][1:], strict=True):
            least, most = (
                conn.execute(
                    "SELECT trioboss.retry_delay(%s, true, %s, 0.5, 2, %s, %s)",
                    (float(options["retry_delay"]), longest and float(longest), int(failures), chance),
                ).fetchone()[0]
                for chance in (0, 1)
            )
            assert shown == (f"{least:g}" if least == most else f"{least:g}–{most:g}")  # noqa: RUF001
