"""Replaces files of a lake: by larger ones, by the same without some rows, or by nothing.

Such a change is a batch like that of an export: its files are written to the staging folder, the database commits it,
and only then it becomes part of the manifest. So a change that is killed happens as a whole or not at all, and readers
see the files before it or after it. The lake must be taken (`taking.take_lake`), as for an export.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime
from math import ceil

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from trioboss.pipeline.export import ExportIncomplete, LakeExport
from trioboss.pipeline.lake import read_files
from trioboss.pipeline.manifest import FOLDERS, Batch, LakeFile, RemovedFile, rows_by_folder

__all__ = ["drop_files", "find_old", "find_small", "rewrite_files"]

Keep = Callable[[DataFrame, str], DataFrame]
"""Takes the rows of a table and returns those that are to stay."""


def find_small(files: Iterable[LakeFile], target: int, at_least: int = 2) -> list[LakeFile]:
    """The files that are worth joining: of a day, those below half of the target size, if there are several."""
    days: dict[tuple[str, str], list[LakeFile]] = defaultdict(list)
    for file in files:
        if file.bytes < target / 2:
            days[file.folder, file.day].append(file)
    return [file for small in days.values() if len(small) >= at_least for file in small]


def find_old(files: Iterable[LakeFile], before: date) -> list[LakeFile]:
    """The files with rows of days before that one."""
    return [file for file in files if date.fromisoformat(file.day) < before]


def drop_files(export: LakeExport, files: Collection[LakeFile]) -> None:
    """Remove files from a lake, and their rows with them."""
    if files:
        export.add(_batch(export, files, (), "retain"), ())


def rewrite_files(
    export: LakeExport, files: Collection[LakeFile], kind: str, *, target: int, keep: Keep | None = None
) -> Batch:
    """Replace files by others of about ``target`` bytes that have the same rows, or those that ``keep`` returns."""
    staging = export.new_staging()
    written = {
        folder: _write(
            export, table, [file for file in files if file.folder == folder], staging, target, keep
        )
        for table, folder in FOLDERS.items()
    }
    staged = export.find_staged(staging)
    made = tuple(file for _, file in staged)
    found, before = rows_by_folder(made), rows_by_folder(files)
    if found != written or (keep is None and found != before):
        raise ExportIncomplete(export.manifest.files.root, found, written if keep else before)
    batch = _batch(export, files, made, kind)
    export.add(batch, tuple(source for source, _ in staged))
    export.manifest.files.delete(staging)
    return batch


def _batch(export: LakeExport, files: Iterable[LakeFile], made: tuple[LakeFile, ...], kind: str) -> Batch:
    now = datetime.now(UTC).isoformat()
    removed = tuple(RemovedFile(file.path, now) for file in files)
    # No transaction has rows in it: the lake is where it was.
    return Batch(export.batch + 1, export.end, export.end, rows_by_folder(()), made, removed, kind)


def _write(
    export: LakeExport, table: str, files: list[LakeFile], staging: str, target: int, keep: Keep | None
) -> int:
    """Write the rows of files to the staging folder, each day by one task; return how many were written."""
    if not files:
        return 0
    rows = read_files(export.spark, export.manifest, table, [file.path for file in files])
    if keep is not None:
        rows = keep(rows, table)
    written = Observation(f"trioboss {table}")
    rows = rows.observe(written, F.count(F.lit(1)).alias("rows"))
    row_bytes = sum(file.bytes for file in files) / max(1, sum(file.rows for file in files))
    days = len({file.day for file in files})
    (
        rows.repartition(min(days, 200), "date")
        .write.mode("overwrite")
        .option("maxRecordsPerFile", max(1, ceil(target / max(row_bytes, 1.0))))
        .partitionBy("date")
        .parquet(export.manifest.files.at(f"{staging}/{FOLDERS[table]}"))
    )
    return int(written.get["rows"])
