"""The page, from its title to its footer."""

from collections.abc import Sequence
from datetime import timedelta
from importlib.resources import files

from trioboss.pipeline.page.charts import Axis, Series, bars, heat, line, times
from trioboss.pipeline.page.elements import Html, join, raw, tag
from trioboss.pipeline.page.lists import (
    dead_letter_table,
    error_table,
    key_table,
    queue_table,
    retry_table,
    slowest_table,
)
from trioboss.pipeline.page.report import Report, Row
from trioboss.pipeline.page.words import count, duration, instant, percent, short_count

__all__ = ["render_page"]

# Nothing is loaded and nothing runs, not even if a text from a job found a way around the escaping.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_CARDS = 9
_ROWS = 16
"""So many queues have charts of their own, and so many a line in the picture of all."""


def render_page(report: Report) -> str:
    """The report as one HTML document."""
    style = files(__package__).joinpath("style.css").read_text("utf-8")
    head = tag(
        "head",
        raw('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        raw(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", f"trioboss report, {_span(report)}"),
        tag("style", raw(style)),
    )
    body = tag("body", tag("main", _header(report), *_sections(report), _footer(report)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _sections(report: Report) -> list[Html]:
    if report.first is None or report.last is None or not report.queues:
        return [tag("p", "No job ended in this time.", class_="lead")]
    sections = [_tiles(report), _throughput(report), _queues(report), _busy(report)]
    if report.errors:
        sections.append(
            _section(
                "What goes wrong",
                "Errors that ended an attempt, by what they have in common: ids, addresses and numbers are left out.",
                tag("div", error_table(report), class_="card"),
            )
        )
    sections.append(
        _section("What retries cost", "Workers' time, and how much of it went into attempts that came to nothing.",
                 tag("div", retry_table(report), class_="card"))
    )  # fmt: skip
    cards = [key_table(report), slowest_table(report)]
    sections.append(
        _section("Where the time goes", "The keys that take most of it, and the jobs that ran longest.",
                 tag("div", *(tag("div", card, class_="card") for card in cards if card), class_="two"))
    )  # fmt: skip
    if report.dead_letters:
        sections.append(
            _section("Dead letters", "Jobs that failed for good, by source, and what became of their letters.",
                     tag("div", dead_letter_table(report), class_="card"))
        )  # fmt: skip
    return sections


def _header(report: Report) -> Html:
    return tag(
        "header",
        tag("h1", _span(report)),
        tag("p", f"All times are UTC. From {report.source}.", class_="lead"),
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


def _tiles(report: Report) -> Html:
    queues = report.queues
    jobs, failed = _sum(queues, "jobs"), _sum(queues, "failed")
    seconds, wasted = _sum(queues, "worker_seconds"), _sum(queues, "wasted_seconds")
    slow = max(queues, key=lambda queue: queue["wait_p95"] or 0)
    busy = max(report.points, key=lambda point: point["utilisation"] or 0)
    return tag(
        "div",
        _tile(short_count(jobs), f"jobs ended in {len(queues) + report.more_queues} queues"),
        _tile(percent(_sum(queues, "completed") / jobs if jobs else None), "of them completed"),
        _tile(short_count(failed), "failed for good", bad=failed > 0),
        _tile(duration(slow["wait_p95"]), f"longest p95 wait, in {slow['queue']}"),
        _tile(duration(seconds), "of workers' time"),
        _tile(percent(wasted / seconds if seconds else None), "of it came to nothing"),
        _tile(
            percent(busy["utilisation"]),
            f"busiest, {busy['queue']} on {instant(busy['time'], report.period)}",
        ),
        class_="tiles",
    )


def _tile(number: str, words: str, bad: bool = False) -> Html:
    return tag("div", tag("b", number), tag("span", words), class_="tile bad" if bad else "tile")


def _throughput(report: Report) -> Html:
    axis = _axis(report, 1110, 230)
    names = ("completions", "failures", "retries", "arrivals")
    of_all = {name: _values(report.points, name, axis) for name in names}
    chart = bars(
        axis,
        [
            Series("completed", "good", of_all["completions"]),
            Series("retried", "warm", of_all["retries"]),
            Series("failed", "bad", of_all["failures"]),
        ],
        [Series("sent", "accent", of_all["arrivals"])],
        short_count,
    )
    legend = _legend(
        ("good", "completed"),
        ("warm", "attempts that are retried"),
        ("bad", "failed for good"),
        ("accent", "sent"),
    )
    return _section(
        f"Jobs in every {_period(report.period)}",
        "What was sent and what became of it. A line above the bars is a backlog that grows.",
        tag("div", legend, chart, class_="card"),
    )


def _queues(report: Report) -> Html:
    by_queue: dict[str, list[Row]] = {}
    for point in report.points:
        by_queue.setdefault(point["queue"], []).append(point)
    cards = [_queue(report, queue, by_queue.get(queue["queue"], [])) for queue in report.queues[:_CARDS]]
    others = report.queues[_CARDS:]
    table = tag("div", queue_table(others), class_="card more") if others else Html("")
    return _section("Each queue", "The busiest first.", tag("div", *cards, class_="queues"), table)


def _queue(report: Report, queue: Row, points: Sequence[Row]) -> Html:
    counts, waits = _axis(report, 345, 92), _axis(report, 345, 96)
    throughput = bars(
        counts,
        [
            Series("completed", "good", _values(points, "completions", counts)),
            Series("retried", "warm", _values(points, "retries", counts)),
            Series("failed", "bad", _values(points, "failures", counts)),
        ],
        [],
        short_count,
    )
    wait = line(
        waits,
        [
            Series("p95 wait", "accent", _measures(points, "wait_p95", waits)),
            Series("p50 wait", "calm", _measures(points, "wait_p50", waits)),
        ],
        duration,
    )
    failed = (queue["failed"] or 0) / queue["jobs"] if queue["jobs"] else None
    facts = [
        ("jobs", count(queue["jobs"])),
        ("failed", percent(failed)),
        ("wait p95", duration(queue["wait_p95"])),
        ("run p50", duration(queue["run_p50"])),
        ("run p95", duration(queue["run_p95"])),
    ]
    return tag(
        "div",
        tag("h3", queue["queue"]),
        tag("p", *(tag("span", f"{name} ", tag("b", value)) for name, value in facts), class_="facts"),
        tag("h4", "jobs"),
        throughput,
        tag("h4", "wait, p95 and p50"),
        wait,
        class_="card",
    )


def _busy(report: Report) -> Html:
    names = [queue["queue"] for queue in report.queues[:_ROWS]]
    axis = _axis(report, 1110, 20 * len(names) + 20, left=136)
    rows = [
        Series(name, "", _measures([p for p in report.points if p["queue"] == name], "utilisation", axis))
        for name in names
    ]
    highest = max((v for row in rows for v in row.values if v is not None), default=0)
    return _section(
        "When workers are busy",
        f"The darker, the more of a queue's slots run jobs; the darkest is {percent(highest)}.",
        tag("div", heat(axis, rows, percent), class_="card"),
    )


def _section(title: str, lead: str, *content: Html) -> Html:
    return join(tag("h2", title), tag("p", lead, class_="lead"), *content)


def _legend(*entries: tuple[str, str]) -> Html:
    return tag(
        "div", *(tag("span", tag("i", class_=style), words) for style, words in entries), class_="legend"
    )


def _axis(report: Report, width: float, height: float, left: float = 46) -> Axis:
    begins = [point["time"] for point in report.points]
    return Axis(times(min(begins), max(begins), report.period), report.period, width, height, left)


def _values(points: Sequence[Row], name: str, axis: Axis) -> list[float | None]:
    """The sum over the points at each time of the axis."""
    sums = dict.fromkeys(axis.times, 0.0)
    for point in points:
        sums[point["time"]] += point[name] or 0
    return list(sums.values())


def _measures(points: Sequence[Row], name: str, axis: Axis) -> list[float | None]:
    """The value of one queue at each time of the axis; None where nothing happened."""
    values = {point["time"]: point[name] for point in points}
    return [values.get(time) for time in axis.times]


def _period(period: timedelta) -> str:
    hours = int(period / timedelta(hours=1))
    if hours == 1:
        return "hour"
    return f"{hours} hours" if hours < 24 else ("day" if hours == 24 else f"{hours // 24} days")


def _sum(rows: Sequence[Row], name: str) -> float:
    return float(sum(row[name] or 0 for row in rows))
