"""A client of Spark Connect: every job on a server of its own. Prints one JSON object. For test_connect.py."""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from trioboss.pipeline import (
    Source,
    archive,
    audit,
    capacity,
    compact,
    erase,
    get_session,
    load,
    read_lake,
    report,
)


def main(dsn: str, folder: Path) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    # Without `register`: the package pyspark_trioboss is installed.
    by_name = spark.read.format("trioboss").options(dsn=dsn, table="archive").load().count()
    again = get_session()
    (folder / "rows.csv").write_text("n\n" + "\n".join(map(str, range(20))))
    lake = folder / "lake"
    exported = archive(dsn, lake, spark=spark, format="delta")
    erased = erase(
        dsn, "email", ids=[read_lake(spark, lake).select("id").first()["id"]], lake=lake, spark=spark
    )
    compacted = compact(dsn, lake, spark=spark)
    source = Source(lake=lake)
    found = {
        "session": type(spark).__module__,
        "is same": again is spark,
        "read": by_name,
        "exported": exported.jobs,
        "erased": erased.rows_in_lake,
        "joined": compacted.joined,
        "in lake": read_lake(spark, lake).count(),
        "loaded": load([str(folder / "rows.csv")], "orders", dsn, spark=spark).released,
        "repeated": load([str(folder / "rows.csv")], "orders", dsn, spark=spark).is_repeat,
        "violations": audit(Source(dsn), spark=spark).violations.total(),
        "reported": report(source, folder / "out", spark=spark).queues[0]["jobs"],
        "queues": [queue.queue for queue in capacity(source, spark=spark)],
    }
    print(json.dumps(found), flush=True)


main(sys.argv[1], Path(sys.argv[2]))
