"""The session: one, quiet, with the data source."""

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from trioboss.errors import UsageError
from trioboss.pipeline import get_session, register, session
from trioboss.pipeline.java import prepare_java


def test_the_running_session_is_used(spark):
    assert get_session() is spark
    assert get_session(conf={"trioboss.test": "1"}).conf.get("trioboss.test") == "1"


def test_a_session_of_our_own_runs_on_all_cores_of_this_machine(spark, monkeypatch):
    masters = []
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(session, "_build", lambda master, conf, name: masters.append(master) or spark)

    get_session()

    assert masters == ["local[*]"]


def test_another_master_is_refused_while_a_session_runs(spark):
    with pytest.raises(UsageError, match=r"master: a session is running already, on local\[2\]"):
        get_session("local[1]")


def test_a_session_beside_another_learns_the_source(spark):
    other = spark.newSession()
    try:
        register(other)
        read = other.read.format("trioboss").options(dsn="postgresql://127.0.0.1:1/none", table="job").load()
        assert "queue" in read.columns
    finally:
        register(spark)


@pytest.mark.parametrize(
    ("told", "version"), [('JAVA_VERSION="11.0.2"', 11), ('OS="x"\nJAVA_VERSION="1.8.0_402"', 8)]
)
def test_a_java_that_is_too_old_for_spark_is_named(tmp_path, monkeypatch, told, version):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").touch()
    (tmp_path / "release").write_text(told)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(UsageError, match=f"JAVA_HOME: {tmp_path} is Java {version}, and Spark needs 17"):
        prepare_java()


def test_nothing_of_spark_is_imported_before_it_is_used():
    code = "import sys, trioboss.pipeline; assert not {'pyspark', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
