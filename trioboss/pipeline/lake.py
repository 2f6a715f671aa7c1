"""A lake: history in Parquet files, one folder for each table and day.

    PATH/jobs/date=2026-11-16/….parquet        the ended jobs, by the day of completed_on in UTC
    PATH/attempts/date=2026-11-16/….parquet    the attempts that did not complete, by the day of ended_on
    PATH/_manifest/…                           which files are part of the lake (see `manifest`)
    PATH/_staging/TOKEN/…                      files of an export that is running, or was killed

The columns are those of `spark.read.format("trioboss")`, of the tables `archive` and `attempt`. The names of folders
have nothing in them but the day: a queue's name can be longer than a file's name may be, and two queues can have names
that a file system does not tell apart.
"""

from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, StructField, StructType

from trioboss.errors import UsageError
from trioboss.pipeline.columns import TABLES
from trioboss.pipeline.files import Files, is_local, open_files, plain_address
from trioboss.pipeline.manifest import FOLDERS, Batch, LakeFile, Manifest, rows_by_folder

__all__ = [
    "STAGING",
    "check_lake",
    "find_damaged",
    "find_staged",
    "list_files",
    "make_lake",
    "open_lake",
    "read_files",
    "read_lake",
    "with_date",
]

STAGING = "_staging"
"""The folder of files that are not part of the lake yet; in it, each export has one that is named by its token."""


def open_lake(spark: SparkSession | None, lake: str | Path) -> Manifest:
    """The manifest of a lake, by Spark or without it, or raise UsageError if there is no lake."""
    manifest = Manifest(open_files(spark, lake))
    if manifest.identity() is None:
        raise UsageError(f"{lake}: there is no lake here")
    return manifest


def check_lake(lake: str | Path) -> None:
    """Raise UsageError if a folder of this machine is no lake. Other addresses are for Spark, which takes seconds."""
    if is_local(lake):
        open_lake(None, lake)


def find_damaged(manifest: Manifest) -> list[tuple[LakeFile, str]]:
    """The files of a lake that are missing or were changed, each with the problem."""
    sizes = {
        f"{folder}/{file.path}": file.bytes
        for folder in FOLDERS.values()
        for file in manifest.files.walk(folder, ".parquet")
    }
    damaged = []
    for file in manifest.contents().files:
        size = sizes.get(file.path)
        if size is None:
            damaged.append((file, "is missing"))
        elif size != file.bytes:
            damaged.append((file, f"has {size} bytes instead of {file.bytes}"))
    return damaged


def list_files(lake: str | Path, table: str = "archive") -> list[str]:
    """The files of a table of a lake, for engines that take a list: DuckDB, Polars, pandas. Spark is not started.

    These are whole batches, also while the lake is being exported to or compacted, which a pattern like
    ``lake/jobs/**/*.parquet`` does not promise.
    """
    manifest = open_lake(None, lake)
    files = [file.path for file in manifest.contents().files if file.folder == FOLDERS[table]]
    return [plain_address(manifest.files.at(path)) for path in files]


def read_lake(
    spark: SparkSession,
    lake: str | Path,
    table: str = "archive",
    *,
    version: int | None = None,
    without: Collection[str] = (),
) -> DataFrame:
    """The rows of a table that a lake has now, with the column ``date``.

    Reads the files that the manifest names, so a batch is there as a whole or not at all. A file that is missing is an
    error, unless it is among those ``without`` which the lake is to be read. ``version``: of a Delta lake, the rows of
    that version of the table, as long as its files are kept.
    """
    manifest, folder = open_lake(spark, lake), FOLDERS[table]
    if version is None:
        paths = [file.path for file in manifest.contents().files if file.folder == folder]
    else:
        identity = manifest.identity()
        if identity is None or identity.format != "delta":
            raise UsageError("version: only a Delta lake has versions")
        paths = import_module("trioboss.pipeline.delta").list_version(manifest, folder, version)
    return read_files(spark, manifest, table, [path for path in paths if path not in without])


def read_files(spark: SparkSession, manifest: Manifest, table: str, paths: Sequence[str]) -> DataFrame:
    """The rows of some files of a table, with the column `date`."""
    # With the types of the table: Spark would take them from one of the files, which may be older than a new column.
    schema = StructType([*TABLES[table].schema().fields, StructField("date", DateType())])
    if not paths:
        return spark.createDataFrame([], schema)
    reader = spark.read.schema(schema).option("basePath", manifest.files.at(FOLDERS[table]))
    return reader.parquet(*map(manifest.files.at, paths))


def with_date(rows: DataFrame, table: str) -> DataFrame:
    """The rows with the day in UTC to which each belongs, whatever the time zone of the session is."""
    return rows.withColumn("date", _utc_day(F.col(TABLES[table].time or "")))


def _utc_day(instant: Column) -> Column:
    days = F.floor(F.unix_seconds(instant) / F.lit(86400)).cast("int")
    return F.date_add(F.lit("1970-01-01").cast("date"), days)


def find_staged(files: Files, staging: str, number: int, token: int = 0) -> list[tuple[str, LakeFile]]:
    """The Parquet files in a staging folder, each with the file of the lake that it becomes.

    No two exports give a file the same name, not even if one has the other's batch again.
    """
    found = sorted(files.walk(staging, ".parquet"), key=lambda file: file.path)
    return [
        (
            f"{staging}/{file.path}",
            LakeFile(
                f"{file.path.rpartition('/')[0]}/part-{number:010}-{token}-{place:05}.parquet",
                files.count_rows(f"{staging}/{file.path}"),
                file.bytes,
            ),
        )
        for place, file in enumerate(found)
    ]


def make_lake(manifest: Manifest, frames: Mapping[str, DataFrame]) -> None:
    """Make a new lake of one batch, with the rows of these DataFrames by the names of their tables."""
    files = manifest.files
    manifest.create(None)
    for table, frame in frames.items():
        with_date(frame, table).write.partitionBy("date").parquet(files.at(f"{STAGING}/{FOLDERS[table]}"))
    staged = find_staged(files, STAGING, 1)
    for source, file in staged:
        files.move(source, file.path)
    placed = tuple(file for _, file in staged)
    manifest.add(Batch(1, 0, 0, rows_by_folder(placed), placed))
    files.delete(STAGING)
