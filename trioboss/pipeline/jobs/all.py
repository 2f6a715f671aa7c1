"""Runs report, audit and capacity in one session of Spark, which takes longer to start than most of them take.

The exit code is that of the audit.
"""

import argparse

from trioboss.pipeline.arguments import check_positive, open_run
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.history import add_history_arguments, check_source, source_of
from trioboss.pipeline.jobs.audit import audit, print_audit
from trioboss.pipeline.jobs.capacity import capacity, print_capacity
from trioboss.pipeline.jobs.report import page_path, print_report, report

__all__ = ["main"]


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline all`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline all", description="Run report, audit and capacity, one after the other."
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="where the tables and the page go")
    parser.add_argument("--page", metavar="FILE", help="where the page goes (default: report.html in DIR)")
    parser.add_argument(
        "--target", type=float, default=1.0, help="seconds that p95 of waits may be (default 1)"
    )
    add_history_arguments(parser)
    given = parser.parse_args(argv)
    check_positive(given, "target")
    page = page_path(given.out, given.page)
    needs_database = check_source(given)
    with (
        open_run(given, needs_database=needs_database, folder=given.out) as run,
        describe_queries(run.spark, "all"),
    ):
        source = source_of(given, run.dsn)
        print_report(report(source, given.out, spark=run.spark, page=page, progress=run.progress), page)
        audited = audit(source, spark=run.spark, progress=run.progress)
        print()
        print_audit(audited)
        print()
        print_capacity(capacity(source, target=given.target, spark=run.spark, progress=run.progress))
    return 0 if audited.is_clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
