"""Exports history to a lake in batches, each row once, wherever an export is killed and however many are started.

A batch is a range of transactions. Its files are written to a staging folder, and their rows are counted. Then the
database commits the batch, with the place of each file (table `lake`). From then on the batch exists: this export or
the next one moves the files to their places, adds the entry to the manifest, and tells the database that the rows are
in the lake. Before the commit, the files in the staging folder are garbage.

The commit is fenced: each export raises the lake's token when it begins, and only the holder of the last token can
commit. The lock on the lake only turns a second export away early; it ends with its session, and an export can outlive
that. An export that was overtaken can still move files, but only those of a committed batch, to the same places.
"""

import json
from collections.abc import Mapping
from importlib import import_module
from math import ceil
from uuid import UUID, uuid4

import attrs
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from trioboss.errors import TriobossError, UsageError
from trioboss.pipeline.database import Database
from trioboss.pipeline.describing import describe_queries
from trioboss.pipeline.lake import STAGING, find_staged, with_date
from trioboss.pipeline.manifest import FOLDERS, Batch, Identity, Manifest, Origin, rows_by_folder
from trioboss.pipeline.options import Secret
from trioboss.pipeline.planning import read_horizon
from trioboss.pipeline.progress import Reporter, report_stages
from trioboss.postgres.errors import is_lock_not_available

__all__ = ["ExportFenced", "ExportIncomplete", "LakeError", "LakeExport", "Sizes", "take_lake"]


class LakeError(TriobossError):
    """An export cannot go on. The rows of its batch are not in the lake, and the next export has them again."""


class ExportFenced(LakeError):
    """Another export has taken the lake."""

    def __init__(self, root: str) -> None:
        super().__init__(f"{root}: another export has taken this lake, and goes on where this one stopped")


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


def take_lake(
    spark: SparkSession,
    database: Database,
    manifest: Manifest,
    dsn: Secret,
    *,
    adopt: bool = False,
    format: str | None = None,
    redact: tuple[str, ...] | None = None,
    sizes: Sizes | None = None,
) -> "LakeExport":
    """Take a lake for an export or a change, or raise UsageError: it is another database's, or is taken.

    A lake that does not exist is created, in this ``format``, and one that exists is converted to it (None: stays as
    it is). ``redact``: from now on exports leave this out (None: as before). ``adopt``: the lake is this database's
    although its identity has changed.
    """
    identity = _identify(database, manifest, adopt=adopt, format=format, redact=redact)
    try:
        database.run("lock_lake", lake=identity.id)
    except Exception as error:
        if not is_lock_not_available(error):
            raise
        raise UsageError(f"{manifest.files.root}: another export to this lake is running") from error
    contents = manifest.contents()
    ((token, batch, pending),) = database.run(
        "take_lake",
        lake=identity.id,
        address=manifest.files.root,
        batch=contents.batch,
        exported=contents.end,
    )
    export = LakeExport(spark, database, manifest, identity, dsn, token, sizes or Sizes())
    if pending is not None:
        export.finish(Moves.from_json(pending))
        contents = manifest.contents()
    if contents.batch != batch:
        raise UsageError(
            f"{manifest.files.root}: the lake has {contents.batch} batches, and the database has {batch} of them: "
            "one was restored from a backup; export to a new lake"
        )
    manifest.files.delete(STAGING)
    manifest.clean()
    export.batch, export.end = contents.batch, contents.end
    export.synchronize()
    return export


def _identify(
    database: Database,
    manifest: Manifest,
    *,
    adopt: bool,
    format: str | None,
    redact: tuple[str, ...] | None,
) -> Identity:
    """Which lake this is, once it is certain that the history of this database belongs into it."""
    ((server, number),) = database.run("get_identity")
    origin = Origin(server, number, database.catalog.schema)
    with database.transaction():
        # Two exports must not both create the lake.
        database.run("lock_lake_creation")
        identity = manifest.identity() or manifest.create(origin, format or "parquet", redact or ())
        wanted = attrs.evolve(
            identity,
            origin=origin,
            format=format or identity.format,
            redact=identity.redact if redact is None else redact,
        )
        is_ours = identity.origin == origin or (
            adopt and identity.origin is not None and identity.origin.schema == origin.schema
        )
        if identity.format == "delta" and wanted.format != "delta":
            raise UsageError(f"{manifest.files.root}: the lake is a Delta lake, and stays one")
        if is_ours:
            if wanted != identity:
                manifest.change(wanted)
            return wanted
    raise UsageError(
        f"{manifest.files.root}: the lake has the history of {_describe(identity.origin)}, and this is "
        f"{_describe(origin)}; export to a lake of its own, or adopt this one if the server was upgraded by pg_upgrade"
    )


def _describe(origin: Origin | None) -> str:
    if origin is None:
        return "no database: it was made by `synth`"
    return f"schema {origin.schema} of database {origin.database} on server {origin.server}"


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

    def check(self) -> None:
        """Raise ExportFenced if another export has taken the lake."""
        if not self._database.run("check_lake", lake=self.id, token=self._token):
            raise ExportFenced(self.manifest.files.root)

    def hold(self, holds: bool) -> None:
        """Let retention keep rows that are not in the lake, or not."""
        self._database.run("hold_lake", lake=self._identity.id, holds=holds)

    def next_batch(self, progress: Reporter | None) -> Batch | None:
        """Export the next rows that are sealed; None if there are none."""
        end, counts = self._choose_end()
        if not any(counts.values()):
            return None
        staging = f"{STAGING}/{uuid4().hex}"
        written = {
            FOLDERS[table]: self._write(table, count, end, staging, progress) if count else 0
            for table, count in counts.items()
        }
        staged = find_staged(self.manifest.files, staging, self.batch + 1)
        files = tuple(file for _, file in staged)
        if (found := rows_by_folder(files)) != written:
            raise ExportIncomplete(self.manifest.files.root, found, written)
        batch = Batch(self.batch + 1, self.end, end, found, files)
        self.add(batch, tuple(source for source, _ in staged))
        self.manifest.files.delete(staging)
        return batch

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
            "redact": ",".join(self._identity.redact),
        }
        return self.spark.read.format("trioboss").options(**options).load()

    def _commit(self, moves: Moves) -> None:
        """Commit a batch, or raise ExportFenced."""
        if self.manifest.identity() != self._identity:
            raise ExportFenced(self.manifest.files.root)
        committed = self._database.run(
            "commit_batch",
            lake=self._identity.id,
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
        """Put the files of a committed batch in place. Another export may be doing the same."""
        batch = moves.batch
        for source, file in zip(moves.sources, batch.files, strict=True):
            self.manifest.files.move(source, file.path)
        self.manifest.add(batch)
        self.synchronize(batch.kind)
        finished = self._database.run(
            "finish_batch", lake=self._identity.id, token=self._token, number=batch.number, exported=batch.end
        )
        if not finished:
            raise ExportFenced(self.manifest.files.root)
        self.batch, self.end = batch.number, batch.end
