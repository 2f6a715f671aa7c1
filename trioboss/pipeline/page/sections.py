"""The sections of the page."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from trioboss.charts.elements import Html, join, tag
from trioboss.charts.numbers import change, count, duration, instant, length, percent, short_count
from trioboss.charts.svg import Axis, Series, bars, curves, heat, times
from trioboss.pipeline.page.report import Report, Row
from trioboss.pipeline.page.tables import (
    dead_letter_table,
    error_table,
    key_table,
    period_table,
    queue_table,
    retry_table,
    slowest_table,
)

__all__ = ["sections", "tiles"]

_CARDS = 9
_ROWS = 16
"""So many queues have charts of their own, and so many a line in the chart of all."""


def tiles(report: Report) -> Html:
    """The most important numbers of all queues, each with its change since the period before."""
    now, before = report.queues, report.before.queues if report.before else []
    slow = max(now, key=lambda queue: queue["wait_p95"] or 0)["queue"]
    busy = max(report.points, key=lambda point: point["utilisation"] or 0)
    made = [
        _tile(report, short_count, f"jobs ended in {len(now) + report.more_queues} queues",
              _sum(now, "jobs"), _sum(before, "jobs")),
        _tile(report, percent, "of them completed", *(_share(rows, "completed", "jobs") for rows in (now, before))),
        _tile(report, short_count, "failed for good", _sum(now, "failed"), _sum(before, "failed"), bad=True),
        _tile(report, duration, f"longest p95 wait, in {slow}",
              *(_of_queue(rows, slow, "wait_p95") for rows in (now, before))),
        _tile(report, duration, "of workers' time", _sum(now, "worker_seconds"), _sum(before, "worker_seconds")),
        _tile(report, percent, "of it on attempts that did not complete",
              *(_share(rows, "wasted_seconds", "worker_seconds") for rows in (now, before))),
        _tile(report, percent, f"busiest, {busy['queue']} on {instant(busy['time'], report.period)}",
              busy["utilisation"], None),
    ]  # fmt: skip
    return tag("div", *made, class_="tiles")


def _tile(
    report: Report,
    format: Callable[[Any], str],
    text: str,
    now: float | None,
    before: float | None,
    *,
    bad: bool = False,
) -> Html:
    changed = change(now, before)
    compared = None
    if changed is not None and report.before is not None:
        compared = tag("em", f"{changed} since the {length(report.before.length)} before")
    return tag(
        "div",
        tag("b", format(now)),
        tag("span", text),
        compared,
        class_="tile bad" if bad and now else "tile",
    )


def sections(report: Report) -> list[Html]:
    """All sections, without those that have nothing to show."""
    made = [_throughput(report), _queues(report), _busy(report)]
    if report.errors:
        lead = "Errors that ended an attempt, grouped: ids, addresses and numbers are left out."
        made.append(_section("Errors", lead, tag("div", error_table(report), class_="card")))
    lead = "Workers' time, and how much of it went into attempts that did not complete."
    made.append(_section("Cost of retries", lead, tag("div", retry_table(report), class_="card")))
    cards = [table for table in (key_table(report), slowest_table(report)) if table]
    lead = "The keys that take most of the time, and the jobs that ran longest."
    made.append(
        _section(
            "Hot keys and slow jobs",
            lead,
            tag("div", *(tag("div", c, class_="card") for c in cards), class_="two"),
        )
    )
    if report.dead_letters:
        lead = "Jobs that failed for good, by source, and the ends of their dead letter jobs."
        made.append(_section("Dead letters", lead, tag("div", dead_letter_table(report), class_="card")))
    return made


def _throughput(report: Report) -> Html:
    axis = _axis(report, 1110, 230)
    stacked = [
        Series("completed", "good", _values(report.points, "completions", axis)),
        Series("retried", "warm", _values(report.points, "retries", axis)),
        Series("failed", "bad", _values(report.points, "failures", axis)),
    ]
    sent = Series("sent", "accent", _values(report.points, "arrivals", axis))
    title = f"Jobs in every {_period(report.period)}"
    legend = _legend(
        ("good", "completed"),
        ("warm", "attempts that are retried"),
        ("bad", "failed for good"),
        ("accent", "sent"),
    )
    numbers = tag(
        "details", tag("summary", "The numbers"), period_table(axis.times, report.period, [*stacked, sent])
    )
    return _section(
        title,
        "The jobs that were sent, and how they ended. Where the line is above the bars, the queue grows.",
        tag("div", legend, bars(axis, stacked, [sent], short_count, title), numbers, class_="card"),
    )


def _queues(report: Report) -> Html:
    by_queue: dict[str, list[Row]] = {}
    for point in report.points:
        by_queue.setdefault(point["queue"], []).append(point)
    cards = [_queue(report, queue, by_queue.get(queue["queue"], [])) for queue in report.queues[:_CARDS]]
    others = report.queues[_CARDS:]
    table = tag("div", queue_table(others, report.before), class_="card more") if others else Html("")
    return _section("Each queue", "The busiest first.", tag("div", *cards, class_="queues"), table)


def _queue(report: Report, queue: Row, points: Sequence[Row]) -> Html:
    counts, waits, name = _axis(report, 345, 92), _axis(report, 345, 96), queue["queue"]
    throughput = bars(
        counts,
        [
            Series("completed", "good", _values(points, "completions", counts)),
            Series("retried", "warm", _values(points, "retries", counts)),
            Series("failed", "bad", _values(points, "failures", counts)),
        ],
        [],
        short_count,
        f"Jobs of {name}",
    )
    wait = curves(
        waits,
        [
            Series("p95 wait", "accent", _measures(points, "wait_p95", waits)),
            Series("p50 wait", "calm", _measures(points, "wait_p50", waits)),
        ],
        duration,
        f"Waits of {name}",
    )
    return tag(
        "div",
        tag("h3", name),
        tag(
            "p",
            *(tag("span", f"{fact} ", tag("b", value)) for fact, value in _facts(report, queue)),
            class_="facts",
        ),
        tag("h4", "jobs"),
        throughput,
        tag("h4", "wait, p95 and p50"),
        wait,
        class_="card",
    )


def _facts(report: Report, queue: Row) -> list[tuple[str, str]]:
    before = report.before.queues if report.before else []
    failed = (queue["failed"] or 0) / queue["jobs"] if queue["jobs"] else None

    def with_change(name: str, text: str) -> str:
        changed = change(queue[name], _of_queue(before, queue["queue"], name))
        return text if changed is None else f"{text} ({changed})"

    return [
        ("jobs", with_change("jobs", count(queue["jobs"]))),
        ("failed", percent(failed)),
        ("wait p95", with_change("wait_p95", duration(queue["wait_p95"]))),
        ("run p50", duration(queue["run_p50"])),
        ("run p95", with_change("run_p95", duration(queue["run_p95"]))),
    ]


def _busy(report: Report) -> Html:
    names = [queue["queue"] for queue in report.queues[:_ROWS]]
    axis = _axis(report, 1110, 20 * len(names) + 20, left=136)
    rows = [
        Series(name, "", _measures([p for p in report.points if p["queue"] == name], "utilisation", axis))
        for name in names
    ]
    highest = max((v for row in rows for v in row.values if v is not None), default=0)
    return _section(
        "Utilisation",
        "The share of a queue's slots that run jobs.",
        tag("div", _scale(highest), heat(axis, rows, percent, "Utilisation of each queue"), class_="card"),
    )


def _scale(highest: float) -> Html:
    """The legend of the heat map: the colour of no utilisation up to that of the highest."""
    steps = (0.06, 0.3, 0.53, 0.77, 1.0)
    cells = [tag("i", class_=f"heat step{place}", aria_hidden="true") for place, _ in enumerate(steps)]
    return tag("div", tag("span", "0 %"), *cells, tag("span", percent(highest)), class_="legend scale")


def _section(title: str, lead: str, *content: Html) -> Html:
    return join(tag("h2", title), tag("p", lead, class_="lead"), *content)


def _legend(*entries: tuple[str, str]) -> Html:
    return tag(
        "div",
        *(tag("span", tag("i", class_=style, aria_hidden="true"), text) for style, text in entries),
        class_="legend",
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


def _share(rows: Sequence[Row], part: str, whole: str) -> float | None:
    return _sum(rows, part) / _sum(rows, whole) if _sum(rows, whole) else None


def _of_queue(rows: Sequence[Row], queue: str, name: str) -> float | None:
    return next((row[name] for row in rows if row["queue"] == queue), None)
