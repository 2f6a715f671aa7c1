"""How long do exports take in both formats, and changes of a lake: conversion, compaction, erasing a job?"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from benchmarks.harness.progress import log
from benchmarks.harness.tables import Table
from benchmarks.pipelines.context import PipelineContext, timed
from benchmarks.pipelines.reading import fill_history
from trioboss.pipeline import archive, compact, erase, read_lake

__all__ = ["measure_lakes"]

_BATCHES = 20


def measure_lakes(context: PipelineContext) -> Table:
    """Export a history in 20 batches to Parquet, convert it to Delta, join its files, erase a job."""
    rows = max(1, context.rows // _BATCHES)

    def fill(dsn: str) -> None:
        for _ in range(_BATCHES):  # a transaction is never divided among batches
            fill_history(rows)(dsn)

    name = f"{context.rows:,} archived in {_BATCHES} transactions"
    template = context.server.template(name, fill, context.server.migrated())
    table = Table(f"A lake of {context.rows:,} jobs", ("change", "s", "files"))
    with (
        context.server.database(template.name) as dsn,
        tempfile.TemporaryDirectory(prefix="trioboss-lake-") as folder,
    ):
        for name, change in _changes(context, dsn, Path(folder, "lake")).items():
            took = timed(change)
            files = len(list(Path(folder).rglob("part-*.parquet")))
            table.add(name, took, files)
            log(f"{name}: {took:.2f} s")
    table.notes.append(
        "one run each, in the order of the table; files that were replaced are deleted by `erase`"
    )
    return table


def _changes(context: PipelineContext, dsn: str, lake: Path) -> dict[str, Callable[[], object]]:
    spark = context.spark
    batch_rows = max(1, context.rows // _BATCHES)

    def erase_one() -> None:
        first = read_lake(spark, lake).select("id", "queue").first()
        assert first is not None
        erased = erase(dsn, first["queue"], ids=[first["id"]], lake=lake, spark=spark)
        assert erased.rows_in_lake == 1

    def count_by_duckdb() -> None:
        rows = DeltaTable(str(lake / "jobs")).to_pyarrow_dataset()
        counted = duckdb.from_arrow(rows).aggregate("queue, count(*)").fetchall()
        assert sum(count for _, count in counted) == batch_rows * _BATCHES

    return {
        "export in 20 batches": lambda: archive(dsn, lake, spark=spark, batch_rows=batch_rows),
        "convert to Delta": lambda: archive(dsn, lake, spark=spark, format="delta"),
        "count by queue, DuckDB, Delta": count_by_duckdb,
        "compact": lambda: compact(dsn, lake, spark=spark),
        "count by queue, DuckDB, Delta, compacted": count_by_duckdb,
        "erase a job": erase_one,
    }
