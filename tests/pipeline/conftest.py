"""One Spark session for all tests of a process, because a session takes seconds to start; and a database."""

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest
from small_spark import JAVA_OPTIONS, LOCAL_SETTINGS, jdbc_jar, preloading_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = importlib.util.find_spec("pyspark") is None
if MISSING and os.environ.get("TRIOBOSS_REQUIRE_SPARK") == "1":
    raise ImportError("TRIOBOSS_REQUIRE_SPARK=1, and there is no pyspark: pip install 'trioboss[spark]'")


class Skipped(pytest.Module):
    """A module of tests that is not even imported."""

    def collect(self):
        pytest.skip("no pyspark: pip install 'trioboss[spark]'")


def pytest_pycollect_makemodule(module_path, parent):
    return Skipped.from_parent(parent, path=module_path) if MISSING else None


BESIDE = ("test_cluster", "test_connect", "test_submit")
"""Tests that start a Spark of their own, one after the other."""


def pytest_itemcollected(item):
    """In several processes: one has a session, and a test without Spark runs wherever there is time."""
    if item.path.stem in BESIDE:
        item.add_marker(pytest.mark.xdist_group("beside"))
    elif "spark" in item.fixturenames:
        item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(autouse=True)
def unchanged_priority() -> "Iterator[None]":
    """No test leaves its process at a lower priority: all later tests of the process would be slow."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    yield
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session, with two cores."""
    from trioboss.pipeline import get_session

    java = {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -Xms1g -Xmn500m", "spark.driver.memory": "1g"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", preloading_path())
        jars = {"spark.jars": jar} if (jar := jdbc_jar()) else {}
        spark = get_session("local[2]", {**LOCAL_SETTINGS, **java, **jars}, "tests")
    yield spark
    spark.stop()


@pytest.fixture
def database(dsn):
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def quick(monkeypatch):
    """Batches that are written without Spark."""
    from pipeline_helpers import rewrite_without_spark, write_without_spark

    from trioboss.pipeline import rewriting
    from trioboss.pipeline.export import LakeExport

    monkeypatch.setattr(LakeExport, "_write", write_without_spark)
    monkeypatch.setattr(rewriting, "_write", rewrite_without_spark)


@pytest.fixture
def failing(sync_boss):
    """A boss with a queue `email` that has retries, and the dead letter queue `dead`."""
    sync_boss.create_queue("dead")
    sync_boss.create_queue("email", dead_letter="dead", retry_limit=3, retry_delay=0)
    return sync_boss
