"""Figures as Markdown tables and as SVG plots."""

import xml.etree.ElementTree as ElementTree

import pytest

from benchmarks.harness.plots import Bar, Bars, Curve, Curves, draw
from benchmarks.harness.tables import Spread, Table, spell

TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12345.6, "12,346"),
        (123.4, "123"),
        (12.34, "12.3"),
        (1.234, "1.23"),
        (0.0123, "0.012"),
        (0.0, "0.00"),
        (7, "7"),
    ],
)
def test_a_number_has_three_significant_digits(number: float, text: str):
    assert spell(number) == text


def test_a_spread_of_one_value_has_no_range():
    assert str(Spread.of([2.0])) == "2.00"
    assert str(Spread.of([3.0, 1.0, 2.0])) == "2.00 (1.00–3.00)"  # noqa: RUF001


def test_a_table_is_aligned_markdown_with_its_notes_below():
    table = Table("Speed", ("queue", "jobs/s"), notes=["noisy"])
    table.add("a", 1000.0)
    table.add("bcd", None)
    assert table.render().splitlines() == [
        "### Speed",
        "",
        "| queue | jobs/s |",
        "| ----- | -----: |",
        "| a     |  1,000 |",
        "| bcd   |        |",
        "",
        "- noisy",
    ]


def test_a_row_with_a_cell_too_few_is_refused():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("Speed", ("queue", "jobs/s")).add("a")


def test_all_plots_are_in_one_svg_with_their_titles_and_names():
    plots = (
        Curves("Waits", "ms", [Curve("idle & <quiet>", [(0.0, 1.0), (0.5, 2.0), (0.99, 9.0), (1.0, 20.0)])]),
        Bars("Speed", "jobs/s", [Bar("trioboss", 2000.0, 1900.0, 2100.0), Bar("other", 0.0)]),
    )
    root = ElementTree.fromstring(draw(plots))
    texts = {element.text for element in root.iter(TEXT)}
    assert {"Waits (ms)", "idle & <quiet>", "99 %", "Speed (jobs/s)", "trioboss", "2,000"} <= texts


@pytest.mark.parametrize("plots", [[], [Curves("Nothing", "ms", [])], [Bars("Nothing", "s", [])]])
def test_a_plot_without_values_is_a_valid_svg(plots: list[Curves | Bars]):
    ElementTree.fromstring(draw(plots))


def test_a_long_label_stays_within_the_svg():
    name = "a long name of a situation, with many words in it, and more"
    root = ElementTree.fromstring(draw([Bars("Speed", "s", [Bar(name, 1.0)])]))
    (label,) = (element for element in root.iter(TEXT) if element.text == name)
    assert float(label.attrib["x"]) > 6 * len(name)
