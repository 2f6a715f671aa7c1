"""On a standalone cluster: a master and two workers in processes of their own, and executors that are killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pyspark
import pytest
from pipeline_helpers import end_jobs, rows_of_history, rows_of_lake
from psycopg.conninfo import make_conninfo
from small_spark import JAVA_OPTIONS, preloading_path, small_environment

import trioboss
from trioboss.pipeline.java import prepare_java
from trioboss.testing import temporary_database

PASSWORD = "canary-in-the-mine"
LIMIT = 400  # seconds after which something hangs
SPARK_HOME = Path(pyspark.__file__).parent
OPENED = ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch", "sun.util.calendar")
READING = (
    "select count(*) from pg_stat_activity where datname = current_database() and query like '%%reader/%%'"
)
STAGING = (
    "select count(*) from pg_stat_activity where datname = current_database() and query like '%%add_stage%%' "
    "and wait_event_type = 'Lock'"
)


def until(condition, what):
    """Wait for what nobody tells us about."""
    deadline = time.monotonic() + LIMIT
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def executors_of(worker):
    """The processes of a worker's executors."""
    command = ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(worker.pid)]
    listed = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return [int(line.split()[0]) for line in listed if "CoarseGrainedExecutorBackend" in line]


@contextmanager
def daemon(folder, name, *arguments, host="127.0.0.1"):
    """A master or a worker: as spark-class starts it, but without the Java that makes up its command."""
    java = prepare_java()
    environment = {
        **os.environ,
        "JAVA_HOME": str(java),
        "JDK_JAVA_OPTIONS": JAVA_OPTIONS,
        "PYTHONPATH": preloading_path(),  # of executors, too
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_SCALA_VERSION": "2.13",  # else a worker looks for it in a tree of sources
    }
    opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
    run = [java / "bin" / "java", "-Xmx256m", *opened, "-cp", SPARK_HOME / "jars" / "*"]
    command = [
        *run,
        f"org.apache.spark.deploy.{name}",
        "--host",
        host,
        "--webui-port",
        "0",
        *arguments,
    ]
    with (folder / f"{name}-{len(list(folder.iterdir()))}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


class Outcome:
    """The results that one run on the cluster left."""

    def __init__(self, folder, printed, errors, history, lake, jobs, stages, slow):
        self.folder, self.printed, self.errors = folder, printed, errors
        self.history, self.lake, self.jobs, self.stages, self.slow = history, lake, jobs, stages, slow


@pytest.fixture(scope="module")
def outcome(server_dsn, template, tmp_path_factory):
    """Run the driver once, and kill an executor in the middle of the export and of the load."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        dsn = stack.enter_context(temporary_database(server_dsn, template))
        database = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        with trioboss.SyncBoss(dsn, migrate=False) as boss:
            boss.create_queue("email")
            boss.create_queue("slow")
        for n in range(4):
            end_jobs(database, 100, first=n)
        port = free_port()
        stack.enter_context(daemon(folder, "master.Master", "--port", str(port)))
        until(lambda: listens(port), "the master")
        master = f"spark://127.0.0.1:{port}"
        resources = ("--cores", "2", "--memory", "600m")
        # Two hosts: Spark starts no copy of a task on the host of the first.
        workers = [
            stack.enter_context(
                daemon(
                    folder,
                    "worker.Worker",
                    *resources,
                    "--work-dir",
                    str(folder / f"work{n}"),
                    master,
                    host=f"127.0.0.{n + 1}",
                )
            )
            for n in range(2)
        ]
        printed, errors = execute(master, dsn, folder, database, workers)
        jobs = database.execute("select data -> 'n' from trioboss.job where name = 'email'").fetchall()
        slow = database.execute("select data -> 'n' from trioboss.job where name = 'slow'").fetchall()
        stages = database.execute("select * from trioboss.stage").fetchall()
        history, lake = rows_of_history(database), rows_of_lake(folder / "lake")
        yield Outcome(
            folder,
            printed,
            errors,
            history,
            lake,
            sorted(n for (n,) in jobs),
            stages,
            sorted(n for (n,) in slow),
        )


def execute(master, dsn, folder, database, workers):
    """Run the driver, and kill one executor while all tasks, of export and load, wait for locks that we have."""
    script = Path(__file__).with_name("cluster_driver.py")
    secret = make_conninfo(dsn, password=PASSWORD)
    environment = os.environ | small_environment(folder / "conf") | {"PYTHONPATH": preloading_path()}
    with (folder / "driver.log").open("w") as log, psycopg.connect(dsn) as blocker:
        blocker.execute(
            "select pg_advisory_xact_lock(trioboss.lock_number('reader/1', seed)) from trioboss.lock_seed"
        )
        blocker.execute("lock table trioboss.stage in exclusive mode")
        command = [sys.executable, script, master, secret, folder]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment
        ) as driver:
            try:
                until(lambda: database.execute(READING).fetchone()[0] >= 2, "tasks that want to read")
                until(lambda: database.execute(STAGING).fetchone()[0] >= 2, "tasks that want to stage")
                kill_executor(workers[0])
                until(
                    lambda: "Lost executor" in (folder / "driver.log").read_text(), "the loss of an executor"
                )
                blocker.commit()
                output, _ = driver.communicate(timeout=LIMIT)
            except BaseException:
                driver.kill()  # it would wait for our locks, and we for it
                raise
    printed = [json.loads(line) for line in output.splitlines() if line.startswith('["')]
    return dict(printed), output + (folder / "driver.log").read_text()


def kill_executor(worker):
    for pid in until(lambda: executors_of(worker), "an executor"):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.soak
def test_an_export_whose_executor_is_killed_has_each_row_once(outcome):
    assert outcome.printed["archived"] == 400
    assert outcome.lake == outcome.history
    assert len(outcome.lake) == 400


@pytest.mark.soak
def test_a_load_whose_executor_is_killed_has_each_row_once(outcome):
    assert "1000 rows, 1000 jobs in email, 0 rejected" in outcome.printed["loaded"]
    assert outcome.jobs == list(range(1000))
    assert outcome.stages == []


@pytest.mark.soak
def test_a_load_with_two_copies_of_a_task_at_once_has_each_row_once(outcome):
    events = "".join(path.read_text() for path in outcome.folder.rglob("*") if is_event_log(path))

    assert '"Speculative":true' in events  # a copy was started
    assert "40 rows, 40 jobs in slow, 0 rejected" in outcome.printed["speculated"]
    assert outcome.slow == list(range(40))
    assert outcome.stages == []


def is_event_log(path):
    return path.is_file() and b"SparkListenerSQLExecutionStart" in path.read_bytes()


@pytest.mark.soak
def test_loaded_rows_are_read_and_a_refusal_arrives(outcome):
    assert outcome.printed["read"] == 1000
    assert "1 of 1 rows cannot be jobs" in outcome.printed["refused"]


@pytest.mark.soak
def test_an_executor_was_really_killed(outcome):
    logs = "".join(path.read_text() for path in outcome.folder.glob("*.log"))
    assert "exitStatus 137" in logs


@pytest.mark.soak
def test_no_password_is_in_any_plan_event_or_log(outcome):
    files = [path for path in outcome.folder.rglob("*") if path.is_file()]
    with_events = [path for path in files if b"SparkListenerSQLExecutionStart" in path.read_bytes()]

    assert with_events
    assert "== Physical Plan ==" in outcome.errors
    assert [path.name for path in files if PASSWORD.encode() in path.read_bytes()] == []
    assert PASSWORD not in outcome.errors
