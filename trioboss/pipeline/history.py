"""History from the database or from a lake, for the commands that analyse it."""

import argparse
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from trioboss.errors import UsageError
from trioboss.model.check import check_name
from trioboss.pipeline.arguments import add_session_arguments
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import open_database
from trioboss.pipeline.lake import check_lake, read_lake
from trioboss.pipeline.options import need_dsn

__all__ = [
    "DEAD_LETTERS", "DeadLetters", "History", "Source", "add_history_arguments", "check_source", "parse_time",
    "source_of",
]  # fmt: skip


DEAD_LETTERS = (
    "id", "queue", "seq", "singleton_key", "attempt", "created_on", "source_queue", "source_id", "redriven_from",
)  # fmt: skip
"""The columns of dead letter jobs, and of the jobs that were made of them by a redrive."""


@attrs.frozen
class DeadLetters:
    """The dead letter jobs of the failures in a history, whatever their queue is and whenever they ended."""

    jobs: DataFrame
    until: datetime | None = None
    """Those of failures up to this instant are there, unless they were deleted. None: those that are queued are not."""


@attrs.frozen
class History:
    """Ended jobs, and attempts that did not complete, as they were at one instant."""

    jobs: DataFrame
    attempts: DataFrame
    dead_letters: DeadLetters | None = None
    """None: not asked for."""
    every_end: DataFrame | None = None
    """The ends of a lake from the first of ``jobs`` on, also those after the period that was asked for: a lake has ends
    that were undone later. None: the history is a database's, which has only the last end of each job."""


@attrs.frozen
class Source:
    """Where history is, and which part of it is asked for: by the time of the end, ``until`` not included."""

    dsn: str | None = None
    lake: str | Path | None = None
    schema: str = "trioboss"
    since: datetime | None = None
    until: datetime | None = None
    queues: tuple[str, ...] = attrs.field(default=(), converter=tuple)

    @contextmanager
    def open(
        self,
        spark: SparkSession,
        jobs: Sequence[str],
        attempts: Sequence[str],
        *,
        dead_letters: bool = False,
        without: Collection[str] = (),
    ) -> Iterator[History]:
        """The history with these columns. Rows of a database are read once, and kept until the block ends.

        ``dead_letters``: with the dead letter jobs; ``without`` are files of a lake that are not to be read.
        """
        # A dead letter job may have another queue than the job that failed, and it ends later.
        everywhere = attrs.evolve(self, until=None, queues=())
        if self.lake is not None:
            open_ended = attrs.evolve(self, until=None)
            dead = everywhere._from_lake(spark, "archive", DEAD_LETTERS, without) if dead_letters else None
            yield History(
                self._from_lake(spark, "archive", jobs, without),
                self._from_lake(spark, "attempt", attempts, without),
                None if dead is None else DeadLetters(self._of_failures(dead)),
                every_end=open_ended._from_lake(spark, "archive", jobs, without),
            )
            return
        queued = self._read_queued(spark) if dead_letters else None
        # After the queued jobs: a job that ends meanwhile is then in both, and never in neither.
        with open_database(need_dsn(self.dsn), self.schema) as database:
            ((snapshot,),) = database.run("read_snapshot")
        ended = self._from_database(spark, "archive", jobs, snapshot).persist()
        tried = self._from_database(spark, "attempt", attempts, snapshot).persist()
        if queued is not None:
            dead = (
                ended
                if self == everywhere
                else everywhere._from_database(spark, "archive", DEAD_LETTERS, snapshot)
            )
            everything = queued.jobs.unionByName(dead.select(*DEAD_LETTERS))
            found = DeadLetters(self._of_failures(everything).persist(), queued.until)
        try:
            yield History(ended, tried, found if queued is not None else None)
        finally:
            for frame in (ended, tried, *([queued.jobs, found.jobs] if queued is not None else [])):
                frame.unpersist()

    def _read_queued(self, spark: SparkSession) -> DeadLetters:
        """The dead letter jobs that have not ended, and when they were read, by the database's clock."""
        with open_database(need_dsn(self.dsn), self.schema) as database:
            ((now,),) = database.run("read_clock")
        columns = [name for name in DEAD_LETTERS if name != "redriven_from"]
        options = self._options("job", columns)
        jobs = (
            spark.read.format("trioboss").options(**options).load().where("source_id IS NOT NULL").persist()
        )
        jobs.count()  # reads them now
        return DeadLetters(jobs.withColumn("redriven_from", F.lit(None).cast("string")), now)

    def _of_failures(self, jobs: DataFrame) -> DataFrame:
        """The dead letter jobs of the failures that are asked for: a dead letter job is sent when its source fails."""
        rows = jobs.where("source_id IS NOT NULL OR redriven_from IS NOT NULL")
        is_asked_for = F.lit(True)
        if self.since is not None:
            is_asked_for &= F.col("created_on") >= F.lit(self.since)
        if self.until is not None:
            is_asked_for &= F.col("created_on") < F.lit(self.until)
        if self.queues:
            is_asked_for &= F.col("source_queue").isin(*self.queues)
        return rows.where(F.col("source_id").isNull() | is_asked_for)

    def _from_lake(
        self, spark: SparkSession, table: str, columns: Sequence[str], without: Collection[str]
    ) -> DataFrame:
        rows = read_lake(spark, str(self.lake), table, without=without)
        for bound, keeps in ((self.since, "date >= {}"), (self.until, "date <= {}")):
            if bound is not None:
                day = bound.astimezone(UTC).date().isoformat()
                rows = rows.where(keeps.format(f"DATE'{day}'"))
        time = TABLES[table].time or ""
        if self.since is not None:
            rows = rows.where(F.col(time) >= F.lit(self.since))
        if self.until is not None:
            rows = rows.where(F.col(time) < F.lit(self.until))
        rows = rows.where(F.col("queue").isin(*self.queues)) if self.queues else rows
        return rows.select(*columns)

    def _from_database(
        self, spark: SparkSession, table: str, columns: Sequence[str], snapshot: str
    ) -> DataFrame:
        options = self._options(table, columns) | {"snapshot": snapshot}
        options |= {"queue": ",".join(self.queues)} if self.queues else {}
        options |= {"since": self.since.isoformat()} if self.since is not None else {}
        options |= {"until": self.until.isoformat()} if self.until is not None else {}
        return spark.read.format("trioboss").options(**options).load()

    def _options(self, table: str, columns: Sequence[str]) -> dict[str, str]:
        dsn = str(need_dsn(self.dsn))
        return {"dsn": dsn, "schema": self.schema, "table": table, "columns": ",".join(columns)}

    def describe(self) -> str:
        """For people, without a password."""
        return f"lake {self.lake}" if self.lake is not None else f"schema {self.schema}"


def parse_time(text: str) -> datetime:
    """A day or an instant in ISO 8601; without a zone it is UTC."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time like 2026-03-02 or 2026-03-02T10:00Z"
        ) from None
    return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)


def add_history_arguments(parser: argparse.ArgumentParser) -> None:
    """Which history, and which Spark."""
    parser.add_argument(
        "--from-lake", metavar="PATH", help="read a lake that `archive` has written, and no database"
    )
    parser.add_argument(
        "--from", dest="since", type=parse_time, metavar="TIME", help="only what ended at or after it"
    )
    parser.add_argument(
        "--to", dest="until", type=parse_time, metavar="TIME", help="only what ended before it"
    )
    parser.add_argument("--queue", action="append", default=[], help="only this queue; may be repeated")
    add_session_arguments(parser)


def check_source(given: argparse.Namespace) -> bool:
    """Whether the arguments ask for the history of a database and not for that of a lake, or raise UsageError."""
    if given.from_lake is not None and given.dsn is not None:
        raise UsageError("from-lake: give a lake or a dsn, not both")
    if given.since is not None and given.until is not None and given.since >= given.until:
        raise UsageError("from, to: no time is between them")
    for queue in given.queue:
        check_name("queue", queue)
    if given.from_lake is not None:
        check_lake(given.from_lake)
    return given.from_lake is None


def source_of(given: argparse.Namespace, dsn: str | None) -> Source:
    """The source that the arguments ask for, in the database ``dsn`` unless it is a lake."""
    return Source(dsn, given.from_lake, given.schema, given.since, given.until, given.queue)
