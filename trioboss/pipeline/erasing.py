"""Finds and erases jobs in a lake: their rows, and those of jobs that have a copy of their data.

A dead letter job has the payload of the job that failed, and so has a job that it was redriven to; a completion job has
the payload and the output of the job that ended. All are erased with it.
"""

from collections.abc import Collection

import attrs
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from trioboss.pipeline.export import LakeExport
from trioboss.pipeline.lake import read_files
from trioboss.pipeline.manifest import FOLDERS, LakeFile
from trioboss.pipeline.rewriting import rewrite_files

__all__ = ["JobName", "Wanted", "count_rows", "erase_rows", "find_in_lake"]

JobName = tuple[str, str]
"""A job: the names of its queue, and its id."""

_ID = {"archive": "id", "attempt": "job_id"}
_COMPLETIONS = "__state__completed__"


@attrs.frozen
class Wanted:
    """The jobs that are to be erased: of one queue, by id or by key."""

    queue: str
    ids: tuple[str, ...] = ()
    key: str | None = None

    def condition(self, id_column: str) -> Column:
        """Whether a row is one of them."""
        matches = F.col(id_column).isin(*self.ids) if self.ids else F.lit(False)
        if self.key is not None:
            matches = matches | F.col("singleton_key").eqNullSafe(self.key)
        return (F.col("queue") == self.queue) & matches


def find_in_lake(export: LakeExport, wanted: Wanted, known: Collection[JobName]) -> set[JobName]:
    """The wanted jobs that a lake has rows of, those ``known`` already, and all that have a copy of their data."""
    jobs, attempts = (_read(export, table) for table in FOLDERS)
    found = set(known)
    for rows, column in ((jobs, _ID["archive"]), (attempts, _ID["attempt"])):
        found |= _collect(rows.where(wanted.condition(column)), column)
    original = F.coalesce(
        F.col("source_id"),
        F.col("redriven_from"),
        F.when(F.col("queue").startswith(_COMPLETIONS), F.get_json_object("data", "$.request.id")),
    )
    copies = jobs.where(original.isNotNull()).withColumn("original", original)
    new = found
    while new:
        ids = export.spark.createDataFrame([(id,) for _, id in new], "original string")
        new = _collect(copies.join(F.broadcast(ids), "original", "left_semi"), "id") - found
        found |= new
    return found


def count_rows(export: LakeExport, names: Collection[JobName]) -> int:
    """How many rows of these jobs a lake has."""
    return sum(_of(export, _read(export, table), table, names).count() for table in FOLDERS) if names else 0


def erase_rows(export: LakeExport, names: Collection[JobName], target: int) -> tuple[int, list[LakeFile]]:
    """Rewrite the files that have rows of these jobs without them; return how many rows, and the files, there were."""
    files = {file.path: file for file in export.manifest.contents().files}
    affected: list[LakeFile] = []
    for table, folder in FOLDERS.items():
        if not names or not any(file.folder == folder for file in files.values()):
            continue
        rows = _read(export, table).withColumn("file", F.col("_metadata.file_path"))
        paths = _of(export, rows, table, names).select("file").distinct().collect()
        ends = {f"{folder}/{path.rpartition(f'/{folder}/')[2]}" for (path,) in paths}
        affected += [files[end] for end in sorted(ends)]
    if not affected:
        return 0, []

    def keep(rows: DataFrame, table: str) -> DataFrame:
        return rows.join(_names(export, table, names), ["queue", _ID[table]], "left_anti")

    batch = rewrite_files(export, affected, "erase", target=target, keep=keep)
    return sum(file.rows for file in affected) - sum(file.rows for file in batch.files), affected


def _read(export: LakeExport, table: str) -> DataFrame:
    files = export.manifest.contents().files
    paths = [file.path for file in files if file.folder == FOLDERS[table]]
    return read_files(export.spark, export.manifest, table, paths)


def _of(export: LakeExport, rows: DataFrame, table: str, names: Collection[JobName]) -> DataFrame:
    return rows.join(_names(export, table, names), ["queue", _ID[table]], "left_semi")


def _names(export: LakeExport, table: str, names: Collection[JobName]) -> DataFrame:
    return F.broadcast(export.spark.createDataFrame(sorted(names), f"queue string, {_ID[table]} string"))


def _collect(rows: DataFrame, column: str) -> set[JobName]:
    return {(row[0], row[1]) for row in rows.select("queue", column).distinct().collect()}
