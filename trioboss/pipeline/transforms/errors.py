"""Errors, grouped by what they have in common: the same error with other numbers is the same error."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["error_groups", "error_line", "fingerprint"]

_CHARACTERS = 300
"""So many characters of an error are compared."""

# In this order: a uuid is made of numbers, an address of a machine has a number at its end.
_VARIABLE = (
    (r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}", "<uuid>"),
    (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "<email>"),
    (r"\b\w+://[^\s'\"<>)]+", "<url>"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", "<address>"),
    (r"\[[0-9a-fA-F:]*:[0-9a-fA-F:]+\](?::\d+)?", "<address>"),
    (r"\b0x[0-9a-fA-F]+\b", "<hex>"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b", "<hex>"),
    (r"\d+(?:[.,_]\d+)*", "<n>"),
)


def error_line(error: Column) -> Column:
    """The first line of a stored error: `ValueError: no such thing`, or the JSON itself if it has no message."""
    name, message = F.get_json_object(error, "$.name"), F.get_json_object(error, "$.message")
    text = F.when(message.isNotNull(), F.concat_ws(": ", name, F.when(message != "", message))).otherwise(
        F.coalesce(name, error)
    )
    return F.substring(F.substring_index(text, "\n", 1), 1, _CHARACTERS)


def fingerprint(text: Column) -> Column:
    """The text with placeholders for what differs each time: ids, addresses, times, numbers."""
    for pattern, placeholder in _VARIABLE:
        text = F.regexp_replace(text, pattern, placeholder)
    return text


def error_groups(attempts: DataFrame) -> DataFrame:
    """How often each error ended an attempt of each queue, when first and last, and how it read the last time."""
    ended = attempts.where(F.col("outcome").isin("failed", "expired", "lost"))
    line = F.coalesce(error_line(F.col("error")), F.concat(F.lit("("), F.col("outcome"), F.lit(")")))
    lines = ended.select("queue", "job_id", "ended_on", line.alias("line"))
    return lines.groupBy("queue", fingerprint(F.col("line")).alias("fingerprint")).agg(
        F.count("*").alias("count"),
        F.min("ended_on").alias("first_seen"),
        F.max("ended_on").alias("last_seen"),
        F.max_by("line", "ended_on").alias("example"),
        F.max_by("job_id", "ended_on").alias("last_job"),
    )
