"""The first query of a new Spark session, by trioboss's source or by Spark's JDBC source.

The specification: `way`, `case`, `dsn`, `rows`, `partitions`, `jar`. Starting the session is not part of the time.
"""

from pathlib import Path

from benchmarks.pipelines.context import discard, open_spark, timed
from benchmarks.pipelines.reading import WAYS
from benchmarks.programs.protocol import Spec, emit, read_spec


def main(spec: Spec) -> None:
    """Read once."""
    spark = open_spark(None if spec["jar"] is None else Path(spec["jar"]))
    case = WAYS[spec["way"]](spark, spec["dsn"], spec["rows"], spec["partitions"])[spec["case"]]
    emit("done", seconds=timed(lambda: discard(case())))


if __name__ == "__main__":
    main(read_spec())
