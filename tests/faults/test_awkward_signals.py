"""Signals before a worker runs, and a log that cannot be written."""

import os
import signal
import sys

import psycopg
import pytest
import trio
from fault_helpers import open_programs, until

import trioboss

APP = """
import trioboss

app = trioboss.App()

@app.worker("q")
async def q(job):
    return job.data
"""


@pytest.fixture
def app_folder(tmp_path):
    (tmp_path / "some_app.py").write_text(APP)
    return str(tmp_path)


async def start(programs, app_folder, dsn, *options):
    command = ("-m", "trioboss", "worker", "some_app:app", *options)
    return await programs.start(*command, PYTHONPATH=app_folder, TRIOBOSS_DSN=dsn)


@pytest.mark.skipif(sys.platform != "linux", reason="what a process catches is read from /proc")
async def test_C6_a_signal_while_waiting_for_the_database_ends_the_worker(app_folder):
    with trio.fail_after(60):
        async with open_programs() as programs:
            worker = await start(
                programs,
                app_folder,
                "host=127.0.0.1 port=1",
                *("--wait", "3600", "--grace", "3600", "--log-level", "debug"),
            )
            await until(lambda: has_caught_term(worker.process.pid))
            worker.process.terminate()
            await worker.process.wait()  # the grace is only for running jobs

    assert b"Traceback" not in worker.output


def has_caught_term(pid):
    """Whether a process has installed its handler for SIGTERM."""
    with open(f"/proc/{pid}/status") as status:
        caught = next(line for line in status if line.startswith("SigCgt"))
    return int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1


async def test_C6_a_signal_during_a_migration_leaves_no_partial_schema(empty_dsn, app_folder):
    with trio.fail_after(60), psycopg.connect(empty_dsn, autocommit=True) as owner:
        with psycopg.connect(empty_dsn) as blocker:
            blocker.execute("select pg_advisory_xact_lock(hashtextextended('trioboss migrate', 0))")
            async with open_programs() as programs:
                worker = await start(programs, app_folder, empty_dsn, "--grace", "3600")
                waiting = "select 1 from pg_stat_activity where wait_event = 'advisory'"
                await until(lambda: owner.execute(waiting).fetchall())
                worker.process.terminate()
                await worker.process.wait()
        left = owner.execute("select 1 from pg_namespace where nspname = 'trioboss'").fetchall()

    assert left == []


async def test_C8_a_worker_whose_log_cannot_be_written_keeps_working(dsn, app_folder):
    with trio.fail_after(60):
        async with trioboss.open_boss(dsn, migrate=False) as boss:
            await boss.create_queue("q")
            reading, writing = os.pipe()
            process = await trio.lowlevel.open_process(
                [sys.executable, "-m", "trioboss", "worker", "some_app:app"],
                stdout=writing,
                stderr=writing,
                env=os.environ | {"PYTHONPATH": app_folder, "TRIOBOSS_DSN": dsn},
            )
            os.close(writing)
            os.close(reading)
            try:
                jobs = [await boss.wait_for("q", await boss.send("q", number)) for number in range(5)]
                process.terminate()
                code = await process.wait()
            finally:
                process.kill()

    assert [job.output for job in jobs] == list(range(5))
    assert code == 0
