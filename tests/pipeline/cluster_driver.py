"""The driver of test_cluster.py, in a process of its own: exports, loads and reads on a standalone cluster."""

import json
import sys
import threading

from trioboss.pipeline import archive, get_session, load
from trioboss.pipeline.jobs.load import explain


def main(master, dsn, folder):
    conf = {
        "spark.cores.max": "4",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": folder,
        "spark.eventLog.enabled": "true",
        "spark.executor.cores": "2",
        "spark.executor.memory": "512m",
        # A copy of a task is started soon after most of the others have ended.
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.minTaskRuntime": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
    }
    spark = get_session(master, conf)
    spark.sparkContext.setLogLevel("INFO")

    export = threading.Thread(target=export_history, args=(spark, dsn, folder))
    export.start()
    rows = spark.range(1000, numPartitions=2).selectExpr("id as n")
    report("loaded", explain(load(rows, "email", dsn, spark=spark, load_id="one")))
    export.join()
    # One of four tasks takes seconds, and so does its copy: both run at the same time.
    slow = "if(id = 0, java_method('java.lang.Thread', 'sleep', 5000L), 'at once') as waited"
    rows = spark.range(40, numPartitions=4).selectExpr("id as n", slow)
    report("speculated", explain(load(rows, "slow", dsn, spark=spark, load_id="two")))

    read = spark.read.format("trioboss").options(dsn=dsn, table="job").load().where("queue = 'email'")
    read.explain(True)
    report("read", read.select("id").distinct().count())
    try:
        load(spark.range(1).selectExpr("'{' as data"), "email", dsn, spark=spark)
    except Exception as error:
        report("refused", str(error))
    spark.stop()


def export_history(spark, dsn, folder):
    exported = archive(dsn, f"{folder}/lake", spark=spark, concurrency=1, task_rows=200)
    report("archived", exported.jobs)


def report(*words):
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
