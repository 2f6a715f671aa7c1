"""Lets `spark.read.format("trioboss")` work after `pip install` alone.

Spark imports all packages whose names begin with pyspark_, and registers the `DefaultSource` of each.
"""

from trioboss.pipeline.source import TriobossSource as DefaultSource

__all__ = ["DefaultSource"]
