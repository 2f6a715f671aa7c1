"""Spark Connect: the driver and its Java are on a server, and only plans and results are exchanged."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from pipeline_helpers import end_jobs
from small_spark import preloading_path, small_environment

from trioboss.pipeline.java import prepare_java

LIMIT = 400  # seconds after which something hangs


@pytest.mark.soak
def test_every_job_runs_on_a_server_of_spark_connect(dsn, sync_boss, tmp_path):
    sync_boss.create_queue("orders")
    with psycopg.connect(dsn, autocommit=True) as database:
        end_jobs(database, 30)
    environment = os.environ | small_environment(tmp_path / "conf")
    environment |= {
        "JAVA_HOME": str(prepare_java()),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": preloading_path(),
    }

    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("connect_client.py"), dsn, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )

    assert ran.returncode == 0, ran.stderr.partition("JVM stacktrace")[0][-4000:]
    assert json.loads(ran.stdout.splitlines()[-1]) == {
        "session": "pyspark.sql.connect.session",
        "is same": True,
        "read": 30,
        "exported": 30,
        "erased": 1,
        "joined": 0,
        "in lake": 29,
        "loaded": 20,
        "repeated": True,
        "violations": 0,
        "reported": 29,
        "queues": ["email"],
    }
    assert (tmp_path / "out" / "report.html").exists()
