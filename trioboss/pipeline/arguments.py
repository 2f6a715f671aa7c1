"""The arguments that all jobs have on the command line, and the order in which a job starts.

Java takes seconds to start. So mistakes in the arguments are reported first, then the database is asked whether it can
be reached and has the schema, then a folder that is written to is made, and only then Spark is started.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline.database import open_database
from trioboss.pipeline.files import check_folder
from trioboss.pipeline.migration import migrate_database
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.progress import Progress
from trioboss.pipeline.session import get_session, is_submitted
from trioboss.pipeline.timings import Timings
from trioboss.postgres.embedded import find_dsn, resolve_dsn
from trioboss.sql import check_schema

__all__ = ["Run", "add_session_arguments", "check_positive", "open_run"]

_PAGE = "https://github.com/trioboss/trioboss/blob/main/docs/reference/pipeline.md"


def add_session_arguments(parser: argparse.ArgumentParser) -> None:
    """Which database, and which Spark; and the address of the section about the command, below its help."""
    address = f"Documentation: {_PAGE}#{parser.prog.replace(' ', '-')}"
    parser.epilog = address if parser.epilog is None else f"{parser.epilog}\n{address}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # an address must not be wrapped
    parser.add_argument(
        "--dsn", help="the database (default: TRIOBOSS_DSN or DATABASE_URL, else the embedded server)"
    )
    parser.add_argument("--schema", default="trioboss", help="its schema (default trioboss)")
    parser.add_argument("--master", help="Spark's master (default: this machine, all cores)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark; may be repeated"
    )
    parser.add_argument("--timings", action="store_true", help="print how long each step took")


@attrs.define
class Run:
    """A job of the command line that is about to start."""

    spark: SparkSession
    dsn: str | None
    """None: the job needs no database."""
    _timings: Timings

    def progress(self, progress: Progress) -> None:
        """Print how far the job is: on a terminal one line that is overwritten, elsewhere one line for each step."""
        self._timings.add(progress)
        if sys.stderr.isatty():
            print(f"\r\x1b[K{progress}", end="\n" if progress.is_over else "", file=sys.stderr, flush=True)
        elif progress.is_over:
            print(progress, file=sys.stderr)


@contextmanager
def open_run(
    given: argparse.Namespace, *, needs_database: bool = True, folder: str | None = None
) -> Iterator[Run]:
    """Start Spark for a job whose own arguments have been checked, and which writes to a folder.

    Without a dsn the database is the embedded server, as for the rest of the command line; it is migrated, too.
    """
    timings = Timings()
    settings = _check(given, needs_database=needs_database)
    with _open_dsn(given, timings) if needs_database else _no_database() as dsn:
        if folder is not None:
            check_folder(folder)
        began = time.monotonic()
        spark = get_session(given.master, settings)
        timings.add(Progress("start Spark", rows=0, seconds=time.monotonic() - began))
        try:
            yield Run(spark, dsn, timings)
        finally:
            if given.timings:
                timings.print()


def check_positive(given: argparse.Namespace, *names: str, zero: bool = False) -> None:
    """Raise UsageError unless these numbers are above zero, or are zero where that is allowed."""
    for name in names:
        value = getattr(given, name)
        if value is not None and not (0 < value < 1e15 or (zero and value == 0)):
            least = "0 or more" if zero else "more than 0"
            raise UsageError(f"{name.replace('_', '-')}: {value:g} is not a number of {least}")


def _check(given: argparse.Namespace, *, needs_database: bool) -> dict[str, str]:
    """The settings of Spark, or raise UsageError."""
    for entry in given.conf:
        if "=" not in entry:
            raise UsageError(f"conf: {entry!r} is not of the form KEY=VALUE")
    try:
        check_schema(given.schema)
    except ValueError as error:
        raise UsageError(str(error)) from None
    is_local = given.master.startswith("local") if given.master else not is_submitted()
    if needs_database and not is_local and find_dsn(given.dsn) is None:
        raise UsageError("dsn: name the database, because a cluster cannot reach an embedded server")
    return dict(entry.split("=", 1) for entry in given.conf)


@contextmanager
def _open_dsn(given: argparse.Namespace, timings: Timings) -> Iterator[str]:
    """The dsn, once the database can be reached and has the schema."""
    began, named = time.monotonic(), find_dsn(given.dsn)
    with resolve_dsn(given.dsn) as dsn:
        if named is None:
            print("no dsn was given: using the embedded server", file=sys.stderr)
            migrate_database(dsn, given.schema)
        with open_database(need_dsn(dsn), given.schema):
            pass
        timings.add(Progress("reach the database", rows=0, seconds=time.monotonic() - began))
        yield dsn


@contextmanager
def _no_database() -> Iterator[None]:
    yield None
