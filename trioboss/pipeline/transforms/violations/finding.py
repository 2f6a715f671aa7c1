"""A finding as a row."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["FINDING", "seconds_from", "to_findings"]

FINDING = {
    "kind": "string",
    "queue": "string",
    "key": "string",
    "job": "string",
    "attempt": "int",
    "other_job": "string",
    "other_attempt": "int",
    "at": "timestamp",
    "seconds": "double",
    "certain": "boolean",
    "detail": "string",
}
"""The columns of a finding."""

_SOURCES = {"key": "singleton_key", "job": "job_id"}
"""The columns of a trace from which a finding's are taken where the names differ."""


def to_findings(rows: DataFrame, kind: Column | str, **columns: Column) -> DataFrame:
    """Rows of a trace as findings of one kind.

    A column of the finding is the given one, else the trace's column of that name, else null; `certain` is true.
    """
    given = {"kind": F.lit(kind) if isinstance(kind, str) else kind, "certain": F.lit(True), **columns}

    def column(name: str, type: str) -> Column:
        source = _SOURCES.get(name, name)
        if name in given:
            return given[name]
        return F.col(source) if source in rows.columns else F.lit(None).cast(type)

    return rows.select(*(column(name, type).alias(name) for name, type in FINDING.items()))


def seconds_from(begin: Column | str, end: Column | str) -> Column:
    """How many seconds from one instant to another; negative if the second is the earlier one."""
    return (F.unix_micros(end) - F.unix_micros(begin)) / 1e6
