"""Makes Spark's Python workers start faster: what each of them imports is imported before they are forked.

Python imports a module of this name at its start, if it is in the path.
"""

import sys

# A search for data sources that come with Python's packages does not find ours.
if "pyspark.daemon" in sys.orig_argv and "pyspark.sql.worker.lookup_data_sources" not in sys.orig_argv:
    import trioboss.pipeline.batch_reader
    import trioboss.pipeline.batch_writer  # noqa: F401
