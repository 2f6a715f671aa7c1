"""A Spark for tests: many short queries on little data, for which to compile costs more than it saves."""

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["JAVA_OPTIONS", "LOCAL_SETTINGS", "SETTINGS", "jdbc_jar", "preloading_path", "small_environment"]

# Spark's own classes need no verifying, and no collection to make room for them. With one compiler Java keeps room for
# less compiled code than Spark has, and would throw it away and compile it again. The messages of Java about that
# must not be on stdout, which Spark reads.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m -XX:+DisplayVMOutputToStderr -XX:+IgnoreUnrecognizedVMOptions "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:MetaspaceSize=256m "
    "-XX:ReservedCodeCacheSize=240m"
)
SETTINGS: Mapping[str, str] = {
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.subexpressionElimination.enabled": "false",
}
LOCAL_SETTINGS: Mapping[str, str] = {
    **SETTINGS,
    "spark.sql.ui.explainMode": "simple",  # nobody looks at the plans that Spark describes in its events
}


def small_environment(folder: Path) -> dict[str, str]:
    """The environment of a process that starts a Spark of its own, with these settings in a folder for them."""
    lines = [f"{name} {value}\n" for name, value in SETTINGS.items()]
    folder.mkdir(exist_ok=True)
    (folder / "spark-defaults.conf").write_text("".join(lines), "utf-8")
    return {"SPARK_CONF_DIR": str(folder), "JDK_JAVA_OPTIONS": JAVA_OPTIONS}


def preloading_path() -> str:
    """The PYTHONPATH with which Spark's Python workers have imported what they need when they are forked."""
    folder = str(Path(__file__).parent / "pipeline" / "preloaded")
    return os.pathsep.join(filter(None, [folder, os.environ.get("PYTHONPATH")]))


def jdbc_jar() -> str | None:
    """Postgres's JDBC driver, which no package on PyPI has: the one that the environment names, or Debian's."""
    candidates = [os.environ.get("TRIOBOSS_JDBC_JAR"), "/usr/share/java/postgresql.jar"]
    return next((path for path in candidates if path and Path(path).exists()), None)
