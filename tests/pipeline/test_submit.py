"""A job is also a script that spark-submit takes, and then runs where that says."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pyspark
import pytest
from small_spark import small_environment

from trioboss.pipeline.java import prepare_java

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


@pytest.mark.soak
def test_a_job_runs_under_spark_submit_where_that_says(tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    conf = ["--conf", "spark.ui.enabled=false", "--conf", f"spark.pyspark.python={sys.executable}"]
    options = ["--master", "local[1]", *conf]
    job = [tmp_path / "job.py", "--load", "--jobs", "100", "--to", tmp_path / "rows"]
    environment = os.environ | small_environment(tmp_path / "conf") | {"JAVA_HOME": str(prepare_java())}

    run = subprocess.run(
        [submit, *options, *job], env=environment, capture_output=True, text=True, timeout=240
    )

    assert run.returncode == 0, run.stderr
    assert "finds queue\n" in run.stdout
    assert "100 rows\non local[1]" in run.stdout
    assert pq.read_table(tmp_path / "rows").num_rows == 100
