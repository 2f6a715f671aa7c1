"""Describes the steps of a command to Spark, whose UI shows the description beside each query and job.

Without it the UI shows the line of this package that started a query, which is no help to an operator.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from pyspark.sql import SparkSession

from trioboss.pipeline.remote import is_remote

__all__ = ["describe_queries"]

_PROPERTY = "spark.job.description"

_outer: ContextVar[str] = ContextVar("_outer", default="trioboss")


@contextmanager
def describe_queries(spark: SparkSession, name: str) -> Iterator[None]:
    """Describe all queries that this thread starts in the block: 'trioboss report: hours'.

    Blocks can be nested: the first one names the command, the others name its steps. A client of Spark Connect cannot
    describe a query, but it can tag it, and the UI of the server shows the tags.
    """
    outer = _outer.get()
    description = f"{outer} {name}" if outer == "trioboss" else f"{outer}: {name}"
    token = _outer.set(description)
    try:
        with _tag(spark, description) if is_remote(spark) else _describe(spark, description):
            yield
    finally:
        _outer.reset(token)


@contextmanager
def _describe(spark: SparkSession, description: str) -> Iterator[None]:
    context = spark.sparkContext
    before = context.getLocalProperty(_PROPERTY)  # that of the outer block, or the program's own
    context.setLocalProperty(_PROPERTY, description)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # Java may have ended, and the caller gets the first error
            _restore(spark, before)
        raise
    _restore(spark, before)


def _restore(spark: SparkSession, description: str | None) -> None:
    # With None Spark removes the property, although the type of the parameter is str.
    spark.sparkContext.setLocalProperty(_PROPERTY, description)  # type: ignore[arg-type]


@contextmanager
def _tag(spark: SparkSession, description: str) -> Iterator[None]:
    tag = description.replace(",", " ")  # Spark refuses tags with commas
    spark.addTag(tag)
    try:
        yield
    finally:
        spark.removeTag(tag)
