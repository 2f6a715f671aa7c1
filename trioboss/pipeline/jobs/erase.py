"""Erases jobs by id or by key, in a lake and in Postgres, and proves it by a search afterwards.

Rows of the jobs, their attempts, and all copies of their data go: dead letter jobs, jobs that these were redriven to,
and completion jobs. In the lake the files that had such rows are replaced, and they and all other files that are no
longer part of it are deleted at once: so readers that have begun may fail, and older versions of a Delta lake cannot be
read any more. An erasure that was killed is finished by running it again.

A job that fails meanwhile leaves a new copy. So the jobs are searched for and erased until a search finds no row; that
last search is the proof. Backups, replicas of the lake and rejected rows of bulk loads are not touched, and neither are
other lakes of the database: the proof lists them.
"""

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
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
from trioboss.pipeline.export import LakeExport
from trioboss.pipeline.files import open_files
from trioboss.pipeline.jobs.compact import TARGET
from trioboss.pipeline.lake import check_lake, open_lake
from trioboss.pipeline.manifest import Manifest
from trioboss.pipeline.options import need_dsn
from trioboss.pipeline.session import get_session
from trioboss.pipeline.taking import take_lake
from trioboss.pipeline.terminal import print_json
from trioboss.store.context import text_array, uuid_array

__all__ = ["Erased", "ErasureIncomplete", "erase", "main"]


_ROUNDS = 10
"""So often jobs are searched for: each time after the first only copies are found that were made meanwhile."""


class ErasureIncomplete(TriobossError):
    """Rows were found after each deletion."""

    def __init__(self, rows: int) -> None:
        super().__init__(
            f"erase: {rows} rows were found at the last of {_ROUNDS} searches: new jobs are being sent, or copied, "
            "faster than they are erased; stop the programs that send them, and run it again"
        )


@attrs.frozen
class Erased:
    """The proof of an erasure."""

    queue: str
    jobs: list[JobName]
    """The queue and the id of each job of which no row is left: those given by id, those of the key, and copies."""
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
    """How many rows of these jobs the last search found, in the lake and in Postgres."""
    other_lakes: list[str]
    """The addresses of the database's other lakes, which were not searched and may have rows of these jobs."""
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
    """Erase the jobs of a queue that have one of these ids, or this key, or raise ErasureIncomplete."""
    wanted = _check(queue, ids, key)
    address = need_dsn(dsn)
    if lake is None:
        with open_database(address, schema) as database:
            return _Erasure(database, wanted, None).run()
    spark = spark or get_session()
    open_lake(spark, lake)
    with open_database(address, schema) as database, describe_queries(spark, "erase"):
        # Taken, so that no export can bring a row to the lake meanwhile.
        export = take_lake(spark, database, Manifest(open_files(spark, lake)), address)
        if key is not None and "singleton_key" in export.leaves_out("archive"):
            raise UsageError(
                f"key: exports leave singleton_key out of {lake}, so the rows of a key cannot be found there: name the "
                "jobs by their ids"
            )
        return _Erasure(database, wanted, export).run()


def _check(queue: str, ids: Sequence[str], key: str | None) -> Wanted:
    check_name("queue", queue)
    if not ids and key is None:
        raise UsageError("id, key: name the jobs that are to be erased")
    try:
        return Wanted(queue, tuple(str(UUID(id)) for id in ids), key)
    except ValueError as error:
        raise UsageError(f"id: {error}") from None


@attrs.define
class _Erasure:
    """An erasure that is running, in Postgres and, if there is one, in a lake that was taken."""

    _database: Database
    _wanted: Wanted
    _export: LakeExport | None
    _names: set[JobName] = attrs.field(init=False)
    """All jobs that were found until now. Those given by id are among them, whether they have rows or not."""
    _deleted: Counter[str] = attrs.field(factory=Counter)
    _files: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        self._names = {(self._wanted.queue, id) for id in self._wanted.ids}

    def run(self) -> Erased:
        for _ in range(_ROUNDS):
            self._find()
            if not (left := self._count()):
                self._delete_removed()
                return self._prove(left)
            if self._export is not None:
                self._erase_in_lake(self._export)
            self._delete()
        raise ErasureIncomplete(left)

    def _find(self) -> None:
        """Add all jobs that have rows now, and those that have copies of the data of any of them."""
        while True:
            self._names |= self._find_in_postgres()
            if self._export is None:
                return
            with describe_queries(self._export.spark, "find"):
                found = find_in_lake(self._export, self._wanted, self._names)
            if found <= self._names:
                return
            self._names |= found  # Postgres may have copies of jobs of which only the lake still has rows

    def _find_in_postgres(self) -> set[JobName]:
        names = sorted(self._names)
        rows = self._database.run(
            "find_copies",
            queue=self._wanted.queue,
            key=self._wanted.key,
            queues=text_array(queue for queue, _ in names),
            ids=uuid_array(UUID(id) for _, id in names),
        )
        return {(queue, str(id)) for queue, id in rows}

    def _count(self) -> int:
        """How many rows of the jobs there are."""
        rows = 0
        for queue, ids in _by_queue(self._names).items():
            rows += self._database.run("count_jobs_of", queue=queue, ids=ids)[0][0]
        if self._export is not None:
            with describe_queries(self._export.spark, "search for what is left"):
                rows += count_rows(self._export, self._names)
        return rows

    def _erase_in_lake(self, export: LakeExport) -> None:
        with describe_queries(export.spark, "rewrite"):
            rows, replaced = erase_rows(export, self._names, TARGET)
        self._files += [file.path for file in replaced]
        self._deleted.update(rows_in_lake=rows, files_deleted=0 if export.keeps_removed else len(replaced))

    def _delete_removed(self) -> None:
        """Delete the files that a Delta lake keeps: whatever removed them, they may have rows of these jobs."""
        if self._export is not None and self._export.keeps_removed:
            self._deleted.update(files_deleted=self._export.manifest.delete_removed())

    def _delete(self) -> None:
        """Delete all rows in Postgres, or none."""
        with self._database.transaction():
            for queue, ids in _by_queue(self._names).items():
                ((live, ended, attempts, _),) = self._database.run("erase_jobs", queue=queue, ids=ids)
                self._deleted.update(live=live, ended=ended, attempts=attempts)

    def _prove(self, rows_left: int) -> Erased:
        here = None
        if self._export is not None:
            # An export that took the lake meanwhile may have brought rows to it after the search.
            self._export.check()
            here = self._export.id
        names = ("live", "ended", "attempts", "rows_in_lake", "files_deleted")
        return Erased(
            queue=self._wanted.queue,
            jobs=sorted(self._names),
            **{name: self._deleted[name] for name in names},
            files_replaced=self._files,
            batch=None if self._export is None else self._export.batch,
            rows_left=rows_left,
            other_lakes=[address for id, address in self._database.run("list_lakes") if id != here],
            finished_on=datetime.now(UTC),
        )


def _by_queue(names: Collection[JobName]) -> Mapping[str, object]:
    """For each queue the ids of its jobs, as a parameter."""
    ids = defaultdict(list)
    for queue, id in names:
        ids[queue].append(UUID(id))
    return {queue: uuid_array(of_queue) for queue, of_queue in ids.items()}


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
    check_lake(given.lake)
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
    if done.other_lakes:
        print(
            f"not searched: {', '.join(done.other_lakes)}: erase there, too, or forget lakes that are gone "
            "(archive --forget)",
            file=sys.stderr,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
