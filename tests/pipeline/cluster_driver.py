"""The driver of test_cluster.py, in a process of its own: exports, loads and reads on a standalone cluster."""

import json
import sys

from trioboss.pipeline import archive, get_session, load
from trioboss.pipeline.jobs.load import explain


def main(master, dsn, folder):
    conf = {
        "spark.cores.max": "2",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder,
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
    }
    spark = get_session(master, conf)
    spark.sparkContext.setLogLevel("INFO")

    say("archive")
    exported = archive(dsn, f"{folder}/lake", spark=spark, concurrency=1, task_rows=100)
    say("archived", exported.jobs)

    say("load")
    rows = spark.range(1000, numPartitions=4).selectExpr("id as n")
    say("loaded", explain(load(rows, "email", dsn, spark=spark, load_id="one")))

    read = spark.read.format("trioboss").options(dsn=dsn, table="job").load().where("queue = 'email'")
    read.explain(True)
    say("read", read.select("id").distinct().count())
    try:
        load(spark.range(1).selectExpr("'{' as data"), "email", dsn, spark=spark)
    except Exception as error:
        say("refused", str(error))
    spark.stop()


def say(*words):
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
