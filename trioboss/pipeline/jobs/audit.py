"""Proves the guarantees over history, and prints each violation with both jobs. Exit code 1 if there is any.

What is looked for, and what only looks like a violation, is in transforms/violations.py. A doubt is a finding that
something legitimate which left no trace may explain; it counts with ``--strict``.
"""

import argparse
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
from trioboss.pipeline.arguments import print_progress, session_of
from trioboss.pipeline.database import open_database
from trioboss.pipeline.history import Source, add_history_arguments, source_of
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.progress import Reporter, report_stages, report_step
from trioboss.pipeline.session import get_session
from trioboss.pipeline.terminal import print_json, show
from trioboss.pipeline.transforms import violations
from trioboss.pipeline.transforms.trace import trace_jobs

__all__ = ["Audit", "Finding", "audit", "find_violations", "main"]

TOLERANCE = 0.1
"""Seconds by which a claim may have reached the server before it saw what it saw."""

_JOBS = (
    "id", "queue", "state", "policy", "singleton_key", "created_on", "start_after", "started_on", "completed_on",
    "attempt", "retry_count", "retry_limit", "source_queue", "seq",
)  # fmt: skip
_ATTEMPTS = ("job_id", "queue", "attempt", "singleton_key", "started_on", "ended_on", "outcome")


@attrs.frozen
class Finding:
    """Something in history that must not be there, or a doubt about it."""

    kind: str
    queue: str
    key: str | None
    job: str
    attempt: int
    other_job: str | None
    other_attempt: int | None
    at: datetime
    seconds: float | None
    """How long they overlapped, or how far apart they were."""
    certain: bool
    detail: str

    def __str__(self) -> str:
        words = [
            f"{self.kind}: {show(self.detail)}"
            if self.certain
            else f"{self.kind} (doubt): {show(self.detail)}"
        ]
        where = f"queue {show(self.queue)}" + (f", key {show(self.key)}" if self.key is not None else "")
        words.append(f"  {where}, {self.at:%Y-%m-%d %H:%M:%S.%f} UTC" + self._seconds())
        words.append(f"  job {self.job}, attempt {self.attempt}")
        if self.other_job is not None:
            words.append(f"  job {self.other_job}, attempt {self.other_attempt}")
        return "\n".join(words)

    def _seconds(self) -> str:
        return "" if self.seconds is None else f", {self.seconds:.3f} s"


@attrs.frozen
class Audit:
    """What an audit found: how many of each kind, and the first of them."""

    jobs: int
    attempts: int
    violations: Counter[str]
    doubts: Counter[str]
    findings: list[Finding]

    @property
    def is_clean(self) -> bool:
        """No violation; there may be doubts."""
        return not self.violations


def find_violations(trace: DataFrame, tolerance: float = TOLERANCE, loose: Sequence[str] = ()) -> DataFrame:
    """All findings in a trace of jobs (transforms/trace.py), as a DataFrame with the columns of Finding."""
    return reduce(
        DataFrame.unionByName,
        [
            violations.overlaps(trace, tolerance),
            violations.order_of_starts(trace, tolerance, loose),
            violations.passed_retries(trace, tolerance),
            violations.over_limit(trace),
            violations.two_ends(trace),
            violations.missing_ends(trace),
        ],
    )


def audit(
    source: Source,
    *,
    spark: SparkSession | None = None,
    tolerance: float = TOLERANCE,
    loose: Sequence[str] = (),
    limit: int = 1000,
    progress: Reporter | None = None,
) -> Audit:
    """Look for everything that must not be in history; at most ``limit`` findings are returned.

    ``loose`` are queues with `commit_order` off, whose order of starts says nothing; a database says which they are.
    """
    spark, began = spark or get_session(), time.monotonic()
    loose = [*loose, *([] if source.lake is not None else _loose_queues(source))]
    with source.open(spark, _JOBS, _ATTEMPTS) as history, report_stages(spark, "audit", progress):
        trace = trace_jobs(
            history.jobs, history.attempts
        ).persist()  # six questions share its shuffle and its sort
        found = find_violations(trace, tolerance, loose).persist()
        counts = found.groupBy("kind", "certain").count().collect()
        first = found.orderBy("kind", "queue", "at", "job").limit(limit).collect() if counts else []
        rows = {row["is_end"]: row["count"] for row in trace.groupBy("is_end").count().collect()}
        found.unpersist()
        trace.unpersist()
    jobs, attempts = rows.get(True, 0), rows.get(False, 0)
    report_step(progress, "audit", jobs + attempts, time.monotonic() - began)
    of_kind = {certain: Counter({row["kind"]: row["count"] for row in counts if row["certain"] == certain})
               for certain in (True, False)}  # fmt: skip
    return Audit(jobs, attempts, of_kind[True], of_kind[False], [_finding(row) for row in first])


def _loose_queues(source: Source) -> list[str]:
    with open_database(need_dsn(source.dsn), source.schema) as database:
        queues = [Queue(*row) for row in database.run("get_queues")]
    return [q.name for q in queues if q.policy is Policy.KEY_STRICT_FIFO and not q.commit_order]


def _finding(row: Row) -> Finding:
    values = row.asDict()
    return Finding(**values | {"at": values["at"].astimezone(UTC)})


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline audit`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline audit", description="Prove the guarantees over history."
    )
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, help="of starts, in seconds (default 0.1)"
    )
    parser.add_argument("--loose", action="append", default=[], metavar="QUEUE", help="has commit_order off")
    parser.add_argument("--limit", type=int, default=1000, help="how many findings to print (default 1000)")
    parser.add_argument("--strict", action="store_true", help="doubts count, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_history_arguments(parser)
    given = parser.parse_args(argv)
    if not 0 <= given.tolerance < 1e6:
        raise UsageError("tolerance: say how many seconds, from 0 to a million")
    if given.limit < 0:
        raise UsageError("limit: it cannot be less than nothing")
    done = audit(
        source_of(given), spark=session_of(given), tolerance=given.tolerance, loose=given.loose, limit=given.limit,
        progress=print_progress,
    )  # fmt: skip
    if given.queue and not done.jobs + done.attempts:
        raise UsageError(
            f"queue: nothing of {', '.join(given.queue)} is in this history, so nothing was proved"
        )
    print_json(attrs.asdict(done)) if given.json else _print(done)
    return 0 if done.is_clean and not (given.strict and done.doubts) else 1


def _print(done: Audit) -> None:
    for finding in done.findings:
        print(finding, end="\n\n")
    hidden = done.violations.total() + done.doubts.total() - len(done.findings)
    if hidden:
        print(f"and {hidden} more\n")
    summary = [_sum_up(done.violations, "violation")] + (
        [_sum_up(done.doubts, "doubt")] if done.doubts else []
    )
    print(f"{done.jobs:,} ended jobs, {done.attempts:,} attempts that did not end well: {', '.join(summary)}")


def _sum_up(counts: Counter[str], word: str) -> str:
    if not counts:
        return f"no {word}"
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{counts.total()} {word}{'s' if counts.total() > 1 else ''} ({kinds})"


if __name__ == "__main__":
    raise SystemExit(main())
