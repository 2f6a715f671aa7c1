"""Exports history to a lake in batches, each row once, wherever an export is killed and however many are started.

A batch is a range of transactions. Its files are written to a staging folder, and their rows are counted. Then the
database commits the batch, with the place of each file (table `lake`). From then on the batch exists: this export or
the next one moves the files to their places, adds the entry to the manifest, and tells the database that the rows are
in the lake. Before the commit, the files in the staging folder are garbage.

The commit is fenced: each export raises the lake's token when it begins, and only the export with the last token can
commit. The lock on the lake only turns a second export away early; it ends with its session, and an export can outlive
that. An export that was overtaken can still move files, but only those of a committed batch, to the same places, and
delete staging folders, but only of exports before it: each is named by a token.

If files of a committed batch are lost before they are in place, the batch can never be finished. It can be dropped:
a batch with the same number takes its place, which has no rows and removes its files. So its rows are exported again.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import import_module
from math import ceil
from uuid import UUID, uuid4

import attrs
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from trioboss.errors import TriobossError, UsageError
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.database import Database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.lake import STAGING, find_staged, with_date
from trioboss.pipeline.manifest import (
    FOLDERS,
    Batch,
    Identity,
    LakeFile,
    Manifest,
    RemovedFile,
    rows_by_folder,
)
from trioboss.pipeline.options import Secret
from trioboss.pipeline.planning import read_horizon
from trioboss.pipeline.progress import Reporter, report_stages
from trioboss.pipeline.redaction import columns_left_out

__all__ = ["ExportFenced", "ExportIncomplete", "FilesLost", "LakeError", "LakeExport", "Moves", "Sizes"]


class LakeError(TriobossError):
    """An export cannot go on. The rows of its batch are not in the lake, and the next export has them again."""


class ExportFenced(LakeError):
    """Another export has taken the lake."""

    def __init__(self, root: str) -> None:
        super().__init__(f"{root}: another export has taken this lake, and goes on where this one stopped")


class FilesLost(LakeError):
    """A file of a committed batch is gone before it was in place."""

    def __init__(self, root: str, number: int, problem: str) -> None:
        super().__init__(
            f"{problem}. Batch {number} was committed with this file: restore it and export again, or drop the batch: "
            f"`trioboss pipeline archive --to {root} --drop-pending` exports its rows again"
        )


class ExportIncomplete(LakeError):
    """Files that were written are gone, or have fewer rows than were written."""

    def __init__(self, root: str, found: Mapping[str, int], written: Mapping[str, int]) -> None:
        rows = ", ".join(f"{found[folder]} of {written[folder]} {folder}" for folder in written)
        super().__init__(f"{root}: of the rows that were written, the files have {rows}: export again")


@attrs.frozen
class Sizes:
    """How an export divides its work."""

    batch_rows: int = 1_000_000
    task_rows: int = 250_000
    concurrency: int = 2
    # The server gives an export the same priority as others: while its statement runs, workers wait for a core.
    # So history is read by statements of a few milliseconds, which makes an export a little slower.
    chunk_rows: int = 1_000


@attrs.frozen
class Moves:
    """A committed batch, and where its files are until they are in place."""

    batch: Batch
    sources: tuple[str, ...]

    def to_json(self) -> str:
        """For the table `lake`."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Moves":
        """From the table `lake`."""
        found = json.loads(text)
        return cls(Batch.from_json(found["batch"]), tuple(found["sources"]))


@attrs.define
class LakeExport:
    """An export that has taken a lake."""

    spark: SparkSession
    _database: Database
    manifest: Manifest
    _identity: Identity
    _dsn: Secret
    _token: int
    _sizes: Sizes
    batch: int = 0
    """The number of the last batch."""
    end: int = 0
    """All rows of transactions before this one are in the lake."""

    @property
    def id(self) -> UUID:
        """The id of the lake."""
        return self._identity.id

    @property
    def keeps_removed(self) -> bool:
        """Whether the lake keeps files that were removed for a while."""
        return self._identity.keeps_removed

    def leaves_out(self, table: str) -> tuple[str, ...]:
        """The columns, and fields of JSON, of a table that exports to this lake leave out."""
        chosen = self._identity.columns
        return (*self._identity.redact, *(columns_left_out(chosen, TABLES[table]) if chosen else ()))

    def check(self) -> None:
        """Raise ExportFenced if another export has taken the lake."""
        if not self._database.run("check_lake", lake=self.id, token=self._token):
            raise ExportFenced(self.manifest.files.root)

    def hold(self, holds: bool) -> None:
        """Let retention keep rows that are not in the lake, or not."""
        self._database.run("hold_lake", lake=self.id, holds=holds)

    def next_batch(self, progress: Reporter | None) -> Batch | None:
        """Export the next rows that are sealed; None if there are none."""
        end, counts = self._choose_end()
        if not any(counts.values()):
            return None
        staging = self.new_staging()
        written = {
            FOLDERS[table]: self._write(table, count, end, staging, progress) if count else 0
            for table, count in counts.items()
        }
        staged = self.find_staged(staging)
        files = tuple(file for _, file in staged)
        if (found := rows_by_folder(files)) != written:
            raise ExportIncomplete(self.manifest.files.root, found, written)
        batch = Batch(self.batch + 1, self.end, end, found, files)
        self.add(batch, tuple(source for source, _ in staged))
        self.manifest.files.delete(staging)
        return batch

    def new_staging(self) -> str:
        """A folder for files that are not part of the lake yet."""
        return f"{STAGING}/{self._token}/{uuid4().hex}"

    def find_staged(self, staging: str) -> list[tuple[str, LakeFile]]:
        """The files in a staging folder, each with the file that it becomes in the next batch."""
        return find_staged(self.manifest.files, staging, self.batch + 1, self._token)

    def clean(self) -> None:
        """Delete what exports before this one have left behind. One of them may still be running."""
        files = self.manifest.files
        for name in files.names(STAGING):
            if not name.isdigit() or int(name) < self._token:
                files.delete(f"{STAGING}/{name}")
        self.manifest.clean()
        if not self.keeps_removed:
            self.manifest.delete_removed()

    def add(self, batch: Batch, sources: tuple[str, ...]) -> None:
        """Add a batch whose files are in these places, or raise ExportFenced."""
        moves = Moves(batch, sources)
        self._commit(moves)
        self.finish(moves)

    def count_left(self) -> int:
        """How many rows are sealed, and are not in the lake."""
        sealed = read_horizon(self._database).sealed
        count = self._database.run
        return sum(
            count("count_history", of={"archive": table}, first=self.end, sealed=sealed)[0][0]
            for table in FOLDERS
        )

    def _choose_end(self) -> tuple[int, dict[str, int]]:
        """The transaction at which the next batch ends, and about how many rows of each table it has."""
        first, end = self.end, read_horizon(self._database).sealed
        if end < first:
            raise UsageError(
                f"the lake is at transaction {first}, the database at {end}: it was restored from a dump, or is "
                "another one; export it to a new lake"
            )
        run = self._database.run
        if not any(run("find_new", of={"archive": table}, first=first, sealed=end) for table in FOLDERS):
            return end, {}  # two searches in an index are all that an idle export costs
        for table in FOLDERS:
            of = {"archive": table}
            for (cut,) in run("find_cut", of=of, first=first, sealed=end, limit=self._sizes.batch_rows):
                ((new,),) = run("find_new", of=of, first=first, sealed=end)
                end = max(cut, new + 1)
        counts = {
            table: run("count_history", of={"archive": table}, first=first, sealed=end)[0][0]
            for table in FOLDERS
        }
        return end, counts

    def _write(self, table: str, count: int, end: int, staging: str, progress: Reporter | None) -> int:
        """Write the rows of a table to the staging folder; return how many Spark has written."""
        written = Observation(f"trioboss {table}")
        rows = self._read(table, count, end).observe(written, F.count(F.lit(1)).alias("rows"))
        folder = self.manifest.files.at(f"{staging}/{FOLDERS[table]}")
        what = f"export {FOLDERS[table]}"
        with describe_queries(self.spark, what), report_stages(self.spark, what, progress, count):
            with_date(rows, table).write.mode("overwrite").partitionBy("date").parquet(folder)
        return int(written.get["rows"])

    def _read(self, table: str, count: int, end: int) -> DataFrame:
        options: dict[str, str | int] = {
            "dsn": str(self._dsn),
            "schema": self._database.catalog.schema,
            "table": table,
            "fromXid": self.end,
            "toXid": end,
            "numPartitions": ceil(count / self._sizes.task_rows),
            "concurrency": self._sizes.concurrency,
            "chunkRows": self._sizes.chunk_rows,
            "redact": ",".join(self.leaves_out(table)),
        }
        return self.spark.read.format("trioboss").options(**options).load()

    def _commit(self, moves: Moves) -> None:
        """Commit a batch, or raise ExportFenced."""
        if self.manifest.identity() != self._identity:
            raise ExportFenced(self.manifest.files.root)
        committed = self._database.run(
            "commit_batch",
            lake=self.id,
            token=self._token,
            number=moves.batch.number,
            pending=moves.to_json(),
        )
        if not committed:
            raise ExportFenced(self.manifest.files.root)

    def synchronize(self, kind: str = "export") -> None:
        """Bring the tables of a Delta lake up to date with the manifest. An export may have been killed before that."""
        if self._identity.format == "delta":
            # Imported here: only Delta lakes need the package.
            import_module("trioboss.pipeline.delta").synchronize(self.manifest, self._identity, kind)

    def finish(self, moves: Moves) -> None:
        """Put the files of a committed batch in place, or raise FilesLost. Another export may be doing the same."""
        batch, files = moves.batch, self.manifest.files
        try:
            for source, file in zip(moves.sources, batch.files, strict=True):
                files.move(source, file.path)
        except FileNotFoundError as error:
            raise FilesLost(files.root, batch.number, str(error)) from None
        self.manifest.add(batch)
        # The entry that is there counts: an export that was overtaken may have finished a batch that was to be dropped.
        contents = self.manifest.contents()
        self.synchronize(batch.kind)
        finished = self._database.run(
            "finish_batch", lake=self.id, token=self._token, number=batch.number, exported=contents.end
        )
        if not finished:
            raise ExportFenced(files.root)
        self.batch, self.end = contents.batch, contents.end
        if batch.removed and not self.keeps_removed:
            self.manifest.delete_removed()

    def drop(self, lost: Batch) -> None:
        """Drop a batch that was committed and cannot be finished: its rows are exported again."""
        now = datetime.now(UTC).isoformat()
        removed = tuple(RemovedFile(file.path, now) for file in lost.files)
        batch = Batch(lost.number, self.end, self.end, rows_by_folder(()), (), removed, "drop")
        moves = Moves(batch, ())
        replaced = self._database.run(
            "replace_batch", lake=self.id, token=self._token, number=lost.number, pending=moves.to_json()
        )
        if not replaced:
            raise ExportFenced(self.manifest.files.root)
        self.finish(moves)
