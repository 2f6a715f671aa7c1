"""The page from its title to its footer."""

from datetime import timedelta
from importlib.resources import files

from trioboss.charts.elements import Html, raw, tag
from trioboss.charts.numbers import instant, length
from trioboss.pipeline.page.report import Report
from trioboss.pipeline.page.sections import sections, tiles

__all__ = ["render_page"]

# Nothing is loaded and nothing runs, even if a text from a job found a way around the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render_page(report: Report) -> str:
    """The report as one HTML document."""
    shared = files("trioboss.charts").joinpath("static", "charts.css").read_text("utf-8")
    style = shared + files(__package__).joinpath("style.css").read_text("utf-8")
    head = tag(
        "head",
        raw('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        raw(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", f"trioboss report, {_span(report)}"),
        tag("style", raw(style)),
    )
    body = tag("body", tag("main", _header(report), *_contents(report), _footer(report)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _contents(report: Report) -> list[Html]:
    if report.first is None or report.last is None or not report.queues:
        return [tag("p", "No job ended in this time.", class_="lead")]
    return [tiles(report), *sections(report)]


def _header(report: Report) -> Html:
    compared = "" if report.before is None else f" Compared with the {length(report.before.length)} before."
    return tag(
        "header",
        tag("h1", _span(report)),
        tag("p", f"All times are UTC. From {report.source}.{compared}", class_="lead"),
    )


def _span(report: Report) -> str:
    if report.first is None or report.last is None:
        return "no history"
    return f"{instant(report.first)} to {instant(report.last + timedelta(hours=1))}, {report.last.year}"


def _footer(report: Report) -> Html:
    more = f"{report.more_queues} smaller queues are not shown. " if report.more_queues else ""
    return tag(
        "footer",
        f"{more}Made by trioboss on {instant(report.made_on)} UTC. Percentiles over longer periods are those of the "
        "worst hour. Utilisation is the share of the slots that a queue was ever seen to use at once.",
    )
