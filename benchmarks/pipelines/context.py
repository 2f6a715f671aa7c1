"""The context of the pipeline's measurements: a Spark session on two cores, a server, and perhaps a JDBC driver."""

import time
from collections.abc import Callable
from pathlib import Path

import attrs
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness.server import Server
from trioboss.pipeline import get_session

__all__ = ["PipelineContext", "discard", "find_jar", "jdbc_options", "open_spark", "timed"]

_JARS = ("/usr/share/java/postgresql.jar", "/usr/share/java/postgresql-jdbc4.jar")


@attrs.frozen
class PipelineContext:
    """The argument of every measurement."""

    server: Server
    spark: SparkSession
    jar: Path | None
    rows: int
    repeats: int
    partitions: int = 4
    kills: int = 20
    """How many in each phase."""
    base: Path | None = None
    """Another checkout of trioboss, for comparison."""


def find_jar(given: str | None) -> Path | None:
    """Return the JDBC driver: the given one, or the one of the Debian package libpostgresql-jdbc-java."""
    candidates = [given] if given else list(_JARS)
    return next((Path(path) for path in candidates if path and Path(path).exists()), None)


def open_spark(jar: Path | None) -> SparkSession:
    """Return a session with the settings of a small machine."""
    conf = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "4"}
    if jar is not None:
        conf |= {"spark.jars": str(jar), "spark.driver.extraClassPath": str(jar)}
    return get_session("local[2]", conf, "benchmarks")


def jdbc_options(dsn: str, **more: str) -> dict[str, str]:
    """Return the options of Spark's JDBC source and writer."""
    found = conninfo_to_dict(dsn)
    url = f"jdbc:postgresql://{found['host']}:{found['port']}/{found['dbname']}?stringtype=unspecified"
    if "reWriteBatchedInserts" in more:
        url += f"&reWriteBatchedInserts={more.pop('reWriteBatchedInserts')}"
    user = {"user": str(found["user"]), "password": str(found.get("password") or "")}
    return {"url": url, "driver": "org.postgresql.Driver", **user, **more}


def discard(frame: DataFrame) -> None:
    """Compute all rows and discard them."""
    frame.write.format("noop").mode("overwrite").save()


def timed(action: Callable[[], object]) -> float:
    """Return the seconds that an action takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
