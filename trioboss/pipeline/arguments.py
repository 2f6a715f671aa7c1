"""Arguments that all jobs have on the command line."""

import argparse
import sys

from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline.progress import Progress
from trioboss.pipeline.session import get_session
from trioboss.sql import check_schema

__all__ = ["add_session_arguments", "print_progress", "session_of"]


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Which database, and which Spark."""
    parser.add_argument("--dsn", help="the database (default: TRIOBOSS_DSN or DATABASE_URL)")
    parser.add_argument("--schema", default="trioboss", help="its schema (default trioboss)")
    parser.add_argument("--master", help="Spark's master (default: this machine, all cores)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )


def session_of(given: argparse.Namespace) -> SparkSession:
    """The session that the arguments ask for."""
    for entry in given.conf:
        if "=" not in entry:
            raise UsageError(f"conf: {entry!r} is not of the form KEY=VALUE")
    try:
        check_schema(given.schema)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return get_session(given.master, dict(entry.split("=", 1) for entry in given.conf))


def print_progress(progress: Progress) -> None:
    """One line on a terminal, written over while a step lasts; one line a step elsewhere."""
    over = progress.rows is not None
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="\n" if over else "", file=sys.stderr, flush=True)
    elif over:
        print(progress, file=sys.stderr)
