"""A Spark for tests: many short queries on little data, for which to compile costs more than it saves."""

from collections.abc import Mapping
from pathlib import Path

__all__ = ["JAVA_OPTIONS", "SETTINGS", "small_environment"]

# Spark's own classes need no verifying, and no collection to make room for them. What a Java has to say about that
# must not be on stdout, which Spark reads.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m -XX:+DisplayVMOutputToStderr -XX:+IgnoreUnrecognizedVMOptions "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -XX:MetaspaceSize=256m"
)
SETTINGS: Mapping[str, str] = {
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


def small_environment(folder: Path) -> dict[str, str]:
    """The environment of a process that starts a Spark of its own, with these settings in a folder for them."""
    lines = [f"{name} {value}\n" for name, value in SETTINGS.items()]
    folder.mkdir(exist_ok=True)
    (folder / "spark-defaults.conf").write_text("".join(lines), "utf-8")
    return {"SPARK_CONF_DIR": str(folder), "JDK_JAVA_OPTIONS": JAVA_OPTIONS}
