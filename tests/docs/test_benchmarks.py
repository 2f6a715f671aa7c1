"""The tables of the benchmarks are those of the newest published runs."""

import re

import attrs
import pytest

from docs.pages.benchmarks import PAGE, TABLES, replace_tables
from docs.pages.runs import Run, Table, find_run, read_runs

TEXT = PAGE.read_text("utf-8")
OUTSIDE = re.sub(r"<!-- from the runs: .*?<!-- end -->", "", TEXT, flags=re.DOTALL)
NUMBERS = [found.span() for found in re.finditer(r"(?<=\| )[\d.,]*\d(?= \|)", TEXT)]


def test_the_tables_are_up_to_date():
    assert replace_tables(TEXT) == TEXT, "`python -m docs.pages.benchmarks` writes them again"


def test_every_table_is_one_of_a_run():
    assert sorted(re.findall(r"<!-- from the runs: (\w+) -->", TEXT)) == sorted(TABLES)
    assert "\n|" not in OUTSIDE
    assert len(NUMBERS) > 150


@pytest.mark.parametrize("span", NUMBERS[::25], ids=lambda span: TEXT[slice(*span)])
def test_a_changed_number_is_noticed(span):
    changed = f"{TEXT[: span[0]]}7{TEXT[span[0] :]}"

    assert replace_tables(changed) == TEXT


def make_run(name: str, at: str, *rows: tuple[str, ...]) -> Run:
    table = Table("Latency, ms", ("from", "p50"), rows, ())
    return Run(name, at, "2", "3", "18", "0.2", (table,))


def test_the_newest_run_that_has_a_row_is_shown():
    old = make_run("latency-1", "2026-01-01 10:00", ("a", "1"), ("b", "2"))
    new = make_run("latency-2", "2026-01-02 09:00", ("a", "3"))
    other = attrs.evolve(new, name="idle-3", at="2026-01-03 08:00")
    runs = [other, new, old]

    assert find_run("latency", "Latency", runs=runs)[0] is new
    assert find_run("latency", "Latency", "b", runs=runs)[0] is old
    with pytest.raises(LookupError, match="no published run of latency"):
        find_run("latency", "Latency", "c", runs=runs)


def test_a_table_is_found_by_whole_words_of_its_heading():
    tables = tuple(Table(heading, ("a",), (("x",),), ()) for heading in ("T3x2", "T3", "Reading 5 jobs"))
    run = attrs.evolve(make_run("peers-1", "2026-01-01 10:00"), tables=tables)

    assert run.get_table("T3") is tables[1]
    assert run.get_table("Reading") is tables[2]
    assert run.get_table("Read") is None


def test_a_newer_run_replaces_every_table_of_its_kind(monkeypatch):
    newer = [
        attrs.evolve(run, name=f"{run.kind}-29990101-{run.name}", at="2999-01-01 00:00", trioboss="9.9")
        for run in read_runs()
    ]
    for module in ("docs.pages.benchmarks", "docs.pages.runs"):
        monkeypatch.setattr(f"{module}.read_runs", lambda: [*newer, *read_runs()])

    page = replace_tables(TEXT)

    shown = page.partition("## Other published runs")[0]
    assert not re.findall(r"trioboss 0\.|\[0\.\d", shown)
    assert "figures of 0.1.0" not in shown


def test_the_comparison_admits_where_another_queue_drains_faster():
    comparison = (PAGE.parent / "comparison.md").read_text("utf-8")
    (ratio,) = re.findall(
        r"^\| drain batched, nothing kept, jobs/s \|.*?\|.*?\| ([\d.]+) \|", TEXT, re.MULTILINE
    )

    assert ("drains faster where nothing is kept" in comparison) == (float(ratio) < 1)


def test_runs_are_read_the_newest_first():
    runs = read_runs()

    assert [run.at for run in runs] == sorted((run.at for run in runs), reverse=True)
    assert all(run.at and run.tables for run in runs)


def test_cells_are_medians_without_ranges():
    _, table = find_run("peers", "T3")

    assert all(re.fullmatch(r"[\d.,]+", row[3]) for row in table.rows)
