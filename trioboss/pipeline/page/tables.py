"""The tables of the page."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from trioboss.charts.elements import Html, join, raw, tag
from trioboss.charts.numbers import NONE, between, change, count, duration, instant, percent
from trioboss.charts.svg import Series, share_bar
from trioboss.pipeline.page.report import Before, Report, Row

__all__ = [
    "dead_letter_table",
    "error_table",
    "key_table",
    "period_table",
    "queue_table",
    "retry_table",
    "slowest_table",
]

Cell = tuple[object, str | None]


def period_table(times: Sequence[datetime], period: timedelta, series: Sequence[Series]) -> Html:
    """The numbers of a chart."""
    rows: list[list[Cell]] = [
        [(instant(time, period), "when"), *((count(each.values[place]), "number") for each in series)]
        for place, time in enumerate(times)
    ]
    return _table("The numbers of the chart", ["time", *(f"#{each.name}" for each in series)], rows)


def queue_table(queues: Sequence[Row], before: Before | None) -> Html:
    """Queues in one line each."""
    jobs_before = {queue["queue"]: queue["jobs"] for queue in before.queues} if before else {}
    rows: list[list[Cell]] = [
        [
            (queue["queue"], None),
            (count(queue["jobs"]), "number"),
            (change(queue["jobs"], jobs_before.get(queue["queue"])) or NONE, "number"),
            *((count(queue[name]), "number") for name in ("completed", "failed")),
            *((duration(queue[name]), "number") for name in ("wait_p50", "wait_p95", "run_p50", "run_p95")),
        ]
        for queue in queues
    ]
    titles = [
        "queue",
        "#jobs",
        "#change",
        "#completed",
        "#failed",
        "#wait p50",
        "#wait p95",
        "#run p50",
        "#run p95",
    ]
    return _table("Other queues", titles, rows)


def error_table(report: Report) -> Html:
    """Errors by fingerprint, the most frequent first."""
    most = max(error["count"] for error in report.errors)
    rows: list[list[Cell]] = [
        [
            (join(tag("code", error["fingerprint"]), _example(error["fingerprint"], error["example"])), None),
            (error["queue"], None),
            (count(error["count"]), "number"),
            (share_bar([(error["count"] / most, "bad")], count(error["count"])), "gauge"),
            (between(error["first_seen"], error["last_seen"]), "when"),
        ]
        for error in report.errors
    ]
    titles = ["error", "queue", "#times", "share of the most frequent", "first and last seen"]
    return _table("Errors", titles, rows)


def _example(fingerprint: str, example: str | None) -> Html | None:
    if example is None or example == fingerprint:
        return None
    return join(raw("<br>"), tag("small", example))


def retry_table(report: Report) -> Html:
    """Workers' time of each queue, and how much of it went into attempts that did not complete."""
    most = max((queue["worker_seconds"] or 0 for queue in report.queues), default=0) or 1
    rows: list[list[Cell]] = []
    for queue in report.queues:
        seconds, wasted = queue["worker_seconds"] or 0, queue["wasted_seconds"] or 0
        parts = [((seconds - wasted) / most, "calm"), (wasted / most, "bad")]
        share = wasted / seconds if seconds else 0
        ends = {name: queue[f"{name}_attempts"] for name in ("failed", "expired", "lost", "released")}
        rows.append(
            [
                (queue["queue"], None),
                (duration(seconds), "number"),
                (share_bar(parts, f"{percent(share)} of {duration(seconds)}"), "gauge"),
                (percent(share), "number"),
                (", ".join(f"{count(n)} {name}" for name, n in ends.items() if n) or NONE, "when"),
            ]
        )
    titles = ["queue", "#workers' time", "share of all", "#not completed", "attempts that did not complete"]
    return _table("Cost of retries", titles, rows)


def key_table(report: Report) -> Html | None:
    """The keys that take most of the time."""
    if not report.keys:
        return None
    most = max(key["worker_seconds"] for key in report.keys) or 1
    rows: list[list[Cell]] = [
        [
            (join(tag("code", key["singleton_key"]), raw("<br>"), tag("small", key["queue"])), None),
            (count(key["attempts"]), "number"),
            (share_bar([(key["worker_seconds"] / most, "accent")], duration(key["worker_seconds"])), "gauge"),
            (duration(key["worker_seconds"]), "number"),
        ]
        for key in report.keys[:10]
    ]
    return _table("Hottest keys", ["hottest keys", "#attempts", "share of the hottest", "#time"], rows)


def slowest_table(report: Report) -> Html | None:
    """The jobs that ran longest."""
    if not report.slowest:
        return None
    most = max(job["run"] for job in report.slowest) or 1
    rows: list[list[Cell]] = [
        [
            (join(job["queue"], raw("<br>"), tag("small", job["id"])), None),
            (share_bar([(job["run"] / most, "accent")], duration(job["run"])), "gauge"),
            (duration(job["run"]), "number"),
            (instant(job["started_on"]), "when"),
        ]
        for job in report.slowest[:10]
    ]
    return _table("Slowest jobs", ["slowest jobs", "share of the slowest", "#ran", "started"], rows)


def dead_letter_table(report: Report) -> Html:
    """Dead letter jobs by source."""
    rows: list[list[Cell]] = [
        [
            (f"{row['source']} → {row['dead_letter']}", None),
            (count(row["sent"]), "number"),
            (count(row["completed"]), "number"),
            (count(row["not_completed"]), "number"),
            (between(row["first_seen"], row["last_seen"]), "when"),
        ]
        for row in report.dead_letters
    ]
    return _table(
        "Dead letters", ["from and to", "#sent", "#completed", "#not completed", "first and last"], rows
    )


def _table(caption: str, titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Html:
    """A table with a caption for screen readers. A title that begins with # is that of a column of numbers.

    The first cell of a row is its heading.
    """
    head = [
        tag("th", title.removeprefix("#"), scope="col", class_="number" if title.startswith("#") else None)
        for title in titles
    ]
    return tag(
        "table",
        tag("caption", caption, class_="hidden"),
        tag("thead", tag("tr", *head)),
        tag("tbody", *(tag("tr", _heading(*row[0]), *(_cell(*cell) for cell in row[1:])) for row in rows)),
    )


def _heading(content: object, style: str | None) -> Html:
    return tag("th", content, scope="row", class_=style)


def _cell(content: object, style: str | None) -> Html:
    return tag("td", content, class_=style)
