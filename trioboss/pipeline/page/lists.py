"""The tables of the page."""

from collections.abc import Sequence

from trioboss.pipeline.page.charts import share_bar
from trioboss.pipeline.page.elements import Html, join, raw, tag
from trioboss.pipeline.page.report import Report, Row
from trioboss.pipeline.page.words import NONE, between, count, duration, instant, percent

__all__ = ["dead_letter_table", "error_table", "key_table", "queue_table", "retry_table", "slowest_table"]

Cell = tuple[object, str | None]


def queue_table(queues: Sequence[Row]) -> Html:
    """Queues in one line each."""
    rows: list[list[Cell]] = [
        [
            (queue["queue"], None),
            *((count(queue[name]), "number") for name in ("jobs", "completed", "failed")),
            *((duration(queue[name]), "number") for name in ("wait_p50", "wait_p95", "run_p50", "run_p95")),
        ]
        for queue in queues
    ]
    return _table(
        ["queue", "#jobs", "#completed", "#failed", "#wait p50", "#wait p95", "#run p50", "#run p95"], rows
    )


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
    return _table(["error", "queue", "#times", "", "first and last seen"], rows)


def _example(fingerprint: str, example: str | None) -> Html | None:
    if example is None or example == fingerprint:
        return None
    return join(raw("<br>"), tag("small", example))


def retry_table(report: Report) -> Html:
    """Workers' time of each queue, and how much of it was wasted."""
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
    return _table(["queue", "#workers' time", "", "#wasted", "attempts that came to nothing"], rows)


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
    return _table(["hottest keys", "#attempts", "", "#time"], rows)


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
    return _table(["slowest jobs", "", "#ran", "started"], rows)


def dead_letter_table(report: Report) -> Html:
    """Dead letters by source."""
    rows: list[list[Cell]] = [
        [
            (f"{letter['source']} → {letter['dead_letter']}", None),
            (count(letter["letters"]), "number"),
            (count(letter["handled"]), "number"),
            (count(letter["given_up"]), "number"),
            (between(letter["first_seen"], letter["last_seen"]), "when"),
        ]
        for letter in report.dead_letters
    ]
    return _table(["from and to", "#letters", "#handled", "#given up", "first and last"], rows)


def _table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Html:
    """A table; a title that begins with # stands over numbers."""
    head = [
        tag("th", title.removeprefix("#"), class_="number" if title.startswith("#") else None)
        for title in titles
    ]
    body = [tag("tr", *(tag("td", content, class_=style) for content, style in row)) for row in rows]
    return tag("table", tag("tr", *head), *body)
