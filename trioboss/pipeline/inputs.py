"""The inputs of a load: files of several formats, tables, DataFrames; and how their columns become jobs."""

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from trioboss.errors import UsageError
from trioboss.pipeline.files import open_files
from trioboss.pipeline.rows import JOB_COLUMNS

__all__ = ["check_inputs", "check_mapping", "digest_files", "open_input", "shape_jobs"]

_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_PACKED = (".gz", ".bz2", ".zst", ".lz4", ".snappy")
_CORRUPT = "_corrupt_record"
_CSV = {"header": "true", "escape": '"', "enforceSchema": "false"}
_PATTERN = re.compile(r"[*?\[\]{}\\]|^\w+:")  # several files, or an address
_LARGE = 8 << 20  # bytes from which on a CSV file is worth several tasks


def open_input(spark: SparkSession, given: Sequence[str] | DataFrame) -> DataFrame:
    """The rows of a DataFrame, of files, or of tables, one after the other."""
    if isinstance(given, DataFrame):
        return given
    if not given:
        raise UsageError("files: none were given")
    return reduce(DataFrame.unionByName, [_open(spark, name) for name in given])


def digest_files(spark: SparkSession, given: Sequence[str] | DataFrame) -> list[str] | None:
    """The digests of all files, sorted: the same for the same contents, wherever they are; None for other inputs."""
    if isinstance(given, DataFrame) or not all(map(_format, given)):
        return None
    digests = []
    for name in given:
        files = open_files(spark, name)
        try:
            digests += [f"{_format(name)} {files.digest(file.path)}" for file in files.matching()]
        except FileNotFoundError:
            raise UsageError(f"{name}: no such file") from None
    return sorted(digests)


def _format(name: str) -> str | None:
    for packed in _PACKED:
        name = name.removesuffix(packed)
    plain = name.rstrip("/").lower()
    return next((found for suffix, found in _FORMATS.items() if plain.endswith(suffix)), None)


def _open(spark: SparkSession, name: str) -> DataFrame:
    kind = _format(name)
    if kind == "parquet":
        return spark.read.parquet(name)
    if kind == "csv":
        return _open_csv(spark, name)
    if kind == "json":
        return _open_json(spark, name)
    if spark.catalog.tableExists(name):
        return spark.table(name)
    raise UsageError(_neither(name))


def _neither(name: str) -> str:
    return f"{name}: neither a table nor a file that ends in {', '.join(_FORMATS)}"


def _open_csv(spark: SparkSession, name: str) -> DataFrame:
    """All columns as text, so that 007 stays what it is. A row of another length is kept as a whole."""
    options = {**_CSV, "multiLine": str(not _is_splittable(spark, name)).lower()}
    columns = spark.read.options(**options).csv(name).columns
    schema = StructType([StructField(column, StringType()) for column in [*columns, _CORRUPT]])
    return spark.read.schema(schema).options(**options, columnNameOfCorruptRecord=_CORRUPT).csv(name)


def _is_splittable(spark: SparkSession, name: str) -> bool:
    """Whether several tasks can read a CSV file: it is large, and every row of it is one line.

    A quoted value may have line breaks in it. Spark then reads the file in one task, because in the middle of a file
    it cannot decide whether a line break is within quotes. If every line has an even number of quotes, none is.
    """
    if (
        name.endswith(_PACKED)
        or max((file.bytes for file in open_files(spark, name).matching()), default=0) < _LARGE
    ):
        return False
    quotes = F.length("value") - F.length(F.replace(F.col("value"), F.lit('"'), F.lit("")))
    return spark.read.text(name).where(quotes % 2 == 1).isEmpty()


def _open_json(spark: SparkSession, name: str) -> DataFrame:
    """Every value as it stands there, because what Spark takes for its type need not be the type of all."""
    columns = [column for column in spark.read.json(name).columns if column != _CORRUPT]
    fields = [StructField(column, VariantType()) for column in columns]
    schema = StructType([*fields, StructField(_CORRUPT, StringType())])
    return spark.read.schema(schema).option("columnNameOfCorruptRecord", _CORRUPT).json(name)


def check_mapping(mapping: Mapping[str, str]) -> None:
    """Raise UsageError if a mapping names an option that jobs do not have."""
    for option in mapping:
        if option not in JOB_COLUMNS:
            raise UsageError(f"map: {option!r} is no option of a job: there are {', '.join(JOB_COLUMNS)}")


def check_inputs(names: Sequence[str]) -> None:
    """Raise UsageError if a file of this machine is not there, or a name is none. Spark checks other names."""
    for name in names:
        if _format(name) and not _PATTERN.search(name) and not Path(name).exists():
            raise UsageError(f"{name}: no such file")
        if not _format(name) and "`" not in name and ("/" in name or Path(name).is_file()):
            raise UsageError(_neither(name))


def shape_jobs(rows: DataFrame, mapping: Mapping[str, str]) -> DataFrame:
    """The rows with the columns of jobs, and nothing else."""
    check_mapping(mapping)
    for column in mapping.values():
        if column not in rows.columns:
            raise UsageError(f"map: there is no column {column!r}: there are {', '.join(rows.columns)}")
    named = {name: name for name in rows.columns if name in JOB_COLUMNS} | dict(mapping)
    options = [_option(rows, column).alias(name) for name, column in named.items() if name != "data"]
    return rows.select(_data(rows, named.get("data")).alias("data"), *options)


def _option(rows: DataFrame, column: str) -> Column:
    """A value of JSON as text, from which the sink reads it."""
    value = F.col(f"`{column}`")
    return value.cast("string") if isinstance(rows.schema[column].dataType, VariantType) else value


def _data(rows: DataFrame, column: str | None) -> Column:
    """The payload as JSON text. A row that could not be read is made no JSON, to be rejected as such."""
    if column is None:
        fields = [name for name in rows.columns if name not in JOB_COLUMNS and name != _CORRUPT]
        data = F.to_json(F.struct(*(F.col(f"`{name}`") for name in fields)), {"ignoreNullFields": "false"})
    elif isinstance(rows.schema[column].dataType, StringType):
        data = F.col(f"`{column}`")
    else:
        data = F.to_json(F.col(f"`{column}`"), {"ignoreNullFields": "false"})
    if _CORRUPT not in rows.columns:
        return data
    return F.coalesce(F.concat(F.lit("unreadable: "), F.col(_CORRUPT)), data)
