"""Where the pipeline is measured: a session on two cores, and a driver of JDBC for comparison if there is one."""

import time
from collections.abc import Callable
from pathlib import Path

import attrs
from psycopg.conninfo import conninfo_to_dict
from pyspark.sql import DataFrame, SparkSession

from benchmarks.harness.server import Server
from trioboss.pipeline import get_session

__all__ = ["Setting", "discard", "find_jar", "jdbc_options", "open_spark", "timed"]

_JARS = ("/usr/share/java/postgresql.jar", "/usr/share/java/postgresql-jdbc4.jar")


@attrs.frozen
class Setting:
    """What a measure gets."""

    server: Server
    spark: SparkSession
    jar: Path | None
    rows: int
    repeats: int
    partitions: int = 4


def find_jar(given: str | None) -> Path | None:
    """The JDBC driver, as the Debian package libpostgresql-jdbc-java installs it."""
    candidates = [given] if given else list(_JARS)
    return next((Path(path) for path in candidates if path and Path(path).exists()), None)


def open_spark(jar: Path | None) -> SparkSession:
    """A session like that of a small machine."""
    conf = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "4"}
    if jar is not None:
        conf |= {"spark.jars": str(jar), "spark.driver.extraClassPath": str(jar)}
    return get_session("local[2]", conf, "benchmarks")


def jdbc_options(dsn: str, **more: str) -> dict[str, str]:
    """The options of Spark's own source and sink."""
    found = conninfo_to_dict(dsn)
    url = f"jdbc:postgresql://{found['host']}:{found['port']}/{found['dbname']}?stringtype=unspecified"
    if "reWriteBatchedInserts" in more:
        url += f"&reWriteBatchedInserts={more.pop('reWriteBatchedInserts')}"
    user = {"user": str(found["user"]), "password": str(found.get("password") or "")}
    return {"url": url, "driver": "org.postgresql.Driver", **user, **more}


def discard(frame: DataFrame) -> None:
    """Compute all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def timed(action: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
