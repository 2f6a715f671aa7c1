"""One Spark session for all tests of the pipeline, because a session takes seconds to start."""

import importlib.util
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from small_spark import JAVA_OPTIONS, SETTINGS

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


def pytest_itemcollected(item):
    """Keep them together where tests run in several processes: one session serves all of them."""
    item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """The session, with two cores."""
    from trioboss.pipeline import get_session

    java = {"spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.driver.memory": "1g"}
    spark = get_session("local[2]", {**SETTINGS, **java}, "tests")
    yield spark
    spark.stop()
