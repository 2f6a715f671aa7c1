"""A job is also a script that spark-submit takes, and then runs where that says."""

import subprocess
import sys
from pathlib import Path

import pyspark

SCRIPT = """
import sys
from trioboss.pipeline import get_session
from trioboss.pipeline.jobs.synth import main
code = main(sys.argv[1:])
print("on", get_session().sparkContext.master)
sys.exit(code)
"""


def test_a_job_runs_under_spark_submit_where_that_says(spark, tmp_path):
    (tmp_path / "job.py").write_text(SCRIPT)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    conf = ["--conf", "spark.ui.enabled=false", "--conf", f"spark.pyspark.python={sys.executable}"]
    options = ["--master", "local[1]", *conf]
    job = [tmp_path / "job.py", "--jobs", "100", "--days", "0.1", "--to", tmp_path / "lake"]

    run = subprocess.run([submit, *options, *job], capture_output=True, text=True, timeout=240)

    assert run.returncode == 0, run.stderr
    assert "on local[1]" in run.stdout
    assert "webhooks" in run.stdout
