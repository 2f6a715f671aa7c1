"""The Spark session: the one that is there, or one of our own."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from trioboss.pipeline.java import prepare_java
from trioboss.pipeline.source import TriobossSource

__all__ = ["get_session", "register"]

_LOGGING = """status = error
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{3}
"""
_SECRETS = "(?i)url|dsn|password|secret|token"
# What any session needs that uses the source. Both can be set while it runs.
_ALWAYS = {
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.redaction.options.regex": _SECRETS,
}


def get_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "trioboss"
) -> SparkSession:
    """The session that is active, else a new one; with the data source `trioboss`.

    A notebook's own session is used as it is. A new one is quiet, and without a master it runs in this process's
    machine, on all cores, reachable from nowhere else.
    """
    spark = SparkSession.getActiveSession()
    if spark is None or master is not None:
        spark = _build(master or "local[*]", dict(conf or {}), name)
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Teach a session the data source, and not to show a dsn."""
    spark.dataSource.register(TriobossSource)
    for key, value in _ALWAYS.items():
        spark.conf.set(key, value)


def _build(master: str, conf: dict[str, str], name: str) -> SparkSession:
    prepare_java()
    builder = SparkSession.Builder().master(master).appName(name)
    for key, value in (_defaults(master) | conf).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _defaults(master: str) -> dict[str, str]:
    folder = Path(tempfile.mkdtemp(prefix="trioboss-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    java = f"-Dlog4j2.configurationFile=file:{logging} -Dderby.system.home={folder}"
    defaults = {
        **_ALWAYS,
        "spark.redaction.regex": _SECRETS,
        "spark.driver.extraJavaOptions": java,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        defaults |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "2g",
            "spark.local.dir": str(folder),
            "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
        }
    return defaults
