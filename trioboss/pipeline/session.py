"""The Spark session: the one that is there, or one of our own."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline.java import prepare_java
from trioboss.pipeline.remote import is_remote
from trioboss.pipeline.source import TriobossSource

__all__ = ["get_session", "is_submitted", "register"]

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit for the scripts that it runs."""
_with_wheel: set[str] = set()
"""The applications whose workers were sent the wheel."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# PySpark's gateway would print two lines at each start if its own logger had another level than the root.
_LOGGING = """status = error
rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{3}
"""
# Spark shows the options of a source in plans and events. A session that runs already takes this setting, too.
_ALWAYS = {"spark.sql.redaction.options.regex": "(?i)url|dsn|password|secret|token"}


def get_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "trioboss"
) -> SparkSession:
    """The session that is active, else a new one; either way it has the data source ``trioboss``.

    A notebook's own session is used as it is, also one of Spark Connect, with ``conf`` set on it. A new one is quiet,
    and without a master it runs on this machine, on all cores, reachable from nowhere else. In a script that
    spark-submit runs, the settings of spark-submit apply.
    """
    spark = SparkSession.getActiveSession()
    if spark is None and master is None and is_submitted():
        spark = _join(dict(conf or {}))
    elif spark is None:
        spark = _build(master or "local[*]", dict(conf or {}), name)
    elif master is not None and master != _master_of(spark):
        raise UsageError(f"master: a session is running already, on {_master_of(spark)}")
    else:
        for key, value in (conf or {}).items():
            spark.conf.set(key, value)
    register(spark)
    return spark


def _master_of(spark: SparkSession) -> str:
    return "a server of Spark Connect" if is_remote(spark) else str(spark.sparkContext.master)


def is_submitted() -> bool:
    """Whether this is a script that spark-submit runs, which decides where Spark runs."""
    return _SUBMITTED in os.environ


def register(spark: SparkSession) -> None:
    """Give a session the data source, and keep it from showing a dsn. It becomes the active one of this thread.

    Spark searches for a source in the active session, not in the one that reads.
    """
    if not is_remote(spark):
        SparkSession._get_j_spark_session_class(spark._jvm).setActiveSession(spark._jsparkSession)
        _send_wheel(spark)
    try:
        spark.dataSource.register(TriobossSource)
    except AnalysisException as error:
        # Where the package pyspark_trioboss is installed, Spark has registered the source itself.
        if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
            raise
    for key, value in _ALWAYS.items():
        spark.conf.set(key, value)


def _send_wheel(spark: SparkSession) -> None:
    """Let Spark's workers import this package from a wheel, where a script got it by ``--py-files trioboss.whl``.

    Spark sends the file to all machines, but its workers import from files that end in .zip, .egg and .jar only.
    """
    wheel = next((path for path in Path(__file__).parents if path.suffix == ".whl" and path.is_file()), None)
    context = spark.sparkContext
    if wheel is None or context.applicationId in _with_wheel:
        return
    folder = Path(tempfile.mkdtemp(prefix="trioboss-wheel-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(shutil.copyfile(wheel, folder / f"{wheel.stem}.zip")))
    _with_wheel.add(context.applicationId)


def _join(conf: dict[str, str]) -> SparkSession:
    """The session of a script that spark-submit runs, with its settings."""
    builder = SparkSession.Builder()
    for key, value in {"spark.sql.session.timeZone": "UTC", **_ALWAYS, **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _build(master: str, conf: dict[str, str], name: str) -> SparkSession:
    prepare_java()
    settings = _defaults()
    if master.startswith("local"):
        settings |= _on_this_machine()
    java = settings[_JAVA_OPTIONS]
    settings |= conf
    if _JAVA_OPTIONS in conf:
        settings[_JAVA_OPTIONS] = f"{java} {conf[_JAVA_OPTIONS]}"
    builder = SparkSession.Builder().master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _defaults() -> dict[str, str]:
    folder = Path(tempfile.mkdtemp(prefix="trioboss-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    return {
        **_ALWAYS,
        _JAVA_OPTIONS: f"-Dlog4j2.configurationFile=file:{logging} -Dderby.system.home={folder}",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # else Java is asked almost three times as often
        "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|dsn",
        "spark.local.dir": str(folder),
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        # Percentiles of more groups than this are found by sorting all rows. The default, 128, is less than a week of
        # hours of one queue has.
        "spark.sql.objectHashAggregate.sortBased.fallbackThreshold": "10000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _on_this_machine() -> dict[str, str]:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": str(4 * (os.cpu_count() or 2)),
    }
