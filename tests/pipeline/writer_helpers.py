"""Rows and options of loads, and what a load has left in the database."""

import pyarrow as pa
from pyspark.sql.types import StructType

from trioboss.pipeline.ids import Ids
from trioboss.pipeline.options import WriteOptions
from trioboss.pipeline.rows import Shape
from trioboss.pipeline.staging import stage_rows

JSON = "data string, singleton_key string"


def options_of(dsn, queue="email", load="one", **more):
    return WriteOptions.parse({"dsn": dsn, "queue": queue, "loadId": load, **more})


def schema_of(ddl=JSON):
    """The columns, without Spark, which StructType.fromDDL would ask."""
    schema = StructType()
    for column in ddl.split(", "):
        schema.add(*column.split())
    return schema


def shape_of(ddl=JSON, needs_key=False):
    return Shape.of(schema_of(ddl), needs_key)


def batch(*rows):
    return pa.RecordBatch.from_pylist(list(rows))


def stage(options, *parts, shape=None):
    """Stage rows as tasks would, one for each part."""
    return [
        stage_rows(
            options, shape or Shape(None, (), False, "id" in part.schema.names), iter([part]), Ids.of_now()
        )
        for part in parts
    ]


def jobs_in(database, columns="data", queue="email"):
    return database.execute(
        f"select {columns} from trioboss.job where name = %s order by seq", [queue]
    ).fetchall()


def stages_in(database):
    return database.execute(
        "select relname from pg_class where relname ~ '^stage_[0-9a-f]{32}$' "
        "union select table_name from trioboss.stage"
    ).fetchall()
