"""Erases jobs by id or by key, in a lake and in Postgres, and proves it by a search afterwards.

Rows of the jobs, their attempts, and all copies of their data go: dead letter jobs and completion jobs. In the lake the
files that had such rows are replaced, and they and all other files that are no longer part of it are deleted at once:
so readers that have begun may fail, and older versions of a Delta lake cannot be read any more. Backups, replicas of
the lake and rejected rows of bulk loads are not touched. An erasure that was killed is finished by running it again.
"""

import argparse
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import attrs
from pyspark.sql import SparkSession

from trioboss.errors import TriobossError, UsageError
from trioboss.model.check import check_name
from trioboss.pipeline.arguments import add_session_arguments, open_run
from trioboss.pipeline.database import Database, open_database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.erasing import JobName, Wanted, count_rows, erase_rows, find_in_lake
from trioboss.pipeline.export import take_lake
from trioboss.pipeline.files import open_files
from trioboss.pipeline.jobs.compact import TARGET
from trioboss.pipeline.lake import open_lake
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.session import get_session
from trioboss.pipeline.terminal import print_json
from trioboss.store.context import uuid_array

__all__ = ["Erased", "erase", "main"]


@attrs.frozen
class Erased:
    """The proof of an erasure."""

    queue: str
    jobs: list[JobName]
    """The jobs that were erased, copies included: the queue and the id of each."""
    live: int
    ended: int
    attempts: int
    """How many rows of each were deleted in Postgres."""
    rows_in_lake: int
    """How many rows were erased in the lake."""
    files_replaced: list[str]
    files_deleted: int
    batch: int | None
    """The last batch of the lake, which has none of the rows any more; None: there is no lake."""
    rows_left: int
    """How many rows of these jobs a search found afterwards, in the lake and in Postgres."""
    finished_on: datetime


def erase(
    dsn: str | None,
    queue: str,
    *,
    ids: Sequence[str] = (),
    key: str | None = None,
    lake: str | Path | None = None,
    spark: SparkSession | None = None,
    schema: str = "trioboss",
) -> Erased:
    """Erase the jobs of a queue that have one of these ids, or this key; raise TriobossError if rows are left."""
    wanted = _check(queue, ids, key)
    address = need_dsn(dsn)
    if lake is None:
        with open_database(address, schema) as database:
            names = _find(database, wanted)
            deleted = _delete(database, names)
            return _prove(wanted, names, deleted, 0, [], 0, None, _count(database, names))
    spark = spark or get_session()
    open_lake(spark, lake)
    with open_database(address, schema) as database, describe_queries(spark, "erase"):
        manifest = Manifest(open_files(spark, lake))
        # Taken, so that no export can bring a row to the lake between the two deletions.
        export = take_lake(spark, database, manifest, address)
        with describe_queries(spark, "find"):
            names = find_in_lake(export, wanted, _find(database, wanted))
        with describe_queries(spark, "rewrite"):
            rows, replaced = erase_rows(export, names, TARGET)
        deleted = _delete(database, names)
        files_deleted = manifest.delete_removed(datetime.now(UTC) + timedelta(days=1))
        with describe_queries(spark, "search for what is left"):
            left = count_rows(export, names) + _count(database, names)
        paths = [file.path for file in replaced]
        return _prove(wanted, names, deleted, rows, paths, files_deleted, export.batch, left)


def _check(queue: str, ids: Sequence[str], key: str | None) -> Wanted:
    check_name("queue", queue)
    if not ids and key is None:
        raise UsageError("id, key: name the jobs that are to be erased")
    try:
        return Wanted(queue, tuple(str(UUID(id)) for id in ids), key)
    except ValueError as error:
        raise UsageError(f"id: {error}") from None


def _prove(
    wanted: Wanted,
    names: Collection[JobName],
    deleted: tuple[int, int, int],
    rows: int,
    replaced: list[str],
    files_deleted: int,
    batch: int | None,
    left: int,
) -> Erased:
    if left:
        raise TriobossError(f"erase: {left} rows were found afterwards: run it again")
    return Erased(
        wanted.queue, sorted(names), *deleted, rows, replaced, files_deleted, batch, left, datetime.now(UTC)
    )


# -- in Postgres


def _find(database: Database, wanted: Wanted) -> set[JobName]:
    ids = uuid_array(UUID(id) for id in wanted.ids)
    rows = database.run("find_copies", queue=wanted.queue, ids=ids, key=wanted.key)
    return {(queue, str(id)) for queue, id in rows}


def _by_queue(names: Collection[JobName]) -> Mapping[str, str]:
    """For each queue the ids of its jobs, as a parameter."""
    ids = defaultdict(list)
    for queue, id in names:
        ids[queue].append(UUID(id))
    return {queue: uuid_array(of_queue) for queue, of_queue in ids.items()}


def _delete(database: Database, names: Collection[JobName]) -> tuple[int, int, int]:
    """All or none: how many live jobs, ended jobs and attempts were deleted."""
    with database.transaction():
        counts = [
            database.run("erase_jobs", queue=queue, ids=ids)[0] for queue, ids in _by_queue(names).items()
        ]
    live, ended, attempts = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    return live, ended, attempts


def _count(database: Database, names: Collection[JobName]) -> int:
    return sum(
        database.run("count_jobs_of", queue=queue, ids=ids)[0][0] for queue, ids in _by_queue(names).items()
    )


def main(argv: list[str] | None = None) -> int:
    """The command, for spark-submit and for `trioboss pipeline erase`."""
    parser = argparse.ArgumentParser(
        prog="trioboss pipeline erase",
        description="Erase jobs in a lake and in Postgres, with their attempts and all copies of their data.",
        epilog="Prints the proof as JSON.",
    )
    parser.add_argument("--queue", required=True, help="the name of the queue")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--id", action="append", default=[], help="the id of a job; may be repeated")
    which.add_argument("--key", help="the singleton_key of the jobs")
    parser.add_argument("--lake", metavar="PATH", required=True, help="the lake")
    add_session_arguments(parser)
    given = parser.parse_args(argv)
    _check(given.queue, given.id, given.key)
    with open_run(given) as run:
        done = erase(
            run.dsn,
            given.queue,
            ids=given.id,
            key=given.key,
            lake=given.lake,
            spark=run.spark,
            schema=given.schema,
        )
    print_json(attrs.asdict(done))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
