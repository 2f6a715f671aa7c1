"""Reports what the queues did: Parquet tables, a table on the terminal, and one HTML page that needs nothing else.

    DIR/report.html
    DIR/hours/          one row a queue and hour
    DIR/queues/         one row a queue
    DIR/errors/         errors by fingerprint
    DIR/keys/           the hottest keys
    DIR/slowest/        the slowest jobs
    DIR/dead_letters/   dead letter jobs by source
    DIR/before/         one row a queue, for the period before

Only jobs that have ended are in history: an hour's arrivals are those of its jobs that have ended since. All hours are
hours in UTC. A job counts once, with its last end, however often it was retried: if that is after the period of the
report, the job is not in it. If the time of the report has a
beginning, it is compared with the period of the same length before it.
"""

import argparse
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from trioboss.errors import UsageError
from trioboss.pipeline.arguments import check_positive, open_run
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.files import Files, open_files
from trioboss.pipeline.history import History, Source, add_history_arguments, check_source, source_of
from trioboss.pipeline.page import Before, Report, render_page
from trioboss.pipeline.progress import Reporter, report_end, report_stages
from trioboss.pipeline.session import get_session
from trioboss.pipeline.terminal import print_json, print_rows
from trioboss.pipeline.transforms.attempts import all_attempts
from trioboss.pipeline.transforms.ends import last_ends
from trioboss.pipeline.transforms.errors import error_groups
from trioboss.pipeline.transforms.hours import by_hour
from trioboss.pipeline.transforms.periods import choose_period, in_periods
from trioboss.pipeline.transforms.rankings import (
    dead_letters,
    hottest_keys,
    jobs_by_queue,
    retry_cost,
    slowest_jobs,
)
from trioboss.pipeline.transforms.times import hour_of

__all__ = ["main", "page_path", "print_report", "report"]

_JOBS = (
    "id", "queue", "state", "singleton_key", "created_on", "start_after", "started_on", "completed_on", "attempt",
    "seq", "dead_letter", "source_queue",
)  # fmt: skip
_ATTEMPTS = ("job_id", "queue", "attempt", "singleton_key", "started_on", "ended_on", "outcome", "error")

_BEFORE = "before"
_QUEUES_ON_PAGE = 40
_POINTS_ON_PAGE = 200


def report(
    source: Source,
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    page: str | Path | None = None,
    top: int = 20,
    progress: Reporter | None = None,
) -> Report:
    """Make all tables, write them below ``out``, and return the rows that fit on a page.

    ``page``: where the HTML page goes, if not to ``out``; ``top``: how many errors, keys and jobs are listed.
    """
    target = page_path(out, page)
    spark = spark or get_session()
    with describe_queries(spark, "report"):
        return _make(spark, source, out, target, top, progress)


def _make(
    spark: SparkSession, source: Source, out: str | Path, target: Path, top: int, progress: Reporter | None
) -> Report:
    files, written = open_files(spark, out), {}
    with source.open(spark, _JOBS, _ATTEMPTS) as history:
        tables = _tables(history, _each_once(spark, history, progress), source, top)
        _refuse_foreign(files, [*tables, _BEFORE])
        for name, frame in tables.items():
            written[name] = _write(spark, name, frame, f"{out}/{name}", progress)
    files.delete(_BEFORE)
    if (before := _period_before(source)) is not None:
        with before.open(spark, _JOBS, _ATTEMPTS) as history:
            queues = _by_queue(history, _each_once(spark, history, progress))
            written[_BEFORE] = _write(spark, _BEFORE, queues, f"{out}/{_BEFORE}", progress)
    began = time.monotonic()
    with describe_queries(spark, "page"):
        made = _gather(written, source, before)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(render_page(made), "utf-8")
    report_end(progress, "page", seconds=time.monotonic() - began)
    return made


def page_path(out: str | Path, page: str | Path | None) -> Path:
    """Where the page goes, or raise UsageError."""
    if page is None and "://" in str(out):
        raise UsageError("page: give a path for the page, because out is not a folder of this machine")
    return Path(page if page is not None else Path(out, "report.html"))


def _refuse_foreign(files: Files, tables: Iterable[str]) -> None:
    """Refuse to replace folders that no report has written, or had begun to write."""
    for table in tables:
        names = files.names(table)
        if names and not {"_SUCCESS", "_temporary"} & set(names):
            raise UsageError(f"out: {files.at(table)} is there and is no table of a report")


def _each_once(spark: SparkSession, history: History, progress: Reporter | None) -> DataFrame:
    """Each job once: a database has only the last end of a job, a lake has all of them. Takes a scan of a lake."""
    if history.every_end is None:
        return history.jobs
    began = time.monotonic()
    with describe_queries(spark, "last ends"), report_stages(spark, "last ends", progress):
        jobs = last_ends(history.jobs, history.every_end)
    report_end(progress, "last ends", seconds=time.monotonic() - began)
    return jobs


def _by_queue(history: History, jobs: DataFrame) -> DataFrame:
    attempts = all_attempts(history.jobs, history.attempts)
    return jobs_by_queue(jobs).join(retry_cost(attempts), "queue", "full")


def _tables(history: History, jobs: DataFrame, source: Source, top: int) -> dict[str, DataFrame]:
    attempts = all_attempts(history.jobs, history.attempts)
    return {
        "hours": by_hour(jobs, attempts).where(_within(source)),
        "queues": _by_queue(history, jobs),
        "errors": error_groups(history.attempts).orderBy(F.desc("count"), "queue", "fingerprint").limit(top),
        "keys": hottest_keys(attempts).orderBy(F.desc("worker_seconds"), "queue", "singleton_key").limit(top),
        "slowest": slowest_jobs(jobs).orderBy(F.desc("run"), "id").limit(top),
        "dead_letters": dead_letters(jobs).orderBy(F.desc("sent"), "source", "dead_letter").limit(top),
    }


def _within(source: Source) -> Column:
    """Jobs that ended in the time of the report may have arrived long before: those hours are not complete."""
    within = F.lit(True)
    if source.since is not None:
        within &= F.col("hour") >= hour_of(F.lit(source.since))
    if source.until is not None:
        within &= F.col("hour") < F.lit(source.until)
    return within


def _period_before(source: Source) -> Source | None:
    """The period of the same length before that of the report; None if the report has no beginning."""
    if source.since is None:
        return None
    length = (source.until or datetime.now(UTC)) - source.since
    return attrs.evolve(source, since=source.since - length, until=source.since)


def _write(
    spark: SparkSession, name: str, frame: DataFrame, path: str, progress: Reporter | None
) -> DataFrame:
    """Write a table, and return the written rows."""
    began = time.monotonic()
    with describe_queries(spark, name), report_stages(spark, name, progress):
        frame.coalesce(1).write.mode("overwrite").parquet(path)
        written = spark.read.schema(frame.schema).parquet(path)
        rows = 0 if progress is None else written.count()
    report_end(progress, name, rows, time.monotonic() - began)
    return written


def _gather(tables: Mapping[str, DataFrame], source: Source, before: Source | None) -> Report:
    """The rows that fit on a page: the biggest queues, and their hours joined to periods where there are too many."""
    queues = tables["queues"].orderBy(F.desc("jobs"), "queue").limit(_QUEUES_ON_PAGE)
    first, last = tables["hours"].agg(F.min("hour"), F.max("hour")).first() or (None, None)
    period = choose_period(first, last, _POINTS_ON_PAGE)
    points = tables["hours"].join(queues.select("queue"), "queue", "left_semi").transform(in_periods, period)
    length = before.until - before.since if before and before.until and before.since else None
    return Report(
        made_on=datetime.now(UTC),
        source=source.describe(),
        first=_utc(first),
        last=_utc(last),
        period=period,
        points=_rows(points.orderBy("queue", "time")),
        queues=_rows(queues),
        more_queues=max(0, tables["queues"].count() - _QUEUES_ON_PAGE),
        errors=_rows(tables["errors"]),
        keys=_rows(tables["keys"]),
        slowest=_rows(tables["slowest"]),
        dead_letters=_rows(tables["dead_letters"]),
        before=None if length is None else Before(length, _rows(tables[_BEFORE])),
    )


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [{name: _utc(value) for name, value in row.asDict().items()} for row in frame.collect()]


def _utc(value: Any) -> Any:
    """Spark returns an instant as local time of this process."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


_ON_TERMINAL = (
    "queue",
    "jobs",
    "completed",
    "failed",
    "wait_p50",
    "wait_p95",
    "run_p50",
    "run_p95",
    "worker_seconds",
)


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline report`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline report", description="Report what the queues did, hour by hour."
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables and the page go")
    parser.add_argument("--page", metavar="FILE", help="where the page goes (default: report.html in DIR)")
    parser.add_argument(
        "--top", type=int, default=20, help="how many errors, keys and jobs to list (default 20)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_history_arguments(parser)
    given = parser.parse_args(argv)
    check_positive(given, "top")
    page = page_path(given.out, given.page)
    with open_run(given, needs_database=check_source(given), folder=given.out) as run:
        made = report(
            source_of(given, run.dsn),
            given.out,
            spark=run.spark,
            page=page,
            top=given.top,
            progress=run.progress,
        )
    if given.json:
        print_json({"queues": made.queues, "errors": made.errors, "dead_letters": made.dead_letters})
    else:
        print_report(made, page)
    return 0


def print_report(made: Report, page: Path) -> None:
    """Print the queues, the errors, and where the page is."""
    print_rows(made.queues, _ON_TERMINAL)
    if made.errors:
        print()
        print_rows(made.errors, ("queue", "count", "first_seen", "last_seen", "fingerprint"))
    print(f"\n{page}")


if __name__ == "__main__":
    raise SystemExit(main())
