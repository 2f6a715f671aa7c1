"""Checks the guarantees over history, and prints each violation with both jobs. Exit code 1 if there is any.

The checks are in transforms/violations, with the legitimate histories that resemble violations. A possible violation
is a finding that something legitimate may explain which leaves no trace in history; it counts with ``--strict``.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import reduce

import attrs
from pyspark.sql import DataFrame, Row, SparkSession

from trioboss.errors import UsageError
from trioboss.model.policy import Policy
from trioboss.model.queue import Queue
from trioboss.pipeline.arguments import open_run
from trioboss.pipeline.database import open_database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.history import History, Source, add_history_arguments, check_source, source_of
from trioboss.pipeline.lake import find_damaged, open_lake
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.progress import Reporter, report_end, report_stages
from trioboss.pipeline.session import get_session
from trioboss.pipeline.terminal import print_json, show
from trioboss.pipeline.transforms.trace import TRACED_ATTEMPTS, TRACED_JOBS, trace_jobs
from trioboss.pipeline.transforms.violations import dead_letters, ends, exclusion, instants, order
from trioboss.postgres.errors import is_permission_denied
from trioboss.store.context import text_array

__all__ = ["Audit", "Finding", "audit", "find_violations", "main", "print_audit"]

_JOBS = (*TRACED_JOBS, "dead_letter", "source_id", "redriven_from")


@attrs.frozen
class Finding:
    """A violation, or a possible one."""

    kind: str
    queue: str | None
    key: str | None
    job: str | None
    attempt: int | None
    other_job: str | None
    other_attempt: int | None
    at: datetime | None
    seconds: float | None
    """How long they overlapped, or how far apart they were."""
    certain: bool
    detail: str

    def __str__(self) -> str:
        lines = [f"{self.kind}{'' if self.certain else ' (possible)'}: {show(self.detail)}"]
        where = [
            f"queue {show(self.queue)}" if self.queue is not None else None,
            f"key {show(self.key)}" if self.key is not None else None,
            f"{self.at:%Y-%m-%d %H:%M:%S.%f} UTC" if self.at is not None else None,
            f"{self.seconds:.6f} s" if self.seconds is not None else None,
        ]
        if any(where):
            lines.append("  " + ", ".join(filter(None, where)))
        for job, attempt in ((self.job, self.attempt), (self.other_job, self.other_attempt)):
            if job is not None:
                lines.append(f"  job {job}" + (f", attempt {attempt}" if attempt is not None else ""))
        return "\n".join(lines)


@attrs.frozen
class Audit:
    """The result of an audit: how many findings of each kind there are, and the first of them."""

    jobs: int
    attempts: int
    violations: Counter[str]
    possible: Counter[str]
    findings: list[Finding]

    @property
    def is_clean(self) -> bool:
        """No violation; there may be possible ones."""
        return not self.violations


def find_violations(
    history: History, trace: DataFrame, tolerance: float = 0.0, unordered: Sequence[str] = ()
) -> DataFrame:
    """All findings in a history and its trace (transforms/trace.py), as a DataFrame with the columns of Finding."""
    jobs = history.jobs
    found = [
        exclusion.overlaps(trace, tolerance),
        exclusion.both_waiting(jobs, tolerance),
        order.starts_out_of_order(trace, tolerance, unordered),
        order.passed_retries(trace, tolerance),
        ends.counted_ends(trace),
        ends.two_ends(trace),
        instants.wrong_instants(trace, tolerance),
    ]
    if (dead := history.dead_letters) is not None:
        found.append(dead_letters.doubled_dead_letters(dead.jobs, history.attempts))
        found.append(dead_letters.missing_dead_letters(jobs, dead.jobs, dead.until))
    return reduce(DataFrame.unionByName, found)


def audit(
    source: Source,
    *,
    spark: SparkSession | None = None,
    tolerance: float = 0.0,
    unordered: Sequence[str] = (),
    limit: int = 1000,
    progress: Reporter | None = None,
) -> Audit:
    """Check everything that can be checked in history; at most ``limit`` findings are returned.

    ``tolerance``: seconds by which the server's clock may have been set back. ``unordered`` are queues with
    ``commit_order`` off, in which the order of starts is free; of a database they are known. If the source has a dsn,
    the counts are kept in that database, for the dashboard.
    """
    spark, began = spark or get_session(), time.monotonic()
    damaged = _damaged_files(spark, source)
    unordered = [*unordered, *([] if source.lake is not None else _unordered_queues(source))]
    missing = [finding.detail.partition(" ")[0] for finding in damaged]
    with (
        describe_queries(spark, "audit"),
        source.open(spark, _JOBS, TRACED_ATTEMPTS, dead_letters=True, without=missing) as history,
        report_stages(spark, "audit", progress),
    ):
        trace = trace_jobs(
            history.jobs, history.attempts
        ).persist()  # most checks share its shuffle and its sort
        found = find_violations(history, trace, tolerance, unordered).persist()
        counts = found.groupBy("kind", "certain").count().collect()
        first = found.orderBy("kind", "queue", "at", "job").limit(limit).collect() if counts else []
        jobs, attempts = (frame.count() for frame in (history.jobs, history.attempts))
        found.unpersist()
        trace.unpersist()
    report_end(progress, "audit", jobs + attempts, time.monotonic() - began)
    violations, possible = (
        Counter({row["kind"]: row["count"] for row in counts if row["certain"] == certain})
        for certain in (True, False)
    )
    violations += Counter(finding.kind for finding in damaged)
    done = Audit(jobs, attempts, violations, possible, [*damaged, *map(_finding, first)][:limit])
    if (jobs or attempts) and (source.lake is None or source.dsn is not None):
        _keep(source, done)
    return done


def _keep(source: Source, done: Audit) -> None:
    """Keep the counts in the database, if its role may: that of a reader may not, and a standby takes no rows."""
    with open_database(need_dsn(source.dsn), source.schema) as database:
        try:
            database.run(
                "keep_history_audit",
                source="database" if source.lake is None else str(source.lake),
                since=source.since,
                until=source.until,
                queues=text_array(source.queues),
                jobs=done.jobs,
                attempts=done.attempts,
                violations=json.dumps(done.violations),
                possible=json.dumps(done.possible),
            )
        except Exception as error:
            if not is_permission_denied(error):
                raise


def _damaged_files(spark: SparkSession, source: Source) -> list[Finding]:
    if source.lake is None:
        return []
    return [
        Finding("lake file", None, None, None, None, None, None, None, None, True, f"{file.path} {problem}")
        for file, problem in find_damaged(open_lake(spark, source.lake))
    ]


def _unordered_queues(source: Source) -> list[str]:
    with open_database(need_dsn(source.dsn), source.schema) as database:
        queues = [Queue(*row) for row in database.run("get_queues")]
    return [q.name for q in queues if q.policy is Policy.KEY_STRICT_FIFO and not q.commit_order]


def _finding(row: Row) -> Finding:
    values = row.asDict()
    return Finding(**values | {"at": values["at"].astimezone(UTC)})


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline audit`."""
    given = _parse(argv)
    with open_run(given, needs_database=check_source(given)) as run:
        done = audit(
            source_of(given, run.dsn or given.keep_in),
            spark=run.spark,
            tolerance=given.tolerance,
            unordered=given.unordered,
            limit=given.limit,
            progress=run.progress,
        )
    if given.queue and not done.jobs + done.attempts:
        raise UsageError(
            f"queue: nothing of {', '.join(given.queue)} is in this history, so nothing was checked"
        )
    print_json(attrs.asdict(done)) if given.json else print_audit(done)
    return 0 if done.is_clean and not (given.strict and done.possible) else 1


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline audit", description="Check the guarantees over history."
    )
    parser.add_argument(
        "--tolerance",
        type=float,
        default=0.0,
        help="seconds by which the server's clock was set back (default 0)",
    )
    parser.add_argument(
        "--unordered",
        action="append",
        default=[],
        metavar="QUEUE",
        help="a queue of a lake with commit_order off",
    )
    parser.add_argument("--limit", type=int, default=1000, help="how many findings to print (default 1000)")
    parser.add_argument(
        "--keep-in",
        metavar="DSN",
        help="keep the result of a lake's audit in this database, for the dashboard",
    )
    parser.add_argument("--strict", action="store_true", help="possible violations count, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_history_arguments(parser)
    given = parser.parse_args(argv)
    if not 0 <= given.tolerance < 1e6:
        raise UsageError("tolerance: give a number of seconds, from 0 to a million")
    if given.limit < 0:
        raise UsageError("limit: it cannot be less than 0")
    return given


def print_audit(done: Audit) -> None:
    """Print the findings, and how many there are."""
    for finding in done.findings:
        print(finding, end="\n\n")
    hidden = done.violations.total() + done.possible.total() - len(done.findings)
    if hidden:
        print(f"and {hidden} more\n")
    summary = [_sum_up(done.violations, "violation")]
    if done.possible:
        summary.append(_sum_up(done.possible, "possible violation"))
    print(f"{done.jobs:,} ended jobs, {done.attempts:,} attempts that did not complete: {', '.join(summary)}")


def _sum_up(counts: Counter[str], noun: str) -> str:
    if not counts:
        return f"no {noun}"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{counts.total()} {noun}{'s' if counts.total() > 1 else ''} ({kinds})"


if __name__ == "__main__":
    raise SystemExit(main())
