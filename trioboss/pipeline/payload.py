"""Turns the payloads of one queue into columns, by a schema: of a DataFrame, a stream, or the rows of a lake."""

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from trioboss.errors import UsageError

__all__ = ["PayloadCounts", "count_payloads", "type_payload"]

_PARSED = "trioboss_parsed"
_WHOLE = "trioboss_unparsed"
"""The field in which Spark puts the text of a value that does not fit the schema."""


@attrs.frozen
class PayloadCounts:
    """How well payloads fit a schema."""

    rows: int
    rescued: int
    """Rows whose payload has other fields than the schema, or values of other types."""


def type_payload(rows: DataFrame, queue: str, schema: str | StructType, column: str = "data") -> DataFrame:
    """The rows of ``queue``, with a column ``data_FIELD`` for each field of ``schema`` ("order bigint, email string").

    A payload that does not fit is in the column ``data_rescued`` as it is: it has a field that the schema does not
    have, or a value of another type, which is null in its own column. Nothing is lost, and `count_payloads` counts
    such rows. ``column`` is ``data``, ``output``, or another column that has JSON in it.
    """
    parsed_schema = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    if not isinstance(parsed_schema, StructType):
        raise UsageError(f"schema: {schema!r} does not name fields")
    fields = parsed_schema.fields
    names = [f"{column}_{field.name}" for field in fields]
    for name in (*names, f"{column}_rescued"):
        if name in rows.columns:
            raise UsageError(f"schema: there is a column {name!r} already")
    text = F.col(column)
    parsed = F.from_json(
        text, StructType([*fields, StructField(_WHOLE, StringType())]), {"columnNameOfCorruptRecord": _WHOLE}
    )
    others = F.array_except(F.json_object_keys(text), F.array(*(F.lit(field.name) for field in fields)))
    fits = F.col(_PARSED).isNotNull() & F.col(_PARSED)[_WHOLE].isNull() & (F.size(others) == 0)
    return (
        rows.where(F.col("queue") == queue)
        .withColumn(_PARSED, parsed)
        .select(
            *rows.columns,
            *(F.col(_PARSED)[field.name].alias(name) for field, name in zip(fields, names, strict=True)),
            F.when(text.isNotNull() & ~F.coalesce(fits, F.lit(False)), text).alias(f"{column}_rescued"),
        )
    )


def count_payloads(typed: DataFrame, column: str = "data") -> PayloadCounts:
    """Count the rows of `type_payload`, and those that were rescued."""
    counted = typed.agg(F.count("*").alias("rows"), F.count(f"{column}_rescued").alias("rescued")).first()
    assert counted is not None
    return PayloadCounts(counted["rows"], counted["rescued"])
