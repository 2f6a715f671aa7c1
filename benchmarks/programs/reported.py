"""A synthetic lake, or reports over it, by whatever checkout of trioboss is imported.

Uses only names that both checkouts of a comparison have. The specification: `role` and `lake`; of the role
make also `jobs`, of the role report also `rounds`. The first report runs in a session in which nothing has run.
"""

import tempfile
import time
from pathlib import Path

import trioboss
from benchmarks.programs.protocol import Spec, emit, read_spec
from trioboss.pipeline import Source, get_session, report, synth

_CONF = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "4"}


def main(spec: Spec) -> None:
    """Play the role."""
    began = time.perf_counter()
    spark = get_session("local[2]", _CONF, "benchmarks")
    seconds = [time.perf_counter() - began]
    if spec["role"] == "make":
        synth(spec["jobs"], spec["lake"], spark=spark)
    else:
        with tempfile.TemporaryDirectory(prefix="trioboss-report-") as folder:
            for number in range(spec["rounds"]):
                began = time.perf_counter()
                report(Source(lake=spec["lake"]), Path(folder, str(number)), spark=spark)
                seconds.append(time.perf_counter() - began)
    emit("done", seconds=seconds, trioboss=str(Path(trioboss.__file__).parent.resolve()))


if __name__ == "__main__":
    main(read_spec())
