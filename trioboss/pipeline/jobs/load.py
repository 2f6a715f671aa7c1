"""Loads files or a table into a queue, each row once, however often the load is killed and started again."""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import SparkSession

__all__ = ["load"]


def load(
    files: Sequence[str],
    queue: str,
    dsn: str | None = None,
    *,
    spark: SparkSession | None = None,
    schema: str = "trioboss",
    mapping: Mapping[str, str] | None = None,
    dry_run: bool = False,
    load_id: str | None = None,
    release_rate: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> None:
    """Load files into a queue."""
    raise NotImplementedError
