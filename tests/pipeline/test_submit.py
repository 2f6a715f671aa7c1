"""A job is also a script that spark-submit takes, and then runs where that says."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from small_spark import small_environment

import pyspark_trioboss
import trioboss
from trioboss.pipeline.java import prepare_java

LIMIT = 400  # seconds after which something hangs

SCRIPT = """
import sys
from pyspark.sql import SparkSession
options = {"dsn": "postgresql://127.0.0.1:1/none", "table": "queue"}
# The package pyspark_trioboss has registered the source.
print("finds", SparkSession.builder.getOrCreate().read.format("trioboss").options(**options).load().columns[0])
from trioboss.pipeline import get_session
from trioboss.pipeline.jobs.synth import main
code = main(sys.argv[1:])
print("on", get_session().sparkContext.master)
sys.exit(code)
"""


WITH_WHEEL = """
import sys
import trioboss
from trioboss.pipeline import get_session
spark = get_session()
print("driver:", trioboss.__file__)
print("worker:", spark.sparkContext.parallelize([1]).map(lambda _: __import__("trioboss").__file__).first())
print("reads", spark.read.format("trioboss").options(dsn=sys.argv[1], table="queue").load().count())
"""


@pytest.mark.soak
def test_a_wheel_that_is_given_to_spark_submit_is_enough(dsn, sync_boss, tmp_path):
    """Without an installation on the machines of a cluster, but for the packages that trioboss needs."""
    sync_boss.create_queue("email")
    wheel = tmp_path / "trioboss-0.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        for package in (trioboss, pyspark_trioboss):
            root = Path(package.__file__).parent
            for path in root.rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    packed.write(path, path.relative_to(root.parent))

    run = submit(tmp_path, WITH_WHEEL, "--py-files", wheel, job=[dsn])

    assert run.returncode == 0, run.stderr
    assert f"driver: {wheel}/trioboss/__init__.py" in run.stdout
    assert "/trioboss-0.0-py3-none-any.zip/trioboss/__init__.py" in run.stdout.partition("worker: ")[2]
    assert "reads 1\n" in run.stdout


def submit(folder, script, *options, job=()):
    """Run a script by spark-submit."""
    (folder / "job.py").write_text(script)
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[1]"]
    command += ["--conf", "spark.ui.enabled=false", "--conf", f"spark.pyspark.python={sys.executable}"]
    environment = os.environ | small_environment(folder / "conf") | {"JAVA_HOME": str(prepare_java())}
    return subprocess.run(
        [*command, *options, folder / "job.py", *job],
        cwd=folder,  # Python imports from the working directory first
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


@pytest.mark.soak
def test_a_job_runs_under_spark_submit_where_that_says(tmp_path):
    job = ["--load", "--jobs", "100", "--to", tmp_path / "rows"]

    run = submit(tmp_path, SCRIPT, job=job)

    assert run.returncode == 0, run.stderr
    assert "finds queue\n" in run.stdout
    assert "100 rows\non local[1]" in run.stdout
    assert pq.read_table(tmp_path / "rows").num_rows == 100
